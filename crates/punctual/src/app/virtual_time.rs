//! Virtual time: a clock that jumps to the next event, and the same order every time.
//!
//! Each partition has one ordinary thread, which may run every level, so every spawn and every release follows the same
//! dispatch rules as on Linux, with function calls for context switches. Jobs take no time unless they declare it, by
//! `execution = …` or [`punctual::spend`](crate::spend); while one takes its time, releases of higher levels preempt it,
//! as deep as there are levels, and other partitions go on beside it. The threads of several partitions take turns, so
//! nothing ever happens at once: see [`Turns`](crate::port::virtual_time::Turns).

use std::cmp::Reverse;
use std::os::fd::BorrowedFd;
use std::task::Waker;

use punctual_core::{CurrentWorker, Duration, Instant, Port};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::app::event_source::{ENDS, NONE};
use crate::app::fault;
use crate::app::forked;
use crate::app::partition::{Part, Style};
use crate::app::runtime::Runtime;
use crate::app::stop::{Cause, Culprit};

use crate::port::AppPort;
use crate::port::virtual_time::{Claim, END, Simulated, Until};

/// Begins a run in virtual time with the turn of `first`.
pub(crate) fn begin_turns(first: &'static Part, limit: Option<Instant>) {
    let runtime = first.runtime;
    runtime.turns.begin(runtime, ranked(runtime.parts), first.index(), limit);
}

/// The parts in the order in which they go at equal times.
fn ranked(parts: &[&'static Part]) -> Vec<usize> {
    let mut ranked: Vec<usize> = (0..parts.len()).collect();
    ranked.sort_by_key(|&index| match parts[index].style {
        Style::Anywhere => Reverse(parts[index].highest_level()),
        _ => Reverse(u8::MAX),
    });
    ranked
}

impl Simulated for Runtime {
    fn partitions(&self) -> usize {
        self.parts.len()
    }

    fn port(&self, partition: usize) -> &AppPort {
        self.parts[partition].partition.port()
    }

    fn next_due(&self, partition: usize) -> Option<Instant> {
        self.parts[partition].partition.levels().iter().filter_map(|level| level.next_due()).min()
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping()
    }

    fn stop(&self, quiescent: bool) {
        self.stop(if quiescent { &Cause::Quiescent } else { &Cause::TimeUp });
    }
}

/// A claim that was granted; given up when dropped.
pub(crate) struct Claimed {
    part: &'static Part,
    claim: Claim,
}

/// Waits until `part` may have `claim`.
pub(crate) fn acquire(part: &'static Part, claim: Claim) -> Claimed {
    let pause = || pause(part, Until::Woken);
    part.runtime.claims.acquire(part.index(), claim, part.partition.port(), pause);
    Claimed { part, claim }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let runtime = self.part.runtime;
        for next in runtime.claims.give_up(self.part.index(), self.claim) {
            let next = runtime.parts[next];
            next.partition.port().wake(next.idle);
        }
    }
}

/// Lays the grids of `part`, and lets time pass from now on. By the thread of `init`, when the resources are there.
pub(crate) fn lay_grids(part: &'static Part) {
    part.runtime.turns.open();
    part.partition.levels().iter().for_each(|level| level.start(Instant::from_ticks(0)));
}

/// Ends the holding of everything in `part`, and before it releases what the clock releases at the very start: what `init`
/// spawned is not to go before what is above it.
///
/// # Safety
/// As for [`Partition::go`](punctual_core::Partition::go).
pub(crate) unsafe fn begin(part: &'static Part, me: CurrentWorker) {
    mark_due(part, me, Instant::from_ticks(0));
    // SAFETY: by this function's contract.
    unsafe { part.partition().abandon(me) };
}

/// Lets all partitions do what they have to do at this time, before `idle` begins, which is below everything.
pub(crate) fn settle(part: &'static Part, me: CurrentWorker) {
    let port = part.partition.port();
    let mut woken = true;
    while woken {
        port.take_woken();
        pause(part, Until::Others);
        woken = port.is_woken();
        release_due(part, me);
    }
}

/// Moves to the next event and serves it. When there is none the app is stopped, since nothing can happen then.
pub(crate) fn step(part: &'static Part, me: CurrentWorker) {
    step_until(part, me, None);
}

/// Moves to the next event, in whichever partition it is, and serves it if it is one of `part`.
pub(crate) fn wait_for_event(part: &'static Part, me: CurrentWorker) {
    step_until(part, me, part.runtime.turns.next_elsewhere(part.index()));
}

/// See [`step`]; does not wait for longer than until `limit`.
fn step_until(part: &'static Part, me: CurrentWorker, limit: Option<Instant>) {
    // Before the look at what there is to do: a wake from here on is for the next step.
    part.partition.port().take_woken();
    if part.partition.is_stopping() {
        return;
    }
    let here = look_at_sources(part);
    if part.partition.snapshot().must_serve() {
        return part.partition().serve(me, None);
    }
    // What ran here may have made something ready again, at this time.
    let until = match limit {
        _ if here => Until::Others,
        Some(limit) => Until::Event(limit),
        None => Until::Due(None),
    };
    pause(part, until);
    release_due(part, me);
}

/// Lets `duration` of execution time pass for the calling job; none in `init`, since others would have their turns in it
/// before there are resources.
pub(crate) fn spend(part: &'static Part, me: CurrentWorker, duration: Duration) {
    if !part.runtime.turns.is_open() {
        return;
    }
    let now = || part.partition.port().now();
    let mut left = duration.as_ticks();
    while left > 0 {
        part.partition.port().take_woken();
        look_at_sources(part);
        let end = Instant::from_ticks(now().as_ticks().saturating_add(left).min(END));
        // When the app is stopping nothing is released any more, and a thread that polls looks after the job.
        let preempts = part.style != Style::Polling;
        let released = preempts && !part.partition.is_stopping();
        pause(part, if released { Until::Due(Some(end)) } else { Until::At(end) });
        left = end.as_ticks().saturating_sub(now().as_ticks());
        if preempts {
            // Whatever preempts the job here moves the clock by its own execution time, not by ours.
            release_due(part, me);
        }
    }
}

/// Lets time pass for `part`.
pub(crate) fn pause(part: &'static Part, until: Until) {
    forked::check(part.runtime);
    part.runtime.turns.pause(part.index(), until);
}

/// Releases and serves everything that is due.
fn release_due(part: &'static Part, me: CurrentWorker) {
    mark_due(part, me, part.partition.port().now());
    part.partition().serve(me, None);
}

/// Releases everything that is due at `now`.
fn mark_due(part: &Part, me: CurrentWorker, now: Instant) {
    let partition = &part.partition;
    if !partition.is_stopping() {
        for level in partition.levels() {
            partition.release_due(me, level, now);
        }
    }
}

/// Releases the tasks whose descriptor is ready now, in whichever partition, and wakes those that wait for one; returns
/// whether there were any that `part` has to see to.
fn look_at_sources(part: &'static Part) -> bool {
    let (runtime, mut any) = (part.runtime, false);
    for source in runtime.sources() {
        // It could not be asked for its descriptor, and the app stops.
        if source.fd() == NONE {
            continue;
        }
        // SAFETY: the descriptor belongs to the task's resource, which only jobs of the task can replace; none runs
        // while this thread is here, except one that pauses, below on this stack or on another partition's thread.
        let fd = unsafe { BorrowedFd::borrow_raw(source.fd()) };
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN | ENDS)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0) {
            source.idleness().is_over();
        } else if source.idleness().releases(source, fd, fds[0].revents()) {
            source.release();
            // Others go on by themselves, and not before the job is over that they may be in the middle of.
            any |= std::ptr::eq(source.part(), part);
        }
    }
    let wake = |waker: Waker| {
        fault::contained(runtime, Culprit::Waker, || waker.wake());
    };
    // Nothing else can go wrong with a look: what cannot be waited for is not in the set.
    any | runtime.reactor().is_some_and(|reactor| reactor.react(false, || (), wake).is_ok_and(|any| any))
}

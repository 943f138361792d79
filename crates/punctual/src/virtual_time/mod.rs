//! Virtual time: a clock that jumps to the next event, and the same order every time.
//!
//! Each partition has one ordinary thread, which may run every level, so every spawn and every release follows the same
//! dispatch rules as on Linux, with function calls for context switches. Jobs take no time unless they declare it, by
//! `execution = …` or [`punctual::spend`](crate::spend); while one takes its time, releases of higher levels preempt it,
//! as deep as there are levels, and other partitions go on beside it. The threads of several partitions take turns, so
//! nothing ever happens at once: see [`Turns`].

mod claims;
mod turns;

use std::os::fd::BorrowedFd;

use punctual_core::{Duration, Instant, Port, Worker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::part::{Part, Style};
use crate::runtime::Runtime;

pub(crate) use claims::{Claim, Claims};
pub(crate) use turns::Turns;

/// Lays the grids of `part` and releases what the clock releases at the very start. Nothing runs yet: what `init` spawned
/// is not to go before what is above it.
pub(crate) fn lay_grids(part: &'static Part) {
    let (partition, start) = (part.partition(), Instant::from_ticks(0));
    for level in partition.levels() {
        level.start(start);
        if !partition.is_stopping() {
            partition.release_due(level, start);
        }
    }
}

/// Moves to the next event and serves it. When there is none the app is stopped, since nothing can happen then.
pub(crate) fn step(part: &'static Part, me: &'static Worker) {
    step_until(part, me, None);
}

/// Moves to the next event, in whichever partition it is, and serves it if it is one of `part`.
pub(crate) fn wait_for_event(part: &'static Part, me: &'static Worker) {
    step_until(part, me, part.runtime.turns.next_elsewhere(part));
}

/// See [`step`]; does not wait for longer than until `limit`.
fn step_until(part: &'static Part, me: &'static Worker, limit: Option<Instant>) {
    // Before the look at what there is to do: a wake from here on is for the next step.
    part.partition.port().take_woken();
    if part.partition.is_stopping() {
        return;
    }
    let here = look_at_sources(part.runtime);
    if part.partition.snapshot().must_serve() {
        return part.partition().serve(me, None);
    }
    // What was released in other partitions runs there, at the time it is.
    let until =
        if here { Some(part.partition.port().now()) } else { next_due(part).into_iter().chain(limit).min() };
    pause(part, until);
    release_due(part, me);
}

/// Lets `duration` of execution time pass for the calling job.
pub(crate) fn spend(part: &'static Part, me: &'static Worker, duration: Duration) {
    let now = || part.partition.port().now();
    let mut left = duration.as_ticks();
    while left > 0 {
        part.partition.port().take_woken();
        look_at_sources(part.runtime);
        let end = Instant::from_ticks(now().as_ticks().saturating_add(left));
        let preempts = part.style != Style::Polling;
        let due = next_due(part).filter(|&due| preempts && due <= end && !part.partition.is_stopping());
        pause(part, Some(due.unwrap_or(end)));
        left = end.as_ticks().saturating_sub(now().as_ticks());
        if due.is_some() || preempts && part.partition.snapshot().must_serve() {
            // Whatever preempts the job here moves the clock by its own execution time, not by ours.
            release_due(part, me);
        }
    }
}

/// Lets time pass for `part` until `until` (for ever if `None`) or until it is woken.
pub(crate) fn pause(part: &'static Part, until: Option<Instant>) {
    part.runtime.turns.pause(part, until);
}

/// Releases and serves everything that is due.
fn release_due(part: &'static Part, me: &'static Worker) {
    let partition = part.partition();
    if !partition.is_stopping() {
        let now = partition.port().now();
        for level in partition.levels() {
            partition.release_due(level, now);
        }
    }
    partition.serve(me, None);
}

fn next_due(part: &Part) -> Option<Instant> {
    part.partition.levels().iter().filter_map(|level| level.next_due()).min()
}

/// Releases the tasks whose descriptor is ready now, and wakes those that wait for one; returns whether there were any.
fn look_at_sources(runtime: &'static Runtime) -> bool {
    let mut any = false;
    for source in runtime.sources() {
        // SAFETY: the descriptor belongs to the task's resource, which only jobs of the task can replace; none runs
        // while this thread is here, except one that pauses, below on this stack or on another partition's thread.
        let fd = unsafe { BorrowedFd::borrow_raw(source.fd()) };
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0) {
            source.release();
            any = true;
        }
    }
    // Nothing else can go wrong with a look: what cannot be waited for is not in the set.
    any | runtime.reactor().is_some_and(|reactor| reactor.react(false, || ()).is_ok_and(|any| any))
}

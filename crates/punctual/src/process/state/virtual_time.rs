//! Virtual time: a clock that jumps to the next event, with a deterministic order.
//!
//! Each partition has one ordinary thread, which may run every level, so every spawn and every
//! release follows the same dispatch rules as on Linux, with function calls for context switches.
//! Jobs take no time unless they declare it, by `execution = …` or
//! [`punctual::spend`](crate::spend); while time passes in one, releases of higher levels preempt
//! it, to any depth, and other partitions run in parallel. The threads of several partitions take
//! turns, so no two actions are ever simultaneous: see [`Turns`](crate::port::virtual_time::Turns).

use std::cmp::Reverse;
use std::os::fd::BorrowedFd;
use std::task::Waker;

use punctual_core::{CurrentWorker, Duration, Instant, Port};
use punctual_sync::futex::selector::unwatched;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::state::fault;
use crate::state::forked;
use crate::state::partition::{PartitionState, ThreadModel};
use crate::state::runtime::Runtime;
use crate::state::source::{ENDS, NONE};
use crate::stop::{Culprit, StopReason};

use crate::port::AppPort;
use crate::port::virtual_time::{Claim, END, Simulated, Until};

/// Begins a run in virtual time with the turn of `first`.
pub(crate) fn start_turns(first: &'static PartitionState, limit: Option<Instant>) {
    let runtime = first.runtime;
    runtime.host.turns.begin(runtime, ranked(runtime.partitions), first.index(), limit);
}

/// Returns the partitions in their order at equal times.
fn ranked(partitions: &[&'static PartitionState]) -> Vec<usize> {
    let mut ranked: Vec<usize> = (0..partitions.len()).collect();
    ranked.sort_by_key(|&index| match partitions[index].model {
        ThreadModel::Anywhere => Reverse(partitions[index].highest_level()),
        _ => Reverse(u8::MAX),
    });
    ranked
}

impl Simulated for Runtime {
    fn partitions(&self) -> usize {
        self.partitions.len()
    }

    fn port(&self, partition: usize) -> &AppPort {
        self.partitions[partition].core.port()
    }

    fn next_due(&self, partition: usize) -> Option<Instant> {
        self.partitions[partition].core.levels().iter().filter_map(|level| level.next_due()).min()
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping()
    }

    fn stop(&self, quiescent: bool) {
        self.stop(if quiescent { &StopReason::Quiescent } else { &StopReason::TimeUp });
    }
}

/// A granted claim; released on drop.
pub(crate) struct Claimed {
    partition: &'static PartitionState,
    claim: Claim,
}

/// Waits until `partition` is granted `claim`.
pub(crate) fn acquire(partition: &'static PartitionState, claim: Claim) -> Claimed {
    let pause = || pause(partition, Until::Woken);
    unwatched(|| {
        partition.runtime.host.claims.acquire(partition.index(), claim, partition.core.port(), pause)
    });
    Claimed { partition, claim }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let runtime = self.partition.runtime;
        unwatched(|| {
            for next in runtime.host.claims.give_up(self.partition.index(), self.claim) {
                let next = runtime.partitions[next];
                next.core.port().wake(next.idle);
            }
        });
    }
}

/// Starts the grids of `partition`, and lets time pass from now on. Called by the thread of `init`,
/// once the resources exist.
pub(crate) fn lay_grids(partition: &'static PartitionState) {
    partition.runtime.host.turns.open();
    partition.core.levels().iter().for_each(|level| level.start(Instant::from_ticks(0)));
}

/// Vacates the top level of `partition`, after releasing all jobs that are due at time 0: jobs
/// spawned by `init` must not run before higher ones.
///
/// # Safety
/// As for [`Partition::go`](punctual_core::Partition::go).
pub(crate) unsafe fn begin(partition: &'static PartitionState, me: CurrentWorker) {
    mark_due(partition, me, Instant::from_ticks(0));
    // SAFETY: this thread holds everything, by this function's contract.
    unsafe { partition.core().abandon(me) };
}

/// Lets all partitions run the jobs due now before `idle` begins, which is below every level.
pub(crate) fn settle(partition: &'static PartitionState, me: CurrentWorker) {
    let port = partition.core.port();
    let mut woken = true;
    while woken {
        port.take_woken();
        pause(partition, Until::Others);
        woken = port.is_woken();
        release_due(partition, me);
    }
}

/// Advances the clock to the next event and serves it. Without one, the app is stopped.
pub(crate) fn step(partition: &'static PartitionState, me: CurrentWorker) {
    step_until(partition, me, None);
}

/// Advances the clock to the next event of any partition, and serves it if it is one of
/// `partition`.
pub(crate) fn wait_for_event(partition: &'static PartitionState, me: CurrentWorker) {
    step_until(partition, me, partition.runtime.host.turns.next_elsewhere(partition.index()));
}

/// See [`step`]; waits at most until `limit`.
fn step_until(partition: &'static PartitionState, me: CurrentWorker, limit: Option<Instant>) {
    // Before checking for work: a wake from here on is for the next step.
    partition.core.port().take_woken();
    if partition.core.is_stopping() {
        return;
    }
    let here = poll_sources(partition);
    mark_pushed(partition, me);
    if partition.core.snapshot().must_serve() {
        return partition.core().serve(me, None);
    }
    // Jobs that ran here may have made another one ready, at this time.
    let until = match limit {
        _ if here => Until::Others,
        Some(limit) => Until::Event(limit),
        None => Until::Due(None),
    };
    pause(partition, until);
    release_due(partition, me);
}

/// Lets `duration` of execution time pass for the calling job; none in `init`, because other
/// partitions would run before the resources exist.
pub(crate) fn spend(partition: &'static PartitionState, me: CurrentWorker, duration: Duration) {
    if !partition.runtime.host.turns.is_open() {
        return;
    }
    let now = || partition.core.port().now();
    let mut left = duration.as_ticks();
    while left > 0 {
        partition.core.port().take_woken();
        poll_sources(partition);
        let preempts = partition.model != ThreadModel::Polling;
        if preempts && partition.core.snapshot().must_serve() {
            // Released at the end of the time that passed before this, or by a source just now.
            partition.core().serve(me, None);
        }
        let end = Instant::from_ticks(now().as_ticks().saturating_add(left).min(END));
        // When the app is stopping nothing more is released; a polling thread checks for releases
        // after the job.
        let released = preempts && !partition.core.is_stopping();
        pause(partition, if released { Until::Due(Some(end)) } else { Until::At(end) });
        left = end.as_ticks().saturating_sub(now().as_ticks());
        if preempts && left > 0 {
            // A job that preempts this one advances the clock by its own execution time, not by
            // ours.
            release_due(partition, me);
        } else if preempts {
            // Released, but not served: the job that ends at this instant ends first.
            mark_due(partition, me, now());
        }
    }
}

/// Pauses `partition` and lets time pass.
pub(crate) fn pause(partition: &'static PartitionState, until: Until) {
    forked::check(partition.runtime);
    unwatched(|| partition.runtime.host.turns.pause(partition.index(), until));
}

/// Releases and serves all due jobs.
fn release_due(partition: &'static PartitionState, me: CurrentWorker) {
    mark_due(partition, me, partition.core.port().now());
    partition.core().serve(me, None);
}

/// Marks the jobs that other partitions have spawned in `partition`, if it polls.
pub(crate) fn mark_pushed(partition: &PartitionState, me: CurrentWorker) {
    if partition.model == ThreadModel::Polling {
        partition.core.poll_once(me, partition.core.port().now());
    }
}

/// Releases all jobs due at `now`; in a polling partition, also marks those that other partitions
/// have spawned.
fn mark_due(partition: &PartitionState, me: CurrentWorker, now: Instant) {
    let core = &partition.core;
    if partition.model == ThreadModel::Polling {
        core.poll_once(me, now);
    } else if !core.is_stopping() {
        for level in core.levels() {
            core.release_due(me, level, now);
        }
    }
}

/// Releases the tasks whose descriptor is ready now, in any partition, and wakes those that wait
/// for one; returns whether `partition` has to process any of them.
fn poll_sources(partition: &'static PartitionState) -> bool {
    let (runtime, mut any) = (partition.runtime, false);
    for source in runtime.sources() {
        // Requesting its descriptor panicked, and the app stops.
        if source.fd() == NONE {
            continue;
        }
        // SAFETY: the descriptor belongs to the task's resource, which only jobs of the task can
        // replace; none runs while this thread is here, except one that pauses, below on this stack
        // or on another partition's thread.
        let fd = unsafe { BorrowedFd::borrow_raw(source.fd()) };
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN | ENDS)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0) {
            source.idleness().is_over();
        } else if source.idleness().releases(source, fd, fds[0].revents()) {
            // Other partitions continue by themselves, after their current job. Those that wait for
            // a later time have no work now.
            any |= source.release() && std::ptr::eq(source.partition(), partition);
        }
    }
    let wake = |waker: Waker| {
        fault::contained(runtime, Culprit::Waker, || waker.wake());
    };
    // The check cannot fail otherwise: descriptors that cannot be waited for are not in the set.
    any | runtime.reactor().is_some_and(|reactor| reactor.react(false, || (), wake).is_ok_and(|any| any))
}

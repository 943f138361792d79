//! Virtual time: one ordinary thread, a clock that jumps to the next event, the same order every time.
//!
//! The thread is the app's idle thread and may run every level, so every spawn and every release follows
//! the same dispatch rules as on Linux, with function calls for context switches. Jobs take no time unless
//! they declare it, by `execution = …` or [`punctual::spend`](crate::spend); while one takes its time,
//! releases of higher levels preempt it, as deep as there are levels.

use std::os::fd::BorrowedFd;

use punctual_core::{Duration, Instant, Port, Worker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::report::Outcome;
use crate::runtime::Runtime;

/// Lays the grids and runs what is released at the very start: by the clock, or by `init`, the highest first.
pub(crate) fn start(runtime: &'static Runtime, me: &'static Worker) {
    let (partition, start) = (&runtime.partition, Instant::from_ticks(0));
    for level in partition.levels() {
        level.start(start);
        if !partition.is_stopping() {
            // Before anything runs: what `init` spawned is not to go before what is above it.
            partition.release_due(level, start);
        }
    }
    partition.abandon(me);
}

/// Moves to the next event and serves it; stops the app when there is none, since nothing can happen then.
pub(crate) fn step(runtime: &'static Runtime, me: &'static Worker) {
    if runtime.partition.is_stopping() || look_at_sources(runtime) {
        return;
    }
    let port = runtime.partition.port();
    match (next_due(runtime), port.limit()) {
        (Some(due), limit) if due.as_ticks() < limit => release_at(runtime, me, due),
        (None, u64::MAX) => runtime.stop(Outcome::Quiescent),
        (_, limit) => {
            port.set_now(Instant::from_ticks(limit).max(port.now()));
            runtime.stop(Outcome::TimeUp);
        }
    }
}

/// Lets `duration` of execution time pass for the calling job.
pub(crate) fn spend(runtime: &'static Runtime, me: &'static Worker, duration: Duration) {
    let now = || runtime.partition.port().now();
    let mut left = duration.as_ticks();
    while left > 0 {
        look_at_sources(runtime);
        let end = Instant::from_ticks(now().as_ticks().saturating_add(left));
        match next_due(runtime).filter(|&due| due <= end && !runtime.partition.is_stopping()) {
            Some(due) => {
                left = end.as_ticks() - due.max(now()).as_ticks();
                // Whatever preempts the job here moves the clock by its own execution time, not by ours.
                release_at(runtime, me, due);
            }
            None => {
                runtime.partition.port().set_now(end);
                return;
            }
        }
    }
}

/// Sets the clock to `due` and releases and serves everything that is due then.
fn release_at(runtime: &'static Runtime, me: &'static Worker, due: Instant) {
    let partition = &runtime.partition;
    let now = due.max(partition.port().now());
    partition.port().set_now(now);
    for level in partition.levels() {
        partition.release_due(level, now);
    }
    partition.serve(me, None);
}

fn next_due(runtime: &Runtime) -> Option<Instant> {
    runtime.partition.levels().iter().filter_map(|level| level.next_due()).min()
}

/// Releases the tasks whose descriptor is ready now, and wakes those that wait for one; returns whether there were any.
fn look_at_sources(runtime: &'static Runtime) -> bool {
    let mut any = false;
    for source in runtime.sources() {
        // SAFETY: the descriptor belongs to the task's resource, which only jobs of the task can replace;
        // none runs while this thread is here, except below it on its own stack, inside a `spend`.
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

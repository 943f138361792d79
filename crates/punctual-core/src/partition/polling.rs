//! Polling: the mode of a [`SharedWord`] partition whose only thread never sleeps.
//!
//! The thread checks the clock, the inbox of every level and the word in a loop, and runs the ready
//! jobs, highest level first. It sees spawns of other threads and releases by the clock between two
//! jobs: only its own spawns preempt a running job, as on any worker. Whether a partition polls is
//! a choice for a run, so polling is a mode of the shared word, without a type.
//!
//! # Proof
//!
//! The thread changes the word as any thread of the partition does, so *Start*, *Raise* and
//! *Vacate* hold. The differences are:
//!
//! * *No lost job.* Other threads only push their jobs; they do not mark the level ready. The
//!   polling thread does that when it finds a job in an inbox, so the word stays in the cache of
//!   its CPU. A push is complete when it is visible, and every inbox is checked once more after the
//!   thread has seen that the partition is stopping. Jobs pushed later stay in the inbox, as in
//!   other partitions.
//! * *No overtaking.* A job in the inbox has no mark. So a direct call also requires that the inbox
//!   is empty. Only this thread calls, so a job that is pushed after that check is the later one.
//! * *Which thread.* The thread is a worker of base 0 and the only one that runs jobs, so it may
//!   run every level, local ones included. No thread ever has to be woken.
//! * *Timers.* The thread is the timekeeper of every level and checks the clock between two jobs
//!   instead of announcing a wake-up time.

use super::Partition;
use super::dispatch::PortOf;
use super::shared_word::SharedWord;
use crate::atomic::{AtomicBool, Ordering, const_new, relax};
use crate::current::CurrentWorker;
use crate::level::{Level, Stamp};
use crate::port::Port;
use crate::time::Instant;

/// Flag of a partition in which a thread polls every inbox.
#[derive(Debug)]
pub(super) struct Polling(AtomicBool);

impl Polling {
    const_new! {
        /// The initial state: no thread polls.
        pub(super) fn new() -> Self {
            Self(AtomicBool::new(false))
        }
    }

    #[inline(always)]
    pub(super) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Returns `true` if the polling thread may call a job of `level`. Jobs in the inbox are
    /// queued, although the level is not marked ready.
    #[inline(always)]
    pub(super) fn may_call(level: &Level) -> bool {
        !level.has_inbox()
    }
}

impl<P: PortOf<SharedWord>> Partition<P> {
    /// Runs the polling loop; returns once the partition is stopping and all ready jobs have run.
    ///
    /// Real-time safety: never waits. Enters the kernel only if the port does so to read the clock.
    pub fn poll(&'static self, me: CurrentWorker) {
        self.begin_polling();
        loop {
            // Read before the inboxes: jobs pushed until then are run.
            let last = self.is_stopping();
            self.release_all_due(me, None, None);
            // Not the time read above: jobs found here may have been released since.
            self.serve(me, None);
            if last {
                return;
            }
            relax();
        }
    }

    /// From this call on, foreign threads only push their jobs, and a thread [polls](Self::poll)
    /// the inboxes, or [checks](Self::poll_once) them.
    pub fn begin_polling(&self) {
        self.dispatch.polling.0.store(true, Ordering::Relaxed);
    }

    /// Releases the jobs due at `now` and marks the pushed ones, without running them: one round of
    /// [`poll`](Self::poll), for a thread that advances the clock itself.
    pub fn poll_once(&self, me: CurrentWorker, now: Instant) {
        self.release_all_due(me, None, Some(now));
    }
}

impl<P: Port> Partition<P> {
    /// Between two jobs of `level`, which this thread occupies: releases due jobs and runs the
    /// ready ones of higher levels.
    #[inline]
    pub(super) fn serve_higher(&'static self, me: CurrentWorker, level: &'static Level, now: Stamp) -> Stamp {
        let now = self.release_all_due(me, Some(level), now);
        if self.snapshot().must_serve() {
            self.serve(me, now);
            return None;
        }
        now
    }

    /// Releases due jobs at every level, and marks pushed ones; `occupied` is a level that this
    /// thread occupies, so that it may use the queue directly.
    fn release_all_due(&self, me: CurrentWorker, occupied: Option<&'static Level>, mut now: Stamp) -> Stamp {
        for &level in self.levels() {
            let own = occupied.is_some_and(|occupied| core::ptr::eq(occupied, level));
            if level.is_timed() && !self.is_stopping() {
                let time = *now.get_or_insert_with(|| self.port().now());
                if !level.may_be_due(time.as_ticks()) {
                    // No job is due.
                } else if own {
                    // SAFETY: the one thread of the partition is the timekeeper of every level; the
                    // caller occupies this one.
                    unsafe { level.release_due_in_place(time) };
                } else {
                    self.release_due(me, level, time);
                }
            }
            if !own && level.has_inbox() {
                self.mark_ready(level);
            }
        }
        now
    }
}

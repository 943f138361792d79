//! A partition whose only thread never sleeps.
//!
//! The thread checks the clock, the inbox of every level and the word in a loop, and runs the ready
//! jobs, highest level first. It is a worker of base 0, so it may run every level, and no thread
//! ever has to be woken. It sees spawns of other threads and releases by the clock between two
//! jobs: only its own spawns preempt a running job, as on any worker.
//!
//! Other threads only push their jobs; they do not mark the level ready. The polling thread does
//! that when it finds a job in an inbox, so the word stays in the cache of its CPU. *No lost job*:
//! a push is complete when it is visible, and every inbox is checked once more after the thread has
//! seen that the partition is stopping. Jobs pushed later stay in the inbox, as in other
//! partitions.

use crate::atomic::{Ordering, relax};
use crate::current::CurrentWorker;
use crate::level::{Level, Stamp};
use crate::partition::Partition;
use crate::port::Port;
use crate::time::Instant;

impl<P: Port> Partition<P> {
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
    /// the inboxes, or [checks](Self::look) them.
    pub fn begin_polling(&self) {
        self.polled.store(true, Ordering::Relaxed);
    }

    /// Releases the jobs due at `now` and marks the pushed ones, without running them: one round of
    /// [`poll`](Self::poll), for a thread that advances the clock itself.
    pub fn look(&self, me: CurrentWorker, now: Instant) {
        self.release_all_due(me, None, Some(now));
    }

    /// Between two jobs of `level`, which this thread occupies: releases due jobs and runs the
    /// ready ones of higher levels.
    #[inline]
    pub(crate) fn serve_higher(&'static self, me: CurrentWorker, level: &'static Level, now: Stamp) -> Stamp {
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

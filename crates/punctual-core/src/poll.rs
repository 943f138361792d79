//! A partition whose one thread never sleeps.
//!
//! Its thread looks at the clock, at the inbox of every level and at the word, over and over, and runs what is ready, the
//! highest level first. It is a worker of base 0, so it may run every level; nobody ever has to be woken. What other
//! threads spawn, and what the clock releases, it sees between two jobs: a running job is preempted by what it spawns
//! itself, as on any worker, and by nothing else.
//!
//! Other threads push their jobs and are done: they do not mark the level ready. The thread that polls does it for them
//! when it finds something in an inbox, so the word stays in the cache of its CPU. *No lost job*: a push is complete when
//! it is visible, and every inbox is looked at again after the thread has seen that the partition is stopping. What is
//! pushed later than that stays where it is, as with other partitions.

use crate::atomic::{Ordering, relax};
use crate::current::CurrentWorker;
use crate::level::{Level, Stamp};
use crate::partition::Partition;
use crate::port::Port;

impl<P: Port> Partition<P> {
    /// The life of the thread; returns once the partition is stopping and what was ready has run.
    ///
    /// Real-time safety: never waits. Enters the kernel only if the port does to tell the time.
    pub fn poll(&'static self, me: CurrentWorker) {
        self.polled.store(true, Ordering::Relaxed);
        loop {
            // Before the look at the inboxes: what was pushed until then is run.
            let last = self.is_stopping();
            self.look_around(me, None, None);
            // Not the reading from just now: what is found here may have been released since.
            self.serve(me, None);
            if last {
                return;
            }
            relax();
        }
    }

    /// Between two jobs of `level`, which this thread occupies: releases what is due and runs what is ready above.
    #[inline]
    pub(crate) fn look_up(&'static self, me: CurrentWorker, level: &'static Level, now: Stamp) -> Stamp {
        let now = self.look_around(me, Some(level), now);
        if self.snapshot().must_serve() {
            self.serve(me, now);
            return None;
        }
        now
    }

    /// Releases what is due at any level, and marks what was pushed; `occupied` is a level whose queue this thread has to
    /// itself.
    fn look_around(&self, me: CurrentWorker, occupied: Option<&'static Level>, mut now: Stamp) -> Stamp {
        for &level in self.levels() {
            let own = occupied.is_some_and(|occupied| core::ptr::eq(occupied, level));
            if level.is_timed() && !self.is_stopping() {
                let time = *now.get_or_insert_with(|| self.port().now());
                if own {
                    // SAFETY: the caller occupies the level.
                    unsafe { level.release_due_in_place(time) };
                } else {
                    self.release_due(me, level, time);
                }
            }
            if !own && level.has_mail() {
                self.mark_ready(level);
            }
        }
        now
    }
}

//! The interface between a platform and the executor.
//!
//! A [`Port`] reads the clock, lets a worker sleep until a time or a wake, and wakes it. Two more
//! pairs serve the rare case in which a thread has to wait for a level (a job has suspended itself,
//! or there are no real-time privileges): a plain wait, and a wait that boosts the holder to the
//! waiter's priority.
//!
//! Contract: a `wake` before or during `wait` makes that `wait` return; either may return
//! spuriously.
//!
//! A port that never sleeps, for code that never waits:
//!
//! ```
//! use punctual_core::{Instant, Port, Worker, sync::{AtomicU32, AtomicU64}};
//!
//! struct Frozen;
//!
//! impl Port for Frozen {
//!     type Word = AtomicU64;
//!
//!     fn now(&self) -> Instant {
//!         Instant::from_ticks(0)
//!     }
//!     fn wake(&self, _: &Worker) {}
//!     fn wait(&self, _: &Worker, _: Option<Instant>, _: Option<Instant>) -> bool {
//!         false
//!     }
//!     fn wait_while(&self, _: &AtomicU32, _: u32) {}
//!     fn wake_all(&self, _: &AtomicU32) {}
//!     fn boost(&self, _: &AtomicU32) -> bool {
//!         false
//!     }
//!     fn unboost(&self, _: &AtomicU32) {}
//! }
//! ```

use crate::atomic::AtomicU32;
use crate::{Duration, Instant, Stamp, WordCell, Worker};

/// A platform, as the executor sees it.
pub trait Port: Sync {
    /// The cell of a partition's word; [`AtomicU64`](core::sync::atomic::AtomicU64) is the default
    /// choice.
    type Word: WordCell;

    /// Returns the current time. Must not go backwards as seen by one thread.
    fn now(&self) -> Instant;

    /// Bounds the distance of [`stamp`](Self::stamp) from [`now`](Self::now).
    const STAMP_ERROR: Duration = Duration::from_ticks(0);

    /// Returns the current time for measurements: may differ from [`now`](Self::now) in either
    /// direction if that is faster.
    #[inline]
    fn stamp(&self) -> Instant {
        self.now()
    }

    /// Makes the current or next [`wait`](Self::wait) of `worker` return.
    ///
    /// Real-time safety: enters the kernel only if the worker sleeps. Does not block or allocate.
    fn wake(&self, worker: &Worker);

    /// Sleeps until `until` (forever if `None`) or until woken. Called by the worker's own thread.
    /// A recent [stamp](Self::stamp), `now`, saves a reading of the clock.
    ///
    /// Returns `true` if [`now`](Self::now) is known to have reached `until` without reading the
    /// clock.
    fn wait(&self, worker: &Worker, until: Option<Instant>, now: Stamp) -> bool;

    /// [`wait`](Self::wait) until `until` of a worker that other threads wake only to stop: may
    /// return late after a wake, by at most 10 ms. The default waits.
    #[inline]
    fn sleep_until(&self, worker: &Worker, until: Instant, now: Stamp) -> bool {
        self.wait(worker, Some(until), now)
    }

    /// Runs before [`wait`](Self::wait): may keep the thread awake for a while, but not beyond
    /// `until`, and not once `is_over` reports work for the partition. The default returns at once.
    #[inline]
    fn spin(&self, worker: &Worker, until: impl FnOnce() -> Option<Instant>, is_over: impl Fn() -> bool) {
        let _ = (worker, until, is_over);
    }

    /// Sleeps while `*count == seen`, or returns at once.
    fn wait_while(&self, count: &AtomicU32, seen: u32);

    /// Wakes every thread in [`wait_while`](Self::wait_while) on `count`.
    fn wake_all(&self, count: &AtomicU32);

    /// Waits for the priority-inheritance futex `boost`, whose owner inherits this thread's
    /// priority.
    ///
    /// Returns `true` if the calling thread owns `boost` afterwards and must
    /// [`unboost`](Self::unboost) it; `false` if the platform has no priority inheritance or the
    /// kernel refused, so that the caller waits without it.
    fn boost(&self, boost: &AtomicU32) -> bool;

    /// Releases `boost`, which the calling thread owns, to its first waiter.
    fn unboost(&self, boost: &AtomicU32);

    /// Called when a foreign thread has pushed a job into an inbox of a partition that
    /// [polls](crate::Partition::poll). The default does nothing, since the polling thread checks
    /// the inboxes.
    fn pushed(&self) {}

    /// Called when a panic unwinds out of a critical section, or out of the executor, before the
    /// level is vacated. The protected data may be inconsistent, so the port stops everything that
    /// must not see it.
    ///
    /// Jobs that start because the level is vacated see the effects of this call. Must not panic.
    /// The default does nothing.
    fn unwinds(&self) {}
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use core::marker::PhantomData;

    use super::Port;
    use crate::sync::AtomicU32;
    use crate::{Instant, ReadyLevels, Stamp, WordCell, Worker};

    /// A port of one thread, for which no time passes.
    #[derive(Debug)]
    pub(crate) struct Still<W = ReadyLevels>(PhantomData<W>);

    impl<W> Still<W> {
        pub(crate) const fn new() -> Self {
            Self(PhantomData)
        }
    }

    impl<W: WordCell> Port for Still<W> {
        type Word = W;

        fn now(&self) -> Instant {
            Instant::from_ticks(0)
        }
        fn wake(&self, _: &Worker) {}
        fn wait(&self, _: &Worker, _: Option<Instant>, _: Stamp) -> bool {
            false
        }
        fn wait_while(&self, _: &AtomicU32, _: u32) {}
        fn wake_all(&self, _: &AtomicU32) {}
        fn boost(&self, _: &AtomicU32) -> bool {
            false
        }
        fn unboost(&self, _: &AtomicU32) {}
    }
}

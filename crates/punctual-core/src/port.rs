//! What a platform provides to the executor.
//!
//! A [`Port`] reads the clock, lets a worker sleep until a time or a wake, and wakes it. Two more pairs
//! serve the rare case in which a thread has to wait for a level (a job has suspended itself, or there are no
//! real-time privileges): a plain wait, and a wait that boosts the holder to the waiter's priority.
//!
//! Contract: `wake` before or during `wait` makes that `wait` return; either may return spuriously.
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
//!     fn wait(&self, _: &Worker, _: Option<Instant>) -> bool {
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
use crate::{Duration, Instant, WordCell, Worker};

/// A platform, as the executor sees it.
pub trait Port: Sync {
    /// What holds the word of a partition: [`AtomicU64`](core::sync::atomic::AtomicU64), if there is nothing better.
    type Word: WordCell;

    /// The time now. Must not go backwards as seen by one thread.
    fn now(&self) -> Instant;

    /// How far [`stamp`](Self::stamp) lies beside [`now`](Self::now) at most.
    const STAMP_ERROR: Duration = Duration::from_ticks(0);

    /// The time now, for measuring: may lie beside [`now`](Self::now), on either side, if it takes less time that way.
    #[inline]
    fn stamp(&self) -> Instant {
        self.now()
    }

    /// Makes the current or next [`wait`](Self::wait) of `worker` return.
    ///
    /// Real-time safety: enters the kernel only if the worker sleeps. Does not block or allocate.
    fn wake(&self, worker: &Worker);

    /// Sleeps until `until` (forever if `None`) or until woken. Called by the worker's own thread.
    ///
    /// Returns whether [`now`](Self::now) has reached `until`, as far as that is known without a look at the clock.
    fn wait(&self, worker: &Worker, until: Option<Instant>) -> bool;

    /// Before [`wait`](Self::wait): may keep the thread awake for a while, until `until` at most or until `is_over`, that is, something is to be
    /// done in the partition. The default does not.
    #[inline]
    fn spin(&self, worker: &Worker, until: impl FnOnce() -> Option<Instant>, is_over: impl Fn() -> bool) {
        let _ = (worker, until, is_over);
    }

    /// Sleeps while `*count == seen`, or returns at once.
    fn wait_while(&self, count: &AtomicU32, seen: u32);

    /// Wakes every thread in [`wait_while`](Self::wait_while) on `count`.
    fn wake_all(&self, count: &AtomicU32);

    /// Waits for the priority-inheritance futex `boost`, whose owner runs at this thread's priority meanwhile.
    ///
    /// Returns `true` if the calling thread owns `boost` afterwards and must [`unboost`](Self::unboost) it;
    /// `false` if the platform has no priority inheritance or refused, so that the caller waits without it.
    fn boost(&self, boost: &AtomicU32) -> bool;

    /// Releases `boost`, which the calling thread owns, to its first waiter.
    fn unboost(&self, boost: &AtomicU32);

    /// Called when a foreign thread has pushed a job into an inbox of a partition that [polls](crate::Partition::poll).
    /// The default does nothing, since the polling thread looks by itself.
    fn pushed(&self) {}

    /// Called when a panic unwinds out of a critical section, or out of the executor, before the level is vacated.
    /// The protected data may be inconsistent, so the port stops here whatever must not see it.
    ///
    /// Jobs that start because the level is vacated see what the calling thread did in here. Must not panic. The default
    /// does nothing.
    fn unwinds(&self) {}
}

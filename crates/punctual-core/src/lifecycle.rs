//! Starting and stopping a partition.

use crate::Instant;
use crate::atomic::Ordering;
use crate::current::CurrentWorker;
use crate::partition::Partition;
use crate::port::Port;
use crate::word::{MAX_LEVEL, Word};

impl<P: Port> Partition<P> {
    /// Occupies the top level, so that everything spawned waits; for the thread that runs `init`.
    ///
    /// # Panics
    /// If this thread occupies it already.
    pub fn hold_everything(&self, me: CurrentWorker) {
        assert!(me.level() < MAX_LEVEL, "everything is held already");
        self.raise(me, MAX_LEVEL);
    }

    /// Ends [`hold_everything`](Self::hold_everything): lays the periodic grids at `start` and serves.
    ///
    /// # Safety
    /// The worker holds everything by [`hold_everything`](Self::hold_everything), which has not been ended yet, and this
    /// thread is in none of the critical sections that it has entered since.
    pub unsafe fn go(&'static self, me: CurrentWorker, start: Instant) {
        for level in self.levels() {
            level.start(start);
            // Its worker may be asleep already, without a time to wake at.
            self.armed(level, start);
        }
        self.lower(me, MAX_LEVEL);
    }

    /// Ends [`hold_everything`](Self::hold_everything) without starting: after an `init` that failed.
    ///
    /// # Safety
    /// As for [`go`](Self::go).
    pub unsafe fn abandon(&'static self, me: CurrentWorker) {
        self.lower(me, MAX_LEVEL);
    }

    /// Occupies the top level for good, if no level is occupied: no job runs from then on. For a thread that is none
    /// of the partition's and is about to end the process.
    pub fn close(&self) -> bool {
        let mut word = self.load(Ordering::Relaxed);
        while word.level() == 0 {
            // Acquire: the caller sees what every job did.
            match self.swap(word, word.occupy(MAX_LEVEL), Ordering::Acquire) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Whether the partition is stopping: nothing more is released, what was released is finished.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        // Acquire: a worker that leaves has seen all that was marked ready before `stop`.
        self.stopping.load(Ordering::Acquire)
    }

    /// Begins to stop, and wakes every worker to see it.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        for worker in self.workers() {
            self.port().wake(worker);
        }
    }

    /// Makes the partition as new for another run.
    ///
    /// # Safety
    /// No thread takes part in the partition and none spawns into it.
    pub unsafe fn reset(&self) {
        for level in self.levels() {
            // SAFETY: by this function's contract.
            unsafe { level.reset() };
        }
        self.word().store(Word::EMPTY.raw(), Ordering::Relaxed);
        self.stopping.store(false, Ordering::Relaxed);
        self.polled.store(false, Ordering::Relaxed);
    }
}

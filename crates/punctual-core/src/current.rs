//! The proof that the calling thread is a worker.
//!
//! What a worker records of itself has one writer, its own thread, and almost everything that a partition does is done
//! by one of its workers. So whatever has to be called by a worker's thread takes a [`CurrentWorker`], which stays on
//! the thread that it was made on. Making one is unsafe; using it is not.

use core::marker::PhantomData;
use core::ops::Deref;

use crate::atomic::Ordering;
use crate::worker::{ALONE, NEVER, POLLS, Worker};

/// A worker whose thread is the calling one.
///
/// Neither `Send` nor `Sync`, so it cannot leave the thread:
///
/// ```compile_fail,E0277
/// # use punctual_core::{CurrentWorker, Worker};
/// static WORKER: Worker = Worker::new(1);
/// // SAFETY: this is the only thread.
/// let me = unsafe { CurrentWorker::new(&WORKER) };
/// std::thread::spawn(move || me.level());
/// ```
///
/// A reference to a worker, which any thread can have, is not enough:
///
/// ```compile_fail,E0308
/// # use punctual_core::{Partition, Port, Worker};
/// static WORKER: Worker = Worker::new(1);
/// fn race<P: Port>(partition: &'static Partition<P>) {
///     std::thread::spawn(|| partition.serve(&WORKER, None));
///     partition.serve(&WORKER, None);
/// }
/// ```
///
/// Safe code cannot make one from a worker:
///
/// ```compile_fail,E0133
/// # use punctual_core::{CurrentWorker, Worker};
/// static WORKER: Worker = Worker::new(1);
/// let me = CurrentWorker::new(&WORKER);
/// ```
#[derive(Clone, Copy)]
pub struct CurrentWorker {
    worker: &'static Worker,
    stays: PhantomData<*const ()>,
}

impl CurrentWorker {
    /// The calling thread as `worker`. Keeps the worker's record, which may be of another thread.
    ///
    /// # Safety
    /// * What this thread does with it, and what other threads do with one of the same worker, never overlaps: one of the
    ///   two ends, and happens before the other begins. A call lasts until it returns, with all the jobs and critical
    ///   sections in it, and a [`Preemption`](crate::Preemption) until it is finished or dropped. An interrupt handler
    ///   counts as a thread, except that it may [tick](crate::Partition::tick), [serve](crate::Partition::serve) and
    ///   [preempt](crate::Partition::preempt_by_interrupt) as the thread that it interrupts, if that is the only one of its partition and leaves it to the handler to release what is
    ///   due; see the module `interrupt`.
    /// * It is given to the one partition that has the worker among its [`workers`](crate::Partition::workers), and to
    ///   the levels of that partition.
    #[inline]
    pub const unsafe fn new(worker: &'static Worker) -> Self {
        Self { worker, stays: PhantomData }
    }

    /// The worker's record, which any thread may read.
    #[inline]
    pub const fn worker(self) -> &'static Worker {
        self.worker
    }

    /// Resets the record for the calling thread, whose TID is `thread`, before it takes part.
    ///
    /// # Panics
    /// If the thread that had the worker before left a level occupied.
    pub fn enter(self, thread: u32, real_time: bool) {
        assert_eq!(self.held(), 0, "a worker's previous thread left a level occupied");
        self.worker.thread.store(thread, Ordering::Relaxed);
        self.worker.real_time.store(real_time, Ordering::Relaxed);
        self.worker.running.store(0, Ordering::Relaxed);
        self.worker.calls.store(NEVER, Ordering::Relaxed);
        self.worker.boost.store(0, Ordering::Relaxed);
        self.worker.signal.store(0, Ordering::Relaxed);
        self.worker.sleeps_until.store(0, Ordering::Relaxed);
    }

    /// Makes this the one thread of its partition that runs jobs, of every level.
    ///
    /// # Safety
    /// Until [`enter`](Self::enter), no other thread runs jobs of the partition's local levels: data that their jobs
    /// share on one thread (see [`Level::keeps_to`](crate::Level::keeps_to)) relies on it. Nor does another thread keep the time
    /// of any of its levels, as a level's worker does by [`release_due`](crate::Partition::release_due),
    /// [`work`](crate::Partition::work) or when it runs jobs of its level.
    pub unsafe fn set_alone(self) {
        self.worker.calls.store(ALONE, Ordering::Relaxed);
    }

    /// As [`set_alone`](Self::set_alone), for a thread that polls: it also keeps the time of every level and looks at the
    /// inboxes between jobs.
    ///
    /// # Safety
    /// As for [`set_alone`](Self::set_alone).
    pub unsafe fn set_polling(self) {
        self.worker.calls.store(POLLS, Ordering::Relaxed);
    }

    /// Whether it is this worker.
    #[inline]
    pub(crate) fn is(self, worker: &Worker) -> bool {
        core::ptr::eq(self.worker, worker)
    }

    /// The levels this thread occupies, which it alone changes.
    #[inline]
    pub(crate) fn held(self) -> u32 {
        self.worker.held.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_held(self, held: u32) {
        // Relaxed: a thread that looks for a holder relies on the word and a fence, see `pi_wait`.
        self.worker.held.store(held, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn set_running(self, level: u8) {
        self.worker.running.store(level, Ordering::Relaxed);
    }
}

impl Deref for CurrentWorker {
    type Target = Worker;

    #[inline]
    fn deref(&self) -> &Worker {
        self.worker
    }
}

impl core::fmt::Debug for CurrentWorker {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("CurrentWorker").field(self.worker).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn entering_resets_the_record() {
        static WORKER: Worker = Worker::new(1);
        // SAFETY: only this test uses the worker.
        let me = unsafe { CurrentWorker::new(&WORKER) };
        me.set_running(3);
        WORKER.allow_calls(true);
        let words = || [&WORKER.boost, &WORKER.signal];
        words().iter().for_each(|word| word.store(7, Ordering::Relaxed));
        WORKER.sleeps_until.store(7, Ordering::Relaxed);
        me.enter(5, true);
        assert_eq!((me.thread(), me.is_real_time(), me.running()), (5, true, 0));
        assert_eq!(WORKER.calls.load(Ordering::Relaxed), NEVER);
        assert_eq!(words().map(|word| word.load(Ordering::Relaxed)), [0, 0]);
        assert_eq!(WORKER.sleeps_until.load(Ordering::Relaxed), 0);
    }

    #[test]
    #[should_panic(expected = "left a level occupied")]
    fn refuses_a_worker_that_still_occupies_a_level() {
        static WORKER: Worker = Worker::new(1);
        // SAFETY: only this test uses the worker.
        let me = unsafe { CurrentWorker::new(&WORKER) };
        me.set_held(1);
        me.enter(1, false);
    }
}

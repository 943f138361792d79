//! The proof that the calling thread is a worker.
//!
//! A worker's record has one writer, its own thread, and a partition's workers perform almost all
//! of its operations. So an operation that requires a worker's thread takes a [`CurrentWorker`],
//! which stays on the thread that created it. Creating one is unsafe; using it is not.

use core::marker::PhantomData;
use core::ops::Deref;

use crate::atomic::Ordering;
use crate::worker::{ALONE, NEVER, POLLS, Worker};

/// The worker of the calling thread.
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
    /// Makes the calling thread act as `worker`. Does not change the worker's record, which may be
    /// that of another thread.
    ///
    /// # Safety
    /// * The actions of this thread with the value, and those of other threads with a value of the
    ///   same worker, never overlap: one thread finishes, and its actions happen before the other
    ///   begins. A call lasts until it returns, with all the jobs and critical sections in it, and
    ///   a [`Preemption`](crate::Preemption) until it is finished or dropped. An interrupt handler
    ///   counts as a thread, with one exception: it may [tick](crate::Partition::tick),
    ///   [serve](crate::Partition::serve) and [preempt](crate::Partition::preempt_by_interrupt) as
    ///   the thread that it interrupts, if that thread is the only one of its partition and leaves
    ///   the release of due jobs to the handler; see the module `interrupt`.
    /// * It is passed only to the one partition that has the worker among its
    ///   [`workers`](crate::Partition::workers), and to the levels of that partition.
    #[inline]
    pub const unsafe fn new(worker: &'static Worker) -> Self {
        Self { worker, stays: PhantomData }
    }

    /// Returns the worker's record, which any thread may read.
    #[inline]
    pub const fn worker(self) -> &'static Worker {
        self.worker
    }

    /// Resets the record for the calling thread, whose TID is `thread`, before it takes part.
    ///
    /// # Panics
    /// If the worker's previous thread left a level occupied.
    pub fn enter(self, thread: u32, real_time: bool) {
        assert_eq!(self.held(), 0, "a worker's previous thread left a level occupied");
        self.worker.thread.store(thread, Ordering::Relaxed);
        self.worker.real_time.store(real_time, Ordering::Relaxed);
        self.worker.running.store(0, Ordering::Relaxed);
        self.worker.set_calls(NEVER);
        self.worker.boost.store(0, Ordering::Relaxed);
        self.worker.signal.store(0, Ordering::Relaxed);
        self.worker.sleeps_until.store(0, Ordering::Relaxed);
    }

    /// Makes this the only thread of its partition that runs jobs, at every level.
    ///
    /// # Safety
    /// Until [`enter`](Self::enter), no other thread runs jobs of the partition's local levels:
    /// data that their jobs share on one thread (see [`Level::keeps_to`](crate::Level::keeps_to))
    /// relies on it. No other thread acts as the timekeeper of any of its levels either, as a
    /// level's worker does in [`release_due`](crate::Partition::release_due), in
    /// [`work`](crate::Partition::work) and when it runs jobs of its level.
    pub unsafe fn set_alone(self) {
        self.worker.set_calls(ALONE);
    }

    /// As [`set_alone`](Self::set_alone), for a thread that polls: it is also the timekeeper of
    /// every level and checks the inboxes between jobs.
    ///
    /// # Safety
    /// As for [`set_alone`](Self::set_alone).
    pub unsafe fn set_polling(self) {
        self.worker.set_calls(POLLS);
    }

    /// Returns `true` if `worker` is this worker.
    #[inline]
    pub(crate) fn is(self, worker: &Worker) -> bool {
        core::ptr::eq(self.worker, worker)
    }

    /// Returns the levels this thread occupies, which only this thread changes.
    #[inline]
    pub(crate) fn held(self) -> u32 {
        self.worker.held.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_held(self, held: u32) {
        // Relaxed: a thread that searches for a holder relies on the word and a fence, see
        // `pi_wait`.
        self.worker.held.store(held, Ordering::Relaxed);
    }

    /// [`running`](Worker::running), in one instruction less: a comparison with it reads memory.
    ///
    /// # Safety
    /// No interrupt handler acts as this thread.
    #[inline(always)]
    pub unsafe fn running_uninterrupted(self) -> u8 {
        #[cfg(loom)]
        return self.running();
        // SAFETY: only this thread writes the level, and no handler interrupts it to do so, by this
        // function's contract: so no write is concurrent.
        #[cfg(not(loom))]
        unsafe {
            self.worker.running.as_ptr().read()
        }
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
    fn entering_resets_record() {
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
    fn rejects_worker_that_occupies_level() {
        static WORKER: Worker = Worker::new(1);
        // SAFETY: only this test uses the worker.
        let me = unsafe { CurrentWorker::new(&WORKER) };
        me.set_held(1);
        me.enter(1, false);
    }
}

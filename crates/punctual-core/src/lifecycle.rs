//! Starting and stopping a partition.

use crate::Instant;
use crate::atomic::Ordering;
use crate::current::CurrentWorker;
use crate::partition::{Dispatch, Partition};
use crate::port::Port;
use crate::word::MAX_LEVEL;
use crate::word_cell::WordCell;

impl<P: Port> Partition<P> {
    /// Occupies the top level, which holds back all spawned jobs; for the thread that runs `init`.
    ///
    /// # Panics
    /// If this thread already occupies it.
    pub fn hold_all_jobs(&self, me: CurrentWorker) {
        assert!(me.level() < MAX_LEVEL, "everything is held already");
        self.raise(me, MAX_LEVEL);
    }

    /// Ends [`hold_all_jobs`](Self::hold_all_jobs): starts the periodic grids at `start` and serves
    /// the ready levels.
    ///
    /// # Safety
    /// The worker has called [`hold_all_jobs`](Self::hold_all_jobs) and has not ended it, and this
    /// thread has left all critical sections that it has entered since.
    pub unsafe fn go(&'static self, me: CurrentWorker, start: Instant) {
        self.lay_grids(start);
        self.lower(me, MAX_LEVEL);
    }

    /// Starts the periodic grids at `start`, from any thread, while timekeepers may already be
    /// active: once per run.
    pub fn lay_grids(&self, start: Instant) {
        for level in self.levels() {
            level.start(start);
            // Its worker may already be asleep without a timeout.
            self.armed(level, start);
        }
    }

    /// Ends [`hold_all_jobs`](Self::hold_all_jobs) without starting the grids: after a failed
    /// `init`, or if they are [started](Self::lay_grids) separately.
    ///
    /// # Safety
    /// As for [`go`](Self::go).
    pub unsafe fn abandon(&'static self, me: CurrentWorker) {
        self.lower(me, MAX_LEVEL);
    }

    /// Returns `true` if the partition is stopping: no more jobs are released, and released jobs
    /// finish.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        // Acquire: a worker that stops has seen every level marked ready before `stop`.
        self.stopping.load(Ordering::Acquire)
    }

    /// As [`is_stopping`](Self::is_stopping), for callers that only decide whether to begin an
    /// operation: synchronizes with no other thread.
    #[inline(always)]
    pub fn starts_no_job(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Begins to stop, and wakes every worker.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        for worker in self.workers() {
            self.port().wake(worker);
        }
    }

    /// Clears all state, for another run.
    ///
    /// # Safety
    /// No thread takes part in the partition and none spawns into it.
    pub unsafe fn reset(&self) {
        for level in self.levels() {
            // SAFETY: no thread takes part in the partition or spawns into it, by this function's
            // contract.
            unsafe { level.reset() };
        }
        // SAFETY: no thread takes part in the partition or spawns into it, by this function's
        // contract.
        unsafe { self.word_cell().reset() };
        self.dispatch.reset();
        self.stopping.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::port::tests::Still;
    use crate::sync::Ordering;
    use crate::timers::NEVER;
    use crate::{CurrentWorker, Instant, Jobs, Level, Node, OneThread, Partition, Queue, Worker};

    #[test]
    fn reset_partition_equals_a_new_one() {
        static QUEUE: Queue = Queue::new();
        static NODES: [Node; 1] = [const { Node::new() }; 1];
        static WORKER: Worker = Worker::new(0);
        static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[], Jobs::of(&|_, _, _| None));
        // SAFETY: nothing else uses the level or the worker.
        static PARTITION: Partition<Still> = unsafe { Partition::new(Still::new(), &[&LEVEL], &[&WORKER]) };
        // SAFETY: only this test uses the worker.
        let me = unsafe { CurrentWorker::new(&WORKER) };
        let fields = || {
            let Partition { dispatch: OneThread { alarm, timed }, stopping, .. } = &PARTITION;
            let is_stopping = stopping.load(Ordering::Relaxed);
            (alarm.time(), timed.load(Ordering::Relaxed), is_stopping, PARTITION.snapshot())
        };
        let new = fields();
        // SAFETY: there is no other thread.
        unsafe { me.set_alone() };
        PARTITION.lay_grids_here(Instant::from_ticks(50));
        // SAFETY: this thread stands for the handler and for the interrupted thread.
        assert!(unsafe { PARTITION.tick(me, Instant::from_ticks(5)) }.1.is_none());
        PARTITION.lay_grids_here(Instant::from_ticks(50));
        PARTITION.mark_ready(&LEVEL);
        PARTITION.stop();
        let used = fields();
        assert_eq!(used, (NEVER, 1, true, new.3.mark_ready(1)));
        // SAFETY: there is no other thread.
        unsafe { PARTITION.reset() };
        assert_eq!(fields(), new);
    }
}

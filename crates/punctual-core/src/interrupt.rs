//! Interrupts, on a CPU whose one thread runs every level of a partition.
//!
//! There a handler releases jobs as a foreign thread does, by [`Partition::spawn_from_outside`], and by the clock, by
//! [`Partition::tick`]. When it is done it [serves](Partition::serve) what is ready above the partition's level, as the
//! interrupted thread: on its stack, with its worker, and with interrupts unmasked, so that this nests. A job that would be the first to
//! be served need not be queued for that: [`Partition::preempt_by_interrupt`].
//!
//! # Why a handler may serve in the midst of anything that its thread does
//!
//! The thread does not go on before the handler has returned. So all that the one could notice of the other is a change that is
//! still there then, and all that the handler could damage is what it finds half done.
//!
//! * *The worker's record.* Serving occupies a level and vacates it, enters a job and leaves it, and so puts `held` and
//!   `running` back to what they were. The thread changes them by a load and a store; between the two it finds again what it
//!   has loaded. The handler never finds a level in the word's set that `held` lacks to be the highest of its jobs: it runs jobs
//!   only after it has occupied a level above all others itself.
//! * *The word.* It only ever changes by a compare-and-swap or an atomic AND or OR, so the thread sees what the handler did.
//!   The set of occupied levels is the same again; levels may have become ready, or ceased to be.
//! * *Queues.* Only who occupies a level takes jobs from it. The handler occupies levels above all that are occupied, which
//!   the thread has not begun to occupy or has vacated. Where the thread is about to do one or the other, the word says
//!   which it is.
//! * *Waiting.* Who runs jobs occupies the highest level, so raising never waits.

use crate::Instant;
use crate::atomic::{Ordering, fence};
use crate::current::CurrentWorker;
use crate::level::Level;
use crate::partition::{Partition, Preemption};
use crate::port::Port;
use crate::timers::NEVER;
use crate::word::bit;
use crate::word_cell::WordCell;

impl<P: Port> Partition<P> {
    /// Occupies `level` for a job that the handler of an interrupt runs right now, as the thread `me` that it has interrupted.
    ///
    /// `None` if the job has to be queued: the level is not above the partition's, or what is ready there or above goes first. The
    /// interrupted thread may be about to serve that, so unlike in [`preempt`](Self::preempt) it is looked for.
    ///
    /// # Safety
    /// * `level` is one of this partition's.
    /// * `me` is the one thread of the partition, which the caller has interrupted, and goes on when the preemption is finished.
    #[inline]
    pub unsafe fn preempt_by_interrupt(
        &'static self,
        me: CurrentWorker,
        level: &'static Level,
    ) -> Option<Preemption<P>> {
        let number = level.number();
        let word = self.snapshot();
        if !word.is_below(number) || word.is_ready_from(number) {
            return None;
        }
        // Nobody else occupies levels: the one thread does not run. What other CPUs mark ready meanwhile they have this one look at.
        // Acquire: as in `start`.
        self.word_cell().fetch_or(bit(number).into(), Ordering::Acquire);
        me.set_held(me.held() | bit(number));
        Some(Preemption::enter(self, me, level))
    }

    /// Releases at every level what is due at `now`, and returns the next time at which something is. For the handler of
    /// the timer of a CPU whose one thread, `me`, runs every level; it serves afterwards.
    ///
    /// A timer that is armed from now on for an earlier time [wakes](Port::wake) its level's worker.
    ///
    /// # Panics
    /// If `me` is not the one thread of its partition.
    pub fn tick(&self, me: CurrentWorker, now: Instant) -> Option<Instant> {
        assert!(me.is_alone(), "another thread keeps the time");
        let earliest = loop {
            let mut earliest = NEVER;
            for level in self.levels().iter().copied() {
                let next = self.release_and_look(me, level, now);
                level.worker().sleeps_until.store(next, Ordering::Relaxed);
                earliest = earliest.min(next);
            }
            // Pairs with the fence in `armed`, as that in `sleep` does.
            fence(Ordering::SeqCst);
            // What another CPU has armed since the look, without seeing until when this one sleeps.
            if self.is_stopping() || !self.levels().iter().any(|level| level.has_changes()) {
                break earliest;
            }
        };
        (earliest != NEVER).then(|| Instant::from_ticks(earliest))
    }

    /// Releases what is due at `level`, and returns when something is next.
    fn release_and_look(&self, me: CurrentWorker, level: &'static Level, now: Instant) -> u64 {
        if self.is_stopping() {
            return NEVER;
        }
        if level.may_be_due(now.as_ticks()) {
            self.release_due(me, level, now);
        }
        // SAFETY: the one thread of the partition keeps the time of every level, and leaves that to this handler.
        unsafe { level.next() }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::sync::{AtomicU32, AtomicU64};
    use crate::{
        CurrentWorker, Duration, Instant, Level, Node, OverrunPolicy, Partition, Periodic, Port, Worker,
    };
    use crate::{Jobs, Queue};

    struct Still;

    impl Port for Still {
        type Word = AtomicU64;

        fn now(&self) -> Instant {
            Instant::from_ticks(0)
        }
        fn wake(&self, _: &Worker) {}
        fn wait(&self, _: &Worker, _: Option<Instant>) -> bool {
            false
        }
        fn wait_while(&self, _: &AtomicU32, _: u32) {}
        fn wake_all(&self, _: &AtomicU32) {}
        fn boost(&self, _: &AtomicU32) -> bool {
            false
        }
        fn unboost(&self, _: &AtomicU32) {}
    }

    static GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), OverrunPolicy::Skip, None);
    static QUEUE: Queue = Queue::new();
    static NODES: [Node; 1] = [const { Node::new() }; 1];
    static WORKER: Worker = Worker::new(1);
    static IDLE: Worker = Worker::new(0);
    static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[&GRID], Jobs::of(&|_, _, _| None));
    // SAFETY: nothing else uses the level or the workers.
    static PARTITION: Partition<Still> = unsafe { Partition::new(Still, &[&LEVEL], &[&IDLE, &WORKER]) };

    #[test]
    fn a_tick_releases_what_is_due_and_tells_what_is_next() {
        // SAFETY: only this test uses the worker.
        let me = unsafe { CurrentWorker::new(&IDLE) };
        me.enter(0, true);
        // SAFETY: there is no other thread.
        unsafe { me.set_alone() };
        let at = Instant::from_ticks;
        assert_eq!(PARTITION.tick(me, at(0)), None, "no grid is laid");
        LEVEL.start(at(50));
        assert_eq!(PARTITION.tick(me, at(49)), Some(at(50)));
        assert!(!PARTITION.snapshot().is_ready(1));
        assert_eq!(PARTITION.tick(me, at(50)), Some(at(150)));
        assert!(PARTITION.snapshot().is_ready(1) && PARTITION.snapshot().must_serve());
        PARTITION.serve(me, None);
        assert_eq!(me.level(), 0);
        // SAFETY: this thread stands for the handler and for what that interrupts.
        let preempt = || unsafe { PARTITION.preempt_by_interrupt(me, &LEVEL) };
        let preemption = preempt().expect("nothing waits");
        assert_eq!((PARTITION.snapshot().level(), me.running()), (1, 1));
        assert!(preempt().is_none(), "it is not above itself");
        preemption.finish(None);
        // SAFETY: the level is the partition's, and its job has run.
        unsafe { PARTITION.spawn_from_outside(&LEVEL, 0) };
        assert!(preempt().is_none(), "what waits at the level goes first");
        PARTITION.serve(me, None);
        PARTITION.stop();
        assert_eq!(PARTITION.tick(me, at(1000)), None, "nothing is released any more");
        assert!(!PARTITION.snapshot().is_ready(1));
    }
}

//! Interrupts, on a CPU whose one thread runs every level of a partition.
//!
//! There a handler releases jobs as a foreign thread does, by [`Partition::spawn_from_outside`], and by the clock, by
//! [`Partition::tick`]. When it is done it [serves](Partition::serve) what is ready above the partition's level, as the
//! interrupted thread: on its stack, with its worker, and with interrupts unmasked, so that this nests.
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
use crate::partition::Partition;
use crate::port::Port;
use crate::timers::NEVER;

impl<P: Port> Partition<P> {
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

    struct Still;

    impl Port for Still {
        type Word = AtomicU64;

        fn now(&self) -> Instant {
            Instant::from_ticks(0)
        }
        fn wake(&self, _: &Worker) {}
        fn wait(&self, _: &Worker, _: Option<Instant>) {}
        fn wait_while(&self, _: &AtomicU32, _: u32) {}
        fn wake_all(&self, _: &AtomicU32) {}
        fn boost(&self, _: &AtomicU32) -> bool {
            false
        }
        fn unboost(&self, _: &AtomicU32) {}
    }

    static GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), OverrunPolicy::Skip, None);
    static NODES: [Node; 1] = [const { Node::new() }; 1];
    static WORKER: Worker = Worker::new(1);
    static IDLE: Worker = Worker::new(0);
    static LEVEL: Level = Level::new(1, &WORKER, &NODES, &[&GRID], &|_, _, _| None);
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
        PARTITION.stop();
        assert_eq!(PARTITION.tick(me, at(1000)), None, "nothing is released any more");
        assert!(!PARTITION.snapshot().is_ready(1));
    }
}

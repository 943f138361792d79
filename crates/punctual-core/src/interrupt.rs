//! Interrupts, on a CPU whose one thread runs every level of a partition.
//!
//! On such a CPU a handler releases jobs as a foreign thread does, with
//! [`Partition::spawn_from_outside`], and timed jobs with [`Partition::tick`]. It then
//! [serves](Partition::serve) the ready levels above the partition's level, as the interrupted
//! thread: on its stack, with its worker, and with interrupts unmasked, so that handlers nest. A
//! job that would be served first bypasses the queue: [`Partition::preempt_by_interrupt`], and
//! [`Expired`] for timed jobs.
//!
//! # Why a handler may serve at any point of its thread
//!
//! The thread does not continue before the handler has returned. So the thread could only observe
//! changes that persist until then, and the handler could only damage state that it finds half
//! updated.
//!
//! * *The worker's record.* Serving occupies and vacates a level, and enters and leaves a job, and
//!   so restores `held`, the set of occupied levels (see [`OneThread`](crate::OneThread)), and
//!   `running`. The thread changes them by a load and a store; a handler between the two leaves the
//!   loaded value in place.
//! * *Ready levels.* The set only changes by an atomic AND or OR, so the thread sees the handler's
//!   changes: levels may have become ready, or ceased to be.
//! * *Queues.* Only the thread that occupies a level takes jobs from it. The handler occupies
//!   levels above all occupied ones, which the thread has not begun to occupy or has vacated. If
//!   the thread is about to occupy or vacate a level, the word determines which of the two states
//!   applies.
//! * *Waiting.* The running job occupies the highest level, so a raise never waits.

use crate::Instant;
use crate::atomic::{Ordering, fence};
use crate::current::CurrentWorker;
use crate::jobs::{PackedStamp, Popped};
use crate::level::Level;
use crate::partition::{OneThread, Partition, PortOf, Preemption};
use crate::port::Port;
use crate::timers::NEVER;

impl<P: PortOf<OneThread>> Partition<P> {
    /// Occupies `level` for a job that an interrupt handler runs at once, as the interrupted thread
    /// `me`.
    ///
    /// Returns `None` if the job has to be queued: the level is not above the partition's, or a job
    /// ready at that level or above goes first. Unlike [`preempt`](Self::preempt), this checks all
    /// ready levels, since the interrupted thread may be about to serve one.
    ///
    /// # Safety
    /// * `level` is one of this partition's.
    /// * `me` is the one thread of the partition, which the caller has interrupted, and which
    ///   continues once the preemption is finished.
    #[inline]
    pub unsafe fn preempt_by_interrupt(
        &'static self,
        me: CurrentWorker,
        level: &'static Level,
    ) -> Option<Preemption<P>> {
        self.occupy_first(me, level.number()).then(|| Preemption::enter(self, me, level))
    }

    /// Releases the jobs due at `now` at every level. Returns the next due time, and a job for the
    /// handler to run itself: the earliest due job of the highest due level, if that level [can be
    /// occupied](Self::preempt_by_interrupt), in which case it is occupied. For the timer handler
    /// of a CPU whose one thread, `me`, runs every level. The handler sets the timer, runs the job
    /// with interrupts unmasked, and then serves.
    ///
    /// A timer armed after this call for an earlier time [wakes](Port::wake) its level's worker.
    ///
    /// # Safety
    /// `me` is the one thread of the partition, which the caller has interrupted, and which
    /// continues once the returned job has run.
    pub unsafe fn tick(
        &'static self,
        me: CurrentWorker,
        now: Instant,
    ) -> (Option<Instant>, Option<Expired<P>>) {
        // A thread that arms a timer after this wakes the CPU. The scan below sees timers armed
        // before.
        self.dispatch.alarm.hide();
        // Pairs with the fence in `armed`.
        fence(Ordering::SeqCst);
        let (mut earliest, mut expired) = (NEVER, None);
        let mut timed = if self.starts_no_job() { 0 } else { self.dispatch.timed.load(Ordering::Relaxed) };
        // From the highest level down, since the handler can run only a job of the highest due
        // level.
        while timed != 0 {
            let place = timed.ilog2();
            timed &= !(1 << place);
            // SAFETY: `armed` and `lay_grids_here` set only bits of existing levels.
            let level = unsafe { *self.levels().get_unchecked(place as usize) };
            // SAFETY: the one thread of the partition is the timekeeper of every level, and
            // delegates that to this handler.
            let next = unsafe { level.next() };
            if next > now.as_ticks() {
                if next == NEVER {
                    self.forget(place);
                }
                earliest = earliest.min(next);
                continue;
            }
            let mut next = 0;
            // SAFETY: the level is the partition's, `me` is its one thread, and it continues when
            // this has run, by this function's contract.
            if let Some(preemption) = unsafe { self.preempt_by_interrupt(me, level) } {
                let node;
                // SAFETY: this handler is the timekeeper of every level, see `next_of`, and has
                // occupied this one. A job is due.
                (node, next) = unsafe { level.take_due() };
                expired = Some(Expired { preemption, me, level, node });
            }
            if next <= now.as_ticks() {
                // Releases the other due jobs.
                next = self.release_and_check(me, level, now);
            }
            earliest = earliest.min(next);
            break;
        }
        if timed != 0 {
            earliest = earliest.min(self.release_at(me, timed, now));
        }
        self.dispatch.alarm.set(earliest);
        ((earliest != NEVER).then(|| Instant::from_ticks(earliest)), expired)
    }

    /// Releases the due jobs of the levels with these indices; returns their next due time.
    #[inline(never)]
    fn release_at(&self, me: CurrentWorker, mut timed: u32, now: Instant) -> u64 {
        let mut earliest = NEVER;
        while timed != 0 {
            let place = timed.ilog2();
            timed &= !(1 << place);
            let next = self.release_and_check(me, self.levels()[place as usize], now);
            if next == NEVER {
                self.forget(place);
            }
            earliest = earliest.min(next);
        }
        earliest
    }

    /// Releases the due jobs of `level`; returns its next due time.
    #[inline(never)]
    fn release_and_check(&self, me: CurrentWorker, level: &'static Level, now: Instant) -> u64 {
        let mut next = self.next_of(level);
        if next <= now.as_ticks() {
            self.release_due(me, level, now);
            next = self.next_of(level);
        }
        next
    }

    /// Stops scanning a level on which no timer is armed.
    #[cold]
    fn forget(&self, place: u32) {
        // Acquire: a thread that set the bit before this has recorded its armed timer before.
        self.dispatch.timed.fetch_and(!(1 << place), Ordering::Acquire);
        if self.levels()[place as usize].has_changes() {
            self.dispatch.timed.fetch_or(1 << place, Ordering::Relaxed);
        }
    }

    /// Returns the next due time at `level`.
    fn next_of(&self, level: &'static Level) -> u64 {
        // SAFETY: the one thread of the partition is the timekeeper of every level, and delegates
        // that to the calling handler.
        if self.is_stopping() { NEVER } else { unsafe { level.next() } }
    }
}

/// A due job whose level the timer handler has occupied to run it.
#[must_use = "the level is occupied until it has run"]
#[derive(Debug)]
pub struct Expired<P: Port + 'static> {
    preemption: Preemption<P>,
    me: CurrentWorker,
    level: &'static Level,
    /// `None` if the job was canceled in the meantime.
    node: Option<u32>,
}

impl<P: Port> Expired<P> {
    /// Runs the job and those that have become ready at its level, and serves the levels that may
    /// then start.
    #[inline]
    pub fn run(self) {
        let Self { preemption, me, level, node } = self;
        // SAFETY: this thread occupies the level, and has taken the node from the expired timers.
        let end = node.and_then(|node| unsafe {
            level.waiting().run(me, Popped::of(node), PackedStamp::from(None)).into()
        });
        preemption.finish(end);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::port::tests::Still;
    use crate::sync::{AtomicU32, Ordering};
    use crate::{
        CurrentWorker, Duration, Instant, Jobs, Level, Node, Partition, Periodic, Queue, Reaction, Worker,
    };

    static GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
    static QUEUE: Queue = Queue::new();
    static NODES: [Node; 1] = [const { Node::new() }; 1];
    static WORKER: Worker = Worker::new(1);
    static IDLE: Worker = Worker::new(0);
    static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[&GRID], Jobs::of(&|_, _, _| None));
    // SAFETY: nothing else uses the level or the workers.
    static PARTITION: Partition<Still> =
        unsafe { Partition::new(Still::new(), &[&LEVEL], &[&IDLE, &WORKER]) };

    #[test]
    fn tick_releases_due_jobs_and_returns_the_next_time() {
        // SAFETY: only this test uses the worker.
        let me = unsafe { CurrentWorker::new(&IDLE) };
        me.enter(0, true);
        // SAFETY: there is no other thread.
        unsafe { me.set_alone() };
        let at = Instant::from_ticks;
        // SAFETY: this thread stands for the handler and for the interrupted thread.
        let tick = |now| unsafe { PARTITION.tick(me, at(now)) };
        let next = |now| {
            let (next, expired) = tick(now);
            assert!(expired.is_none());
            next
        };
        assert_eq!(next(0), None, "no grid has started");
        PARTITION.lay_grids_here(at(50));
        assert_eq!(next(49), Some(at(50)));
        assert!(!PARTITION.snapshot().is_ready(1));
        let (then, expired) = tick(50);
        assert_eq!(then, Some(at(150)));
        assert_eq!((PARTITION.snapshot().level(), PARTITION.snapshot().is_ready(1)), (1, false));
        expired.expect("no other job goes first").run();
        assert_eq!((PARTITION.snapshot().level(), me.level(), me.running()), (0, 0, 0));
        // SAFETY: this thread stands for the handler and for the interrupted thread.
        let preempt = || unsafe { PARTITION.preempt_by_interrupt(me, &LEVEL) };
        let preemption = preempt().expect("no job is queued");
        assert_eq!((PARTITION.snapshot().level(), me.running()), (1, 1));
        assert!(preempt().is_none(), "the level is not above itself");
        // SAFETY: the level is the partition's.
        let call = || unsafe { PARTITION.call(me, &LEVEL, || None) }.is_ok();
        assert!(!call(), "a job spawned from it is queued");
        preemption.finish(None);
        assert!(call(), "the preemption is over");
        // SAFETY: the level is the partition's, and its job has run.
        unsafe { PARTITION.spawn_from_outside(&LEVEL, 0) };
        assert!(preempt().is_none(), "a job queued at the level goes first");
        assert!(!call(), "and before a call");
        PARTITION.serve(me, None);
        PARTITION.stop();
        assert_eq!(next(1000), None, "no job is released");
        assert!(!PARTITION.snapshot().is_ready(1));
    }

    static ONE_GRID: Periodic =
        Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
    static OTHER_GRID: Periodic =
        Periodic::new(1, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
    static TWO_NODES: [Node; 2] = [const { Node::new() }; 2];
    static TWO_QUEUE: Queue = Queue::new();
    static TWO_WORKER: Worker = Worker::new(1);
    static TWO_IDLE: Worker = Worker::new(0);
    static TWO_RAN: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
    static TWO_LEVEL: Level = Level::new(
        1,
        &TWO_WORKER,
        &TWO_QUEUE,
        &TWO_NODES,
        &[&ONE_GRID, &OTHER_GRID],
        Jobs::of(&|_, node, _| {
            TWO_RAN[node as usize].fetch_add(1, Ordering::Relaxed);
            None
        }),
    );
    // SAFETY: nothing else uses the level or the workers.
    static TWO: Partition<Still> =
        unsafe { Partition::new(Still::new(), &[&TWO_LEVEL], &[&TWO_IDLE, &TWO_WORKER]) };

    #[test]
    fn tick_takes_one_of_several_due_jobs_and_queues_the_rest() {
        // SAFETY: only this test uses the worker.
        let me = unsafe { CurrentWorker::new(&TWO_IDLE) };
        me.enter(0, true);
        // SAFETY: there is no other thread.
        unsafe { me.set_alone() };
        TWO.lay_grids_here(Instant::from_ticks(50));
        // SAFETY: this thread stands for the handler and for the interrupted thread.
        let (next, expired) = unsafe { TWO.tick(me, Instant::from_ticks(50)) };
        assert_eq!(next, Some(Instant::from_ticks(150)));
        expired.expect("no other job goes first").run();
        assert_eq!([&TWO_RAN[0], &TWO_RAN[1]].map(|ran| ran.load(Ordering::Relaxed)), [1, 1]);
    }

    /// Statics of a level with a grid.
    macro_rules! level_with_grid {
        ($name:ident = $number:literal) => {
            mod $name {
                use super::*;

                static GRID: Periodic =
                    Periodic::new(0, 1, Duration::from_ticks(100), Duration::from_ticks(0), Reaction::Skip);
                static QUEUE: Queue = Queue::new();
                static NODES: [Node; 1] = [const { Node::new() }; 1];
                pub(super) static WORKER: Worker = Worker::new($number);
                pub(super) static LEVEL: Level =
                    Level::new($number, &WORKER, &QUEUE, &NODES, &[&GRID], Jobs::of(&|_, _, _| None));
            }
        };
    }

    level_with_grid!(one = 1);
    level_with_grid!(two = 2);
    level_with_grid!(three = 3);

    static ALONE: Worker = Worker::new(0);
    // SAFETY: nothing else uses the levels or the workers.
    static THREE: Partition<Still> = unsafe {
        Partition::new(
            Still::new(),
            &[&one::LEVEL, &two::LEVEL, &three::LEVEL],
            &[&ALONE, &one::WORKER, &two::WORKER, &three::WORKER],
        )
    };

    #[test]
    fn tick_returns_highest_due_level_and_marks_the_others() {
        // SAFETY: only this test uses the worker.
        let me = unsafe { CurrentWorker::new(&ALONE) };
        me.enter(0, true);
        // SAFETY: there is no other thread.
        unsafe { me.set_alone() };
        let at = Instant::from_ticks;
        // SAFETY: this thread stands for the handler and for the interrupted thread.
        let tick = |now| unsafe { THREE.tick(me, at(now)) };
        for (level, start) in [(&one::LEVEL, 50), (&two::LEVEL, 50), (&three::LEVEL, 60)] {
            level.start(at(start));
            THREE.armed(level, at(start));
        }
        let (next, expired) = tick(50);
        assert_eq!(next, Some(at(60)));
        let word = THREE.snapshot();
        assert_eq!(
            (word.level(), word.is_ready(1), word.is_ready(2), word.is_ready(3)),
            (2, true, false, false)
        );
        // A thread that arms a timer for an earlier time has to wake the CPU.
        assert_eq!(THREE.dispatch.alarm.time(), 60);
        // A job above interrupts it before its first instruction. Its own grid skips, since its job
        // has not run yet.
        let (next, above) = tick(150);
        assert_eq!(next, Some(at(160)));
        let word = THREE.snapshot();
        assert_eq!((word.level(), word.is_ready(2), word.is_ready(3)), (3, false, false));
        above.expect("its level is above the running one").run();
        assert_eq!(THREE.snapshot().level(), 2);
        expired.expect("no other job goes first").run();
        // The ready job below has run after it.
        let word = THREE.snapshot();
        assert_eq!((word.level(), word.highest_ready(), me.level(), me.running()), (0, 0, 0, 0));
    }
}

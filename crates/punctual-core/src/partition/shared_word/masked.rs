//! Levels that are constants: occupied and vacated by constant masks of the word.
//!
//! These are the common cases of [`Partition`]'s operations, in few instructions. Each falls back
//! on the general operation.
//!
//! # Why the masks decide as the rules do
//!
//! Each mask is a constant of the task, so it must not depend on what the thread occupies.
//!
//! * *Raise*, from a job of level `l`: no level above `l` is occupied. The thread occupies `l`, so
//!   `l` is then its own level and the partition's, as rule *Raise* requires. A thread that
//!   occupies more, in a nested section, fails the test and takes the general operation.
//! * *Start*, of a job of level `l`: no level from `l` on is occupied, which is rule *Start*, and
//!   `l` is not marked ready, so that no queued job is overtaken. The thread's own levels are in
//!   the word, so it is below `l`, too.
//! * *Which thread*: the set `callable` of the thread's [`Worker`](crate::Worker) contains `l` only
//!   if rules 3 and 6 permit the call and the thread is not the timekeeper of `l`. Jobs in the
//!   inbox of a polled level have no mark, and so a thread that polls has an empty set.
//! * *Vacate*: bits that were set while the level was occupied require work if they belong to
//!   waiters, or to ready levels above the level that remains. After a section, that is `l`. After
//!   a job it is not a constant, so every ready level counts. The work is decided again by the
//!   whole word: a bit too many costs time, and a bit too few would lose a job.
//!
//! A cell may [refuse](WordCell::CHECKS_JOBS). Then nothing has changed, and the general operations
//! follow. If it has started a job that requires further checks, the level is vacated unused.

use super::SharedWord;
use crate::atomic::Ordering;
use crate::current::CurrentWorker;
use crate::level::{Level, Stamp};
use crate::partition::dispatch::PortOf;
use crate::partition::running::Running;
use crate::partition::{Partition, Preemption};
use crate::word::highest;
use crate::word_cell::{Clearing, ConstLevel, Masks, Setting, Start, WordCell};

impl<P: PortOf<SharedWord>> Partition<P> {
    /// [`Dispatch::raise_at`](crate::partition::dispatch::Dispatch::raise_at). The masks are those
    /// of a job that this thread runs.
    ///
    /// # Safety
    /// The [token](WordCell::token) is that of this thread.
    #[inline(always)]
    pub(super) unsafe fn raise_masked<M: Masks>(
        &self,
        me: CurrentWorker,
        token: <P::Word as WordCell>::Token,
    ) -> bool {
        // SAFETY: by this function's contract.
        if unsafe { self.word_cell().set_unless::<M>(token) } == Setting::Refused {
            return self.raise_slow(me, const { highest(M::BIT) });
        }
        me.set_held(me.held() | M::BIT);
        true
    }

    /// [`raise_masked`](Self::raise_masked) within a critical section, below a level of another
    /// thread, or if [`WordCell::set_unless`] failed although no level was occupied.
    #[cold]
    #[inline(never)]
    fn raise_slow(&self, me: CurrentWorker, ceiling: u8) -> bool {
        self.raise_if_below(me, ceiling)
    }

    /// Vacates the ceiling of a critical section, and serves the levels that may then start.
    ///
    /// # Safety
    /// As for [`raise_masked`](Self::raise_masked).
    #[inline(always)]
    pub(super) unsafe fn lower_masked<M: Masks>(
        &'static self,
        me: CurrentWorker,
        token: <P::Word as WordCell>::Token,
    ) {
        // Before the word: see `vacate`.
        me.set_held(me.held() & !M::BIT);
        // SAFETY: by this function's contract.
        match unsafe { self.word_cell().clear::<M>(token) } {
            Clearing::Idle => {}
            Clearing::Work => self.lowered_slow(me, None),
            Clearing::Refused => self.lower_slow(me, const { highest(M::BIT) }),
        }
    }

    /// Vacates a level by the general operation: the cell has refused, or the level was occupied
    /// for a job that requires further checks.
    #[cold]
    #[inline(never)]
    fn lower_slow(&'static self, me: CurrentWorker, level: u8) {
        self.lower(me, level);
    }

    /// After vacating a level: wakes waiters and serves levels, if there are any.
    #[cold]
    #[inline(never)]
    fn lowered_slow(&'static self, me: CurrentWorker, now: Stamp) {
        // This load may find less work than `clear` did. A thread that has taken a ready mark or a
        // waiter away since then has found the level vacated.
        let word = self.load(Ordering::Relaxed);
        if word.may_have_work() {
            self.after_lowering(me, word, now);
        }
    }

    /// [`Partition::preempt_at`].
    ///
    /// # Safety
    /// As for [`Partition::preempt_at`].
    #[inline(always)]
    pub(super) unsafe fn preempt_masked<L: ConstLevel>(
        &'static self,
        me: CurrentWorker,
        level: &'static Level,
    ) -> Option<Preemption<P>> {
        debug_assert_eq!(level.number(), L::NUMBER);
        // Rules 3 and 6; `preempt` decides on a local level. The word decides on rule 1: if no
        // level at or above this one is occupied, this thread does not occupy one either.
        if !level.is_ordinary() || !me.may_call_at::<L>() {
            return None;
        }
        // SAFETY: the token is that of this thread, which has joined.
        match unsafe { self.word_cell().set_unless::<Start<L>>(me.token()) } {
            Setting::Set => {}
            Setting::Flagged => {
                self.lower_slow(me, L::NUMBER);
                return None;
            }
            Setting::Refused => return None,
        }
        me.set_held(me.held() | Start::<L>::BIT);
        Some(Preemption { running: Running::enter(self, me, L::NUMBER), level })
    }
}

impl<P: PortOf<SharedWord>> Preemption<P> {
    /// [`finish_at`](Self::finish_at).
    #[inline(always)]
    pub(super) fn finish_masked<L: ConstLevel>(self, end: Stamp) -> bool {
        let (partition, me, level) = (self.running.partition, self.running.me, self.level);
        let outer = self.suspend();
        me.set_running(outer);
        // The end of this job has to be checked before the next one begins. This thread does not
        // keep the level's time, see `Worker::may_call_at`.
        // SAFETY: this thread occupies the level.
        if unsafe { level.has_jobs() } {
            return false;
        }
        // Before the word: see `vacate`.
        me.set_held(me.held() & !Start::<L>::BIT);
        // SAFETY: as in `preempt_masked`, and `me` cannot leave its thread.
        match unsafe { partition.word_cell().clear::<Start<L>>(me.token()) } {
            Clearing::Idle => {}
            Clearing::Work => partition.lowered_slow(me, end),
            Clearing::Refused => return false,
        }
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

    use super::*;
    use crate::port::tests::Still;
    use crate::word::{Word, bit};
    use crate::{Jobs, Node, Queue, Worker};

    /// An atomic that can be flagged: then it starts jobs as flagged, and clears no bit.
    #[derive(Debug)]
    struct Flagged(AtomicU64, AtomicBool);

    // SAFETY: the cell is an atomic.
    unsafe impl WordCell for Flagged {
        type Dispatch = SharedWord;
        type Token = ();
        const CHECKS_JOBS: bool = true;
        const EMPTY: Self = Self(AtomicU64::new(0), AtomicBool::new(false));

        fn load(&self, order: Ordering) -> u64 {
            self.0.load(order)
        }
        fn swap(&self, from: u64, to: u64, order: Ordering) -> Result<(), u64> {
            WordCell::swap(&self.0, from, to, order)
        }
        fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
            self.0.fetch_and(bits, order)
        }
        fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
            self.0.fetch_or(bits, order)
        }
        fn fetch_sub(&self, number: u64, order: Ordering) -> u64 {
            self.0.fetch_sub(number, order)
        }
        fn token(&self) {}
        unsafe fn set_unless<M: Masks>(&self, (): ()) -> Setting {
            // SAFETY: the atomic needs no token.
            match unsafe { self.0.set_unless::<M>(()) } {
                Setting::Set if M::IS_JOB && self.1.load(Ordering::Relaxed) => Setting::Flagged,
                setting => setting,
            }
        }
        unsafe fn clear<M: Masks>(&self, (): ()) -> Clearing {
            if self.1.load(Ordering::Relaxed) {
                return Clearing::Refused;
            }
            // SAFETY: the atomic needs no token.
            unsafe { self.0.clear::<M>(()) }
        }
        unsafe fn reset(&self) {}
    }

    struct One;

    impl ConstLevel for One {
        const NUMBER: u8 = 1;
    }

    /// The masks of a section of a job of level 1 up to level 2.
    struct Ceiling;

    impl Masks for Ceiling {
        const BIT: u32 = bit(2);
        const BLOCKERS: u64 = Word::occupied_above(1);
        const WORK: u64 = Word::work_above(1);
    }

    /// A partition of the levels 1 and 2, in which the test is idle, and the number of jobs that
    /// have run.
    fn rig() -> (&'static Partition<Still<Flagged>>, CurrentWorker, &'static AtomicU32) {
        rig_with(|level| level)
    }

    /// [`rig`], with properties of level 1.
    fn rig_with(
        one: impl FnOnce(Level) -> Level,
    ) -> (&'static Partition<Still<Flagged>>, CurrentWorker, &'static AtomicU32) {
        let ran: &AtomicU32 = Box::leak(Box::default());
        let run = move |_: CurrentWorker, _: u32, _: Stamp| {
            ran.fetch_add(1, Ordering::Relaxed);
            None
        };
        let jobs = Jobs::of(Box::leak(Box::new(run)));
        let worker = |base| &*Box::leak(Box::new(Worker::new(base)));
        let level = |number, worker| {
            let (queue, nodes) = (Box::leak(Box::new(Queue::new())), Box::leak(Box::new([Node::new()])));
            Level::new(number, worker, queue, nodes, &[], jobs)
        };
        let workers = [worker(0), worker(1), worker(2)];
        let levels = [one(level(1, workers[1])), level(2, workers[2])];
        let levels = levels.map(|level| &*Box::leak(Box::new(level)));
        // SAFETY: levels and workers are new, and this is their only partition.
        let partition =
            unsafe { Partition::new(Still::new(), Vec::from(levels).leak(), Vec::from(workers).leak()) };
        // SAFETY: there is one thread.
        let me = unsafe { CurrentWorker::new(workers[0]) };
        me.enter(1, true);
        me.allow_calls(true);
        (Box::leak(Box::new(partition)), me, ran)
    }

    fn flag(partition: &Partition<Still<Flagged>>, is_flagged: bool) {
        partition.word_cell().1.store(is_flagged, Ordering::Relaxed);
    }

    #[test]
    fn flagged_start_vacates_level_and_serves() {
        let (partition, me, ran) = rig();
        flag(partition, true);
        // SAFETY: the level is the partition's, and the node is in no queue.
        let preemption = unsafe {
            partition.spawn_from_outside(partition.levels()[1], 0);
            partition.preempt_at::<One>(me, partition.levels()[0])
        };
        assert!(preemption.is_none());
        assert_eq!((partition.snapshot(), me.level(), me.running()), (Word::EMPTY, 0, 0));
        assert_eq!(ran.load(Ordering::Relaxed), 1, "the level that became ready has run");
    }

    #[test]
    fn job_whose_end_is_refused_can_be_finished() {
        let (partition, me, ran) = rig();
        let level = partition.levels()[0];
        // SAFETY: the level is the partition's.
        let preemption = unsafe { partition.preempt_at::<One>(me, level) }.expect("no level is occupied");
        flag(partition, true);
        assert!(!preemption.finish_at::<One>(None));
        assert_eq!((partition.snapshot(), me.running()), (Word::EMPTY.occupy(1), 0));
        // SAFETY: the preemption of the level could not be finished.
        let preemption = unsafe { partition.reenter(me, level) };
        assert_eq!((me.level(), me.running()), (1, 1));
        // SAFETY: the level is the partition's, and the node is in no queue.
        unsafe { partition.spawn_from_outside(level, 0) };
        preemption.finish(None);
        assert_eq!((partition.snapshot(), me.level(), me.running()), (Word::EMPTY, 0, 0));
        assert_eq!(ran.load(Ordering::Relaxed), 1, "the queue has been emptied");
    }

    #[test]
    fn job_before_a_queued_one_is_not_finished_unchecked() {
        let (partition, me, ran) = rig();
        let level = partition.levels()[0];
        // SAFETY: the level is the partition's, and the node is in no queue.
        let preemption = unsafe {
            let preemption = partition.preempt_at::<One>(me, level).expect("no level is occupied");
            partition.spawn_from_outside(level, 0);
            preemption
        };
        assert!(!preemption.finish_at::<One>(None));
        assert_eq!(ran.load(Ordering::Relaxed), 0);
        // SAFETY: the preemption of the level could not be finished.
        unsafe { partition.reenter(me, level) }.finish(None);
        assert_eq!((partition.snapshot(), me.level(), me.running()), (Word::EMPTY, 0, 0));
        assert_eq!(ran.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn job_of_local_level_is_not_started_unchecked() {
        let (partition, me, _) = rig_with(Level::local);
        // SAFETY: there is one thread.
        unsafe { me.set_alone() };
        // SAFETY: the level is the partition's.
        let [at, anyhow] = unsafe {
            let level = partition.levels()[0];
            [partition.preempt_at::<One>(me, level), partition.preempt(me, level)]
        };
        assert!(at.is_none());
        anyhow.expect("one thread runs all levels").finish(None);
    }

    #[test]
    fn section_whose_end_is_refused_is_left() {
        let (partition, me, _) = rig();
        // SAFETY: the level is the partition's.
        let preemption = unsafe { partition.preempt_at::<One>(me, partition.levels()[0]) };
        // SAFETY: the atomic needs no token.
        assert!(unsafe { partition.raise_masked::<Ceiling>(me, ()) });
        flag(partition, true);
        // SAFETY: as above.
        unsafe { partition.lower_masked::<Ceiling>(me, ()) };
        assert_eq!((partition.snapshot(), me.level()), (Word::EMPTY.occupy(1), 1));
        preemption.expect("no level is occupied").finish(None);
        assert_eq!(partition.snapshot(), Word::EMPTY);
    }
}

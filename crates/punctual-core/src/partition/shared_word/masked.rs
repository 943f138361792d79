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

use super::SharedWord;
use crate::atomic::Ordering;
use crate::current::CurrentWorker;
use crate::level::{Level, Stamp};
use crate::partition::dispatch::PortOf;
use crate::partition::running::Running;
use crate::partition::{Partition, Preemption};
use crate::word::highest;
use crate::word_cell::{ConstLevel, Masks, Start, WordCell};

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
        if !unsafe { self.word_cell().set_unless::<M>(token) } {
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
        if unsafe { self.word_cell().clear::<M>(token) } {
            self.lowered_slow(me, None);
        }
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
        if !level.is_ordinary() {
            // SAFETY: by this function's contract.
            return unsafe { self.preempt(me, level) };
        }
        // Rules 3 and 6. The word decides on rule 1: if no level at or above this one is occupied,
        // this thread does not occupy one either.
        // SAFETY: the token is that of this thread, which has joined.
        if !me.may_call_at::<L>() || !unsafe { self.word_cell().set_unless::<Start<L>>(me.token()) } {
            return None;
        }
        me.set_held(me.held() | Start::<L>::BIT);
        Some(Preemption { running: Running::enter(self, me, L::NUMBER), level })
    }

    /// [`drain_and_lower`](Self::drain_and_lower), if jobs of the level arrived during a
    /// preemption.
    #[cold]
    #[inline(never)]
    fn finish_slow(&'static self, me: CurrentWorker, level: &'static Level, outer: u8, end: Stamp) {
        self.drain_and_lower(me, level, level.number(), outer, end);
    }
}

impl<P: PortOf<SharedWord>> Preemption<P> {
    /// [`finish_at`](Self::finish_at).
    #[inline(always)]
    pub(super) fn finish_masked<L: ConstLevel>(self, end: Stamp) {
        let (partition, me, level) = (self.running.partition, self.running.me, self.level);
        if !level.is_ordinary() {
            return self.finish(end);
        }
        let outer = self.suspend();
        // This thread does not keep the level's time, see `Worker::may_call_at`.
        // SAFETY: this thread occupies the level.
        if unsafe { level.has_jobs() } {
            return partition.finish_slow(me, level, outer, end);
        }
        me.set_running(outer);
        // Before the word: see `vacate`.
        me.set_held(me.held() & !Start::<L>::BIT);
        // SAFETY: as in `preempt_masked`, and `me` cannot leave its thread.
        if unsafe { partition.word_cell().clear::<Start<L>>(me.token()) } {
            partition.lowered_slow(me, end);
        }
    }
}

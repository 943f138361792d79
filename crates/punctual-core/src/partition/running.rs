//! A level occupied for its jobs until it is vacated, in order or by unwinding.

use super::Partition;
use super::dispatch::{Dispatch, VariantOf};
use crate::current::CurrentWorker;
use crate::level::{Level, Stamp};
use crate::port::Port;
use crate::word::Word;
use crate::word_cell::ConstLevel;

/// A level occupied to run its jobs, as recorded in the worker; vacated on drop, also by unwinding.
/// Jobs do not unwind into this code; only a bug in the code that runs them does.
#[derive(Debug)]
pub(super) struct Running<P: Port + 'static> {
    pub(super) partition: &'static Partition<P>,
    pub(super) me: CurrentWorker,
    pub(super) level: u8,
    pub(super) outer: u8,
}

impl<P: Port> Running<P> {
    #[inline]
    pub(super) fn enter(partition: &'static Partition<P>, me: CurrentWorker, level: u8) -> Self {
        let outer = me.running();
        me.set_running(level);
        Self { partition, me, level, outer }
    }

    /// Vacates the level without serving; returns the resulting word.
    #[inline(always)]
    pub(super) fn leave(self) -> Word {
        self.me.set_running(self.outer);
        let word = self.partition.vacate(self.me, self.level);
        core::mem::forget(self);
        word
    }
}

impl<P: Port> Drop for Running<P> {
    #[inline]
    fn drop(&mut self) {
        self.partition.unwind_job(self.me, self.level, self.outer);
    }
}

/// A job's right to run on its spawner's stack, see [`Partition::preempt`].
#[derive(Debug)]
pub struct Preemption<P: Port + 'static> {
    pub(super) running: Running<P>,
    pub(super) level: &'static Level,
}

impl<P: Port> Preemption<P> {
    /// Enters a level that the calling thread has just occupied.
    #[inline]
    pub(crate) fn enter(partition: &'static Partition<P>, me: CurrentWorker, level: &'static Level) -> Self {
        Self { running: Running::enter(partition, me, level.number()), level }
    }

    /// Decomposes the preemption, so that it can be passed on in a register; it has to be
    /// [resumed](Partition::resume). Until then a panic leaves the level occupied.
    #[inline]
    pub fn suspend(self) -> u8 {
        let outer = self.running.outer;
        core::mem::forget(self);
        outer
    }

    /// Runs all queued jobs of the level, vacates it, and serves the levels that may then start.
    // Always: see `preempt`.
    #[inline(always)]
    pub fn finish(self, end: Stamp) {
        let Self { running, level } = self;
        let (partition, me) = (running.partition, running.me);
        // SAFETY: this thread occupies the level.
        if VariantOf::<P>::keeps_time(me, level) || unsafe { level.has_jobs() } {
            let (number, outer) = (running.level, running.outer);
            core::mem::forget(running);
            return partition.drain_and_lower(me, level, number, outer, end);
        }
        // Common case: no job is left.
        let word = running.leave();
        if word.may_have_work() {
            partition.after_lowering(me, word, end);
        }
    }

    /// [`finish`](Self::finish) of a preemption by [`preempt_at`](Partition::preempt_at) of the
    /// same level.
    ///
    /// Returns `false` if jobs of the level are queued, or if the cell of the word
    /// [refuses](crate::WordCell::CHECKS_JOBS): then the level is still occupied, and the caller
    /// checks the end of the job and [takes the preemption back](Partition::reenter).
    #[inline(always)]
    #[must_use]
    pub fn finish_at<L: ConstLevel>(self, end: Stamp) -> bool {
        VariantOf::<P>::finish_at::<P, L>(self, end)
    }
}

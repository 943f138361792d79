//! Levels that are constants: occupied and vacated by constant masks of the word.
//!
//! These are the common cases of [`Partition`]'s operations, in few instructions. Each falls back
//! on the general operation.

use super::Partition;
use crate::atomic::Ordering;
use crate::current::CurrentWorker;
use crate::level::Stamp;
use crate::port::Port;
use crate::word::highest;
use crate::word_cell::{Masks, WordCell};

impl<P: Port> Partition<P> {
    /// Occupies the ceiling of a critical section, unless this thread already occupies it or a
    /// level above it. Returns whether it occupied the ceiling.
    ///
    /// [`lower_from`](Self::lower_from) ends it. The masks are those of a job that this thread runs.
    #[inline(always)]
    pub(crate) fn raise_from<M: Masks>(&self, me: CurrentWorker) -> bool {
        let ceiling = const { highest(M::BIT) };
        if Self::ONE_THREAD {
            return self.raise_if_below(me, ceiling);
        }
        if !self.word_cell().set_unless::<M>() {
            return self.raise_slow(me, ceiling);
        }
        me.set_held(me.held() | M::BIT);
        true
    }

    /// [`raise_from`](Self::raise_from) within a critical section, below a level of another thread,
    /// or if [`WordCell::set_unless`] failed although no level was occupied.
    #[cold]
    #[inline(never)]
    fn raise_slow(&self, me: CurrentWorker, ceiling: u8) -> bool {
        self.raise_if_below(me, ceiling)
    }

    /// Vacates the ceiling of a critical section, and serves the levels that may then start.
    #[inline(always)]
    pub(crate) fn lower_from<M: Masks>(&'static self, me: CurrentWorker) {
        if Self::ONE_THREAD {
            return self.lower(me, const { highest(M::BIT) });
        }
        // Before the word: see `vacate`.
        me.set_held(me.held() & !M::BIT);
        if self.word_cell().clear::<M>() {
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
        if word.may_need_care() {
            self.after_lowering(me, word, now);
        }
    }
}

//! The interface between a partition and its dispatch variant.
//!
//! A variant decides how threads occupy levels, which thread runs a job, and how a thread learns of
//! new jobs and timers. The proof with [`Partition`] relies on the following properties alone. Each
//! variant proves them on its own page:
//!
//! | variant | word | threads that run jobs |
//! |---|---|---|
//! | [`SharedWord`](super::SharedWord) | one atomic | any number |
//! | polling, a mode of `SharedWord` (`polling.rs`) | one atomic | one, which never sleeps |
//! | [`OneThread`](super::OneThread) | ready levels in an atomic, occupied levels in the record of the thread | one, and the interrupt handlers that act as it |
//!
//! * **Start** and **Raise** take effect at one instant, and only if their condition holds then.
//! * **Vacate**: the resulting word shows every ready mark that was set before the level was
//!   vacated. A thread that marks a level afterwards finds the level vacated, or wakes a thread
//!   that does.
//! * **No overtaking**: a direct call starts only if no job of its level is queued.
//! * **Timers**: a timer is armed before its timekeeper sleeps, or wakes it.

use core::fmt::Debug;

use super::{Partition, Preemption};
use crate::Instant;
use crate::atomic::Ordering;
use crate::current::CurrentWorker;
use crate::level::{Level, Stamp};
use crate::port::Port;
use crate::word::{Word, highest};
use crate::word_cell::{ConstLevel, Masks, WordCell};

/// The dispatch variant of the partitions of a port.
pub(crate) type VariantOf<P> = <<P as Port>::Word as WordCell>::Dispatch;

/// A port whose partitions use the dispatch variant `D`.
pub trait PortOf<D>: Port<Word: WordCell<Dispatch = D>> {}

impl<D, P: Port<Word: WordCell<Dispatch = D>>> PortOf<D> for P {}

/// A dispatch variant, with the state that it adds to a partition. The crate implements every
/// variant: the type cannot be named outside of it.
pub trait Dispatch: Debug + Sync + Sized {
    /// The initial state.
    #[cfg(not(loom))]
    const NEW: Self;

    /// Returns the initial state.
    #[cfg(loom)]
    fn new() -> Self;

    /// `true` if the levels of a partition must be in ascending order.
    const NEEDS_ORDER: bool;

    /// Returns the current word, which may change at any time.
    fn snapshot<P: PortOf<Self>>(partition: &Partition<P>) -> Word;

    /// Returns the current word, as one of the partition's threads sees it.
    fn load_as<P: PortOf<Self>>(partition: &Partition<P>, me: CurrentWorker, order: Ordering) -> Word;

    /// Rule *Raise*: occupies `ceiling`, which is above every level that `me` occupies; waits while
    /// another thread occupies a level above these.
    fn raise<P: PortOf<Self>>(partition: &Partition<P>, me: CurrentWorker, ceiling: u8);

    /// Rule *Start*: occupies `level` to run its jobs, if it is above the partition's level.
    ///
    /// With `unless_ready`, also fails if jobs of the level are queued, so that none is overtaken.
    fn start<P: PortOf<Self>>(
        partition: &Partition<P>,
        me: CurrentWorker,
        level: u8,
        unless_ready: bool,
    ) -> bool;

    /// Vacates a level that `me` occupies; returns the resulting word.
    fn vacate<P: PortOf<Self>>(partition: &Partition<P>, me: CurrentWorker, level: u8) -> Word;

    /// Returns `true` if a spawn on the thread of `me` may run a job of `level` as a direct call,
    /// provided that the level [starts](Self::start).
    fn may_call(me: CurrentWorker, level: &Level) -> bool;

    /// Returns `true` if the thread of `me` may run queued jobs of `level`.
    fn may_serve(me: CurrentWorker, level: &Level) -> bool;

    /// Returns `true` if the thread of `me` releases due jobs of `level` between jobs.
    fn keeps_time(me: CurrentWorker, level: &Level) -> bool;

    /// Marks `level` ready, whose inbox has received a job from a foreign thread, and wakes a
    /// thread if necessary.
    fn announce<P: PortOf<Self>>(partition: &Partition<P>, level: &'static Level);

    /// Announces a timer that the calling thread has armed for `time`; returns `true` if the
    /// timekeeper of `level` sleeps until after that, and has to be woken.
    fn announce_timer<P: PortOf<Self>>(
        partition: &Partition<P>,
        level: &'static Level,
        time: Instant,
    ) -> bool;

    /// Returns `true` if a thread checks the inboxes without being woken.
    fn polls(&self) -> bool {
        false
    }

    /// Restores the initial state, between two runs.
    fn reset(&self);

    /// [`raise`](Self::raise) from the job of a constant level, unless `me` already occupies the
    /// ceiling or a level above it. Returns whether it raised the level.
    ///
    /// # Safety
    /// The [token](WordCell::token) is that of the calling thread.
    #[inline(always)]
    unsafe fn raise_at<P: PortOf<Self>, M: Masks>(
        partition: &Partition<P>,
        me: CurrentWorker,
        token: <P::Word as WordCell>::Token,
    ) -> bool {
        let _ = token;
        partition.raise_if_below(me, const { highest(M::BIT) })
    }

    /// Ends [`raise_at`](Self::raise_at): vacates the ceiling, and serves the levels that may then
    /// start.
    ///
    /// # Safety
    /// As for [`raise_at`](Self::raise_at).
    #[inline(always)]
    unsafe fn lower_at<P: PortOf<Self>, M: Masks>(
        partition: &'static Partition<P>,
        me: CurrentWorker,
        token: <P::Word as WordCell>::Token,
    ) {
        let _ = token;
        partition.lower(me, const { highest(M::BIT) });
    }

    /// [`Partition::preempt_at`].
    ///
    /// # Safety
    /// As for [`Partition::preempt_at`].
    #[inline(always)]
    unsafe fn preempt_at<P: PortOf<Self>, L: ConstLevel>(
        partition: &'static Partition<P>,
        me: CurrentWorker,
        level: &'static Level,
    ) -> Option<Preemption<P>> {
        // SAFETY: by this function's contract.
        unsafe { partition.preempt(me, level) }
    }

    /// [`Preemption::finish_at`].
    #[inline(always)]
    fn finish_at<P: PortOf<Self>, L: ConstLevel>(preemption: Preemption<P>, end: Stamp) -> bool {
        preemption.finish(end);
        true
    }
}

//! The dispatch variant of ordinary partitions: any number of threads share one word.
//!
//! # Proof
//!
//! The occupied levels, the ready levels and the number of waiting threads are bits of one
//! [`WordCell`], which is linearizable: each operation takes effect at one instant.
//!
//! * *Start* and *Raise* are a compare-and-swap each. It fails if the word has changed since its
//!   condition was checked. For levels that are constants, the module `masked` does both by one
//!   test and one change with constant masks.
//! * *Vacate* is an atomic AND. The word that it returns, less the bit, is the word at that
//!   instant. A thread that marks a level ready is therefore ordered before or after it: before,
//!   the returned word has the mark, and the thread that vacates the level serves it; after, the
//!   marking thread finds the level vacated in the word that its atomic OR returns, and serves the
//!   level or wakes its worker. If the level was marked already, another thread is responsible for
//!   it and has not served it yet.
//! * *No overtaking.* A job is queued before its level is marked, and the mark is cleared in the
//!   step that occupies the level. So a job that was queued on another thread is marked until a
//!   thread occupies the level, and a direct call does not start while the level is marked. The
//!   thread that has occupied the level checks the queue after that step. So a job whose mark was
//!   cleared is found there, since its push precedes its mark, and a later one is marked again.
//! * *Which thread.* Rules 3, 6 and 7 permit a thread of base `b` only levels from `b` on, and a
//!   local level only its own thread. The record of the worker decides this without the word, and a
//!   level that the thread may not run is handed to the level's worker.
//! * *Timers.* A worker announces its wake-up time, executes a fence, and checks for changes of its
//!   timers. A thread that arms a timer changes it and reads the wake-up time, both sequentially
//!   consistently. One of the two sees the other's write: the worker does not sleep, or it is
//!   woken.
//! * *Waiting.* `held`, the levels in the worker's record, is written after a level was occupied
//!   and before it is vacated. Only the boost of waiting threads depends on it, see `pi_wait`.
//!
//! Acquire on occupying and release on vacating and marking order the accesses to resources, queues
//! and nodes: the thread that occupies a level sees the effects of its predecessors.
//!
//! A partition that polls uses this word and these operations, too. `polling` proves the
//! differences.

mod masked;

use super::dispatch::{Dispatch, PortOf};
use super::polling::Polling;
use super::{Partition, Preemption};
use crate::Instant;
use crate::atomic::Ordering;
#[cfg(loom)]
use crate::atomic::fence;
use crate::current::CurrentWorker;
use crate::level::{Level, Stamp};
use crate::word::{MAX_LEVEL, Word, bit, highest};
use crate::word_cell::{ConstLevel, Masks, WordCell};
use crate::worker::POLLS;

/// Dispatch by one word that all threads of the partition share.
#[derive(Debug)]
pub struct SharedWord {
    pub(super) polling: Polling,
}

impl Dispatch for SharedWord {
    #[cfg(not(loom))]
    const NEW: Self = Self { polling: Polling::new() };

    #[cfg(loom)]
    fn new() -> Self {
        Self { polling: Polling::new() }
    }

    const NEEDS_ORDER: bool = false;

    fn snapshot<P: PortOf<Self>>(partition: &Partition<P>) -> Word {
        partition.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn load_as<P: PortOf<Self>>(partition: &Partition<P>, _: CurrentWorker, order: Ordering) -> Word {
        partition.load(order)
    }

    #[inline]
    fn raise<P: PortOf<Self>>(partition: &Partition<P>, me: CurrentWorker, ceiling: u8) {
        let held = me.held();
        debug_assert!(ceiling > highest(held));
        let mut word = partition.load(Ordering::Relaxed);
        loop {
            if !word.is_at_highest_of(held) {
                partition.wait_for_word(me, |word| word.level() == highest(held));
                word = partition.load(Ordering::Relaxed);
                continue;
            }
            // Acquire: this thread sees the effects of the resource's previous users.
            match partition.swap(word, word.occupy(ceiling), Ordering::Acquire) {
                Ok(()) => break,
                Err(now) => word = now,
            }
        }
        me.set_held(held | bit(ceiling));
    }

    #[inline(always)]
    fn start<P: PortOf<Self>>(
        partition: &Partition<P>,
        me: CurrentWorker,
        level: u8,
        unless_ready: bool,
    ) -> bool {
        let mut word = partition.load(Ordering::Relaxed);
        loop {
            let overtakes = unless_ready && word.is_ready(level);
            if !word.is_below(level) || overtakes {
                return false;
            }
            // Acquire: this thread sees the jobs that were pushed before the level was marked
            // ready.
            match partition.swap(word, word.start(level), Ordering::Acquire) {
                Ok(()) => break,
                Err(now) => word = now,
            }
        }
        me.set_held(me.held() | bit(level));
        true
    }

    #[inline(always)]
    fn vacate<P: PortOf<Self>>(partition: &Partition<P>, me: CurrentWorker, level: u8) -> Word {
        // Before the word: a bit in `held` means that the level has yet to be vacated (see
        // `pi_wait`).
        me.set_held(me.held() & !bit(level));
        // Release: the next thread to occupy a level sees what this thread did.
        let before = partition.word_cell().fetch_and(!u64::from(bit(level)), Ordering::Release);
        Word::from_raw(before).vacate(level)
    }

    /// Rules 1, 3, 6 and 7.
    #[inline(always)]
    fn may_call(me: CurrentWorker, level: &Level) -> bool {
        let (calls, number) = (me.calls(), level.number());
        if number < me.base() || !me.is_below(number) {
            return false;
        }
        // One comparison separates the most frequent case from the others.
        if calls.wrapping_sub(level.callers()) < POLLS - level.callers() {
            return true;
        }
        calls >= level.callers() && Polling::may_call(level)
    }

    /// Not only [`Worker::may_call`](crate::Worker::may_call), which decides on preemption: a level
    /// that this thread may not run has to be handed to its worker.
    #[inline(always)]
    fn may_serve(me: CurrentWorker, level: &Level) -> bool {
        level.number() >= me.base() && me.may_call(level) || me.is(level.worker())
    }

    #[inline(always)]
    fn keeps_time(me: CurrentWorker, level: &Level) -> bool {
        me.polls() || me.is(level.worker())
    }

    #[inline(always)]
    fn announce<P: PortOf<Self>>(partition: &Partition<P>, level: &'static Level) {
        if partition.dispatch.polls() {
            return partition.port.pushed();
        }
        let before = partition.mark_ready(level);
        // If the level was marked already, another thread is responsible for it and has not served
        // it yet.
        if !before.is_ready(level.number()) && level.number() > before.level() {
            partition.port.wake(level.worker());
        }
    }

    #[inline(always)]
    fn announce_timer<P: PortOf<Self>>(_: &Partition<P>, level: &'static Level, time: Instant) -> bool {
        // loom treats such an access as acquire and release only, and models the order of fences
        // only.
        #[cfg(loom)]
        fence(Ordering::SeqCst);
        // Sequentially consistent, like the change: needs no fence in between, which would be
        // another locked instruction on machines where the change is one. Pairs with the fence in
        // `sleep`: either the worker's second check sees the change, or this load sees that it
        // sleeps too long.
        time.as_ticks() < level.worker().sleeps_until.load(Ordering::SeqCst)
    }

    #[inline(always)]
    fn polls(&self) -> bool {
        self.polling.has_begun()
    }

    fn reset(&self) {
        self.polling.end();
    }

    #[inline(always)]
    unsafe fn raise_at<P: PortOf<Self>, M: Masks>(
        partition: &Partition<P>,
        me: CurrentWorker,
        token: <P::Word as WordCell>::Token,
    ) -> bool {
        // SAFETY: by this function's contract.
        unsafe { partition.raise_masked::<M>(me, token) }
    }

    #[inline(always)]
    unsafe fn lower_at<P: PortOf<Self>, M: Masks>(
        partition: &'static Partition<P>,
        me: CurrentWorker,
        token: <P::Word as WordCell>::Token,
    ) {
        // SAFETY: by this function's contract.
        unsafe { partition.lower_masked::<M>(me, token) }
    }

    #[inline(always)]
    unsafe fn preempt_at<P: PortOf<Self>, L: ConstLevel>(
        partition: &'static Partition<P>,
        me: CurrentWorker,
        level: &'static Level,
    ) -> Option<Preemption<P>> {
        // SAFETY: by this function's contract.
        unsafe { partition.preempt_masked::<L>(me, level) }
    }

    #[inline(always)]
    fn finish_at<P: PortOf<Self>, L: ConstLevel>(preemption: Preemption<P>, end: Stamp) -> bool {
        preemption.finish_masked::<L>(end)
    }
}

impl<P: PortOf<SharedWord>> Partition<P> {
    /// Occupies the top level permanently unless a level is occupied: from then on no job runs. For
    /// a foreign thread that is about to end the process.
    pub fn close(&self) -> bool {
        let mut word = self.load(Ordering::Relaxed);
        while word.level() == 0 {
            // Acquire: the caller sees what every job did.
            match self.swap(word, word.occupy(MAX_LEVEL), Ordering::Acquire) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }
}

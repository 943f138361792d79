//! The dispatch variant of a partition whose levels all run on one thread, including in interrupt
//! handlers that act as that thread.
//!
//! In other partitions the word is a single atomic, so that "vacate the level, and see which levels
//! became ready in the meantime" is one step. Here two loads and stores suffice, none of them a
//! read-modify-write: the thread's record holds the occupied levels, and the cell, [`ReadyLevels`],
//! the ready ones. So a lock costs a store, and an unlock a store and a load.
//!
//! # Proof
//!
//! * *Occupied levels* change by a load and a store of the one thread. A handler that runs between
//!   them restores the levels it found before it returns; so the store is based on a value that is
//!   still current. Other CPUs do not read them.
//! * *Start, Raise.* "If no level above is occupied, occupy this one" is a comparison and a store,
//!   between which handlers change nothing, as above. The running job is at the top, so a raise
//!   never waits.
//! * *Vacate, and check for ready levels.* The store precedes the load in program order, and
//!   therefore also for handlers. If a handler, or another CPU that rings the doorbell, marks a
//!   level before the load, the thread finds and serves it. If a handler marks a level after the
//!   store, it serves the level itself, since it finds the partition's level lowered.
//! * *Ready marks* are also set by other CPUs, with an atomic OR, without comparing the level: a
//!   CPU that marks an unmarked level [wakes](crate::Port::wake) this CPU, whose handler checks the
//!   marks. If the level was marked already, the CPU that marked it has sent the wake; the mark is
//!   cleared before the queue is checked, in one atomic order with the second mark, so the job is
//!   found.
//! * *No overtaking: a mark is cleared after the level is occupied.* A job that a handler queues
//!   between the two is marked and cannot start there; it is in the queue, which the thread checks
//!   after it has cleared the mark. In the reverse order the handler would run its job ahead of
//!   those already queued.
//! * *Which thread.* There is one, so it may call and serve every level, local ones included.
//! * *Timers.* A handler, not the thread, releases due jobs. A CPU that arms a timer sets the bit
//!   of its level in `timed`, executes a fence and reads the [alarm](crate::alarm); the handler
//!   hides the alarm, executes a fence and reads `timed`. One of the two sees the other's write.
//!
//! A level started as a direct call keeps a mark that another CPU set after the check: the level is
//! served once more when it is vacated, and may be empty by then.
//!
//! The module `interrupt` shows why a handler may serve at any point of its thread.

use super::Partition;
use super::dispatch::{Dispatch, PortOf};
use crate::Instant;
use crate::alarm::Alarm;
use crate::atomic::{AtomicU32, Ordering, fence};
use crate::current::CurrentWorker;
use crate::level::Level;
use crate::word::{READY_SHIFT, SET, Word, bit, highest};
use crate::word_cell::WordCell;

/// Dispatch on the one thread of a partition: its first worker runs every level.
#[derive(Debug)]
pub struct OneThread {
    /// The time until which the clock is not checked, in ns.
    pub(crate) alarm: Alarm,
    /// Bit set, by index, of the levels that may have armed timers. A thread that arms a timer sets
    /// its level's bit.
    pub(crate) timed: AtomicU32,
}

impl OneThread {
    /// Records `held` as the levels that the one thread occupies.
    #[inline(always)]
    fn occupy<P: PortOf<Self>>(partition: &Partition<P>, me: CurrentWorker, held: u32) {
        partition.word_cell().occupy(&me.worker().held, held);
    }
}

impl Dispatch for OneThread {
    #[cfg(not(loom))]
    const NEW: Self = Self { alarm: Alarm::new(), timed: AtomicU32::new(0) };

    #[cfg(loom)]
    fn new() -> Self {
        Self { alarm: Alarm::new(), timed: AtomicU32::new(0) }
    }

    const NEEDS_ORDER: bool = true;

    fn snapshot<P: PortOf<Self>>(partition: &Partition<P>) -> Word {
        let held = partition.workers[0].held.load(Ordering::Relaxed);
        partition.load(Ordering::Relaxed).with_occupied(held)
    }

    #[inline(always)]
    fn load_as<P: PortOf<Self>>(partition: &Partition<P>, me: CurrentWorker, order: Ordering) -> Word {
        partition.load(order).with_occupied(me.held())
    }

    #[inline(always)]
    fn raise<P: PortOf<Self>>(partition: &Partition<P>, me: CurrentWorker, ceiling: u8) {
        let held = me.held();
        debug_assert!(ceiling > highest(held));
        Self::occupy(partition, me, held | bit(ceiling));
    }

    #[inline(always)]
    fn start<P: PortOf<Self>>(
        partition: &Partition<P>,
        me: CurrentWorker,
        level: u8,
        unless_ready: bool,
    ) -> bool {
        let word = Self::load_as(partition, me, Ordering::Relaxed);
        if !word.is_below(level) || unless_ready && word.is_ready(level) {
            return false;
        }
        Self::occupy(partition, me, me.held() | bit(level));
        if !unless_ready {
            // Must follow the store, see the proof. Acquire: this thread sees the jobs that were
            // pushed before the level was marked ready.
            partition.word_cell().fetch_and(!Word::ready_bit(level), Ordering::Acquire);
        }
        true
    }

    #[inline(always)]
    fn vacate<P: PortOf<Self>>(partition: &Partition<P>, me: CurrentWorker, level: u8) -> Word {
        let held = me.held() & !bit(level);
        Self::occupy(partition, me, held);
        partition.load(Ordering::Relaxed).with_occupied(held)
    }

    #[inline(always)]
    fn may_call(_: CurrentWorker, _: &Level) -> bool {
        true
    }

    #[inline(always)]
    fn may_serve(_: CurrentWorker, _: &Level) -> bool {
        true
    }

    /// A handler releases due jobs.
    #[inline(always)]
    fn keeps_time(_: CurrentWorker, _: &Level) -> bool {
        false
    }

    #[inline(always)]
    fn announce<P: PortOf<Self>>(partition: &Partition<P>, level: &'static Level) {
        // Another CPU cannot compare the level with the occupied ones.
        if !partition.mark_ready(level).is_ready(level.number()) {
            partition.port.wake(level.worker());
        }
    }

    #[inline(always)]
    fn announce_timer<P: PortOf<Self>>(
        partition: &Partition<P>,
        level: &'static Level,
        time: Instant,
    ) -> bool {
        let place = partition.levels.iter().position(|other| core::ptr::eq(*other, level));
        let place = place.expect("the level belongs to this partition");
        let OneThread { alarm, timed } = &partition.dispatch;
        // Release: see `forget`. Before the fence, so that a tick finds it.
        timed.fetch_or(1 << place, Ordering::Release);
        // Pairs with the fence in `tick`.
        fence(Ordering::SeqCst);
        time.as_ticks() < alarm.time()
    }

    fn reset(&self) {
        self.alarm.set(0);
        self.timed.store(0, Ordering::Relaxed);
    }
}

impl<P: PortOf<OneThread>> Partition<P> {
    /// As [`lay_grids`](Self::lay_grids), for the one thread of the partition, which
    /// [ticks](Self::tick) next.
    pub fn lay_grids_here(&self, start: Instant) {
        self.levels.iter().for_each(|level| level.start(start));
        // Bits that another CPU has set stay set; `forget` acquires them.
        self.dispatch.timed.fetch_or(((1_u64 << self.levels.len()) - 1) as u32, Ordering::Relaxed);
    }

    /// Occupies `level` for a job of an interrupt handler, if it goes before every job that is
    /// ready.
    #[inline(always)]
    pub(crate) fn occupy_first(&self, me: CurrentWorker, level: u8) -> bool {
        let held = me.held();
        if !self.load(Ordering::Relaxed).with_occupied(held).goes_first(level) {
            return false;
        }
        // Other CPUs that mark a level ready concurrently send this CPU a wake.
        OneThread::occupy(self, me, held | bit(level));
        true
    }
}

/// The cell of a partition of [one thread](OneThread): its ready levels. The occupied levels are in
/// the record of the thread.
#[derive(Debug)]
pub struct ReadyLevels(AtomicU32);

/// Returns the ready levels of a word.
const fn ready(word: u64) -> u32 {
    (word >> READY_SHIFT & SET) as u32
}

/// Returns the word with these levels ready, and none occupied.
const fn word(ready: u32) -> u64 {
    (ready as u64) << READY_SHIFT
}

// SAFETY: the part in this cell, the ready levels, is an atomic. The occupied levels are in the
// record of the one thread, see the module.
unsafe impl WordCell for ReadyLevels {
    type Dispatch = OneThread;
    type Token = ();

    #[cfg(not(loom))]
    const EMPTY: Self = Self(AtomicU32::new(0));

    #[cfg(loom)]
    fn empty() -> Self {
        Self(AtomicU32::new(0))
    }

    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        word(self.0.load(order))
    }

    fn swap(&self, from: u64, to: u64, order: Ordering) -> Result<(), u64> {
        let swapped = self.0.compare_exchange(ready(from), ready(to), order, Ordering::Relaxed);
        swapped.map(drop).map_err(word)
    }

    #[inline(always)]
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        word(self.0.fetch_and(ready(bits), order))
    }

    #[inline(always)]
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        word(self.0.fetch_or(ready(bits), order))
    }

    #[inline(always)]
    fn token(&self) {}

    fn fetch_sub(&self, number: u64, order: Ordering) -> u64 {
        word(self.0.fetch_sub(ready(number), order))
    }

    unsafe fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

//! The word of a partition whose levels all run on one thread, including in interrupt handlers that
//! act as that thread.
//!
//! In other partitions the word is a single atomic, so that "lower the level, and see which levels
//! became ready in the meantime" is one step. Here two loads and stores suffice, none of them a
//! read-modify-write: the thread's record holds the occupied levels, and the cell the ready ones.
//! So a lock costs a store, and an unlock a store and a load.
//!
//! # Why that is enough
//!
//! * *Occupied levels* change by a load and a store of the one thread. A handler that runs between
//!   them restores the levels it found before it returns; so the store is based on a value that is
//!   still current. Other CPUs do not read them.
//! * *Start, raise.* "If no level above is occupied, occupy this one" is a comparison and a store,
//!   between which handlers change nothing, as above. The running job is at the top, so a raise
//!   never waits.
//! * *Lower, and check for ready levels.* The store precedes the load in program order, and
//!   therefore also for handlers. If a handler, or another CPU that rings the doorbell, marks a
//!   level before the load, the thread finds and serves it. If a handler marks a level after the
//!   store, it serves the level itself, since it finds the partition's level lowered.
//! * *Ready marks* are also set by other CPUs, with an atomic OR, without comparing the level: a
//!   CPU that marks an unmarked level [wakes](crate::Port::wake) this CPU, whose handler checks the
//!   marks. If the level was marked already, the CPU that marked it has sent the wake; the mark is
//!   cleared before the queue is checked, in one atomic order with the second mark, so the job is
//!   found.
//! * *A mark is cleared after the level is occupied.* A job that a handler queues between the two
//!   is marked and cannot start there; it is in the queue, which the thread checks after it has
//!   cleared the mark. In the reverse order the handler would run its job ahead of those already
//!   queued.
//!
//! A level started as a direct call keeps a mark that another CPU set after the check: the level is
//! served once more when it is vacated, and may be empty by then.

use crate::atomic::{AtomicU32, Ordering};
use crate::word::{READY_SHIFT, SET};
use crate::word_cell::WordCell;

/// The ready levels of a partition whose first worker runs every level.
#[derive(Debug)]
pub struct OneThread(AtomicU32);

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
unsafe impl WordCell for OneThread {
    const OF_ONE_THREAD: bool = true;

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

    fn fetch_sub(&self, number: u64, order: Ordering) -> u64 {
        word(self.0.fetch_sub(ready(number), order))
    }

    unsafe fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

//! The word of a partition of which one thread runs every level, interrupted by handlers that do so as that thread.
//!
//! On other partitions the word is one, so that "lower the level, and see whether anything became ready meanwhile" is a single step.
//! Here two loads and stores do, and none of them is atomic: which levels are occupied is what the thread's record says, and the cell holds
//! which are ready. So a lock costs a store, and its end a store and a load.
//!
//! # Why that is enough
//!
//! * *Occupied levels* change by a load and a store of the one thread. A handler that comes between them puts them back to what it has
//!   found before the thread goes on; so the thread stores what follows from what still is. Other CPUs do not look at them.
//! * *Start, raise.* "If no level above is occupied, occupy this one" is a comparison and a store, between which handlers change
//!   nothing, as above. Whoever runs is at the top, so raising never waits.
//! * *Lower, and look for what is ready.* The store comes before the load, in the program and so for handlers. What a handler, or
//!   another CPU that rings, marks ready before the load, the thread finds and serves. What a handler marks after the store, it
//!   serves itself, for it finds the level lowered.
//! * *Ready marks* are set by other CPUs, too, by an atomic OR. For them there is no comparison with the level: whoever marks a level that was
//!   not marked [wakes](crate::Port::wake) the CPU, whose handler looks. If it was marked already, whoever did that has woken the CPU; the mark
//!   is taken down before the queue is looked at, in one atomic order with the other, so that the job is found.
//! * *A mark is taken down after the level is occupied.* What a handler queues between the two is marked, and cannot start there; it is in the
//!   queue, at which the thread looks after it has taken the mark down. The other way round the handler would run its job before those that wait.
//!
//! A level that is started as a call keeps the mark that another CPU has set since the look at it: it is served once more
//! when it is vacated, and may have been emptied by then.

use crate::atomic::{AtomicU32, Ordering};
use crate::word::{READY_SHIFT, SET};
use crate::word_cell::WordCell;

/// Which levels of a partition are ready, of which the first of its workers runs every level.
#[derive(Debug)]
pub struct OneThread(AtomicU32);

/// The levels that are ready, as they are in a word.
const fn ready(word: u64) -> u32 {
    (word >> READY_SHIFT & SET) as u32
}

/// The word in which these are ready, and none is occupied.
const fn word(ready: u32) -> u64 {
    (ready as u64) << READY_SHIFT
}

// SAFETY: of what it holds, the levels that are ready, it is an atomic. The rest is in the record of the one thread, see the module.
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

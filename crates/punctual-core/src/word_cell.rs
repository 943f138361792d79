//! What holds a partition's word.
//!
//! The protocol needs of it that it is linearizable: each operation takes effect at one instant between its call and its return, and
//! loads and changes by one thread are seen in their order. So a port may keep the word in something that suits its threads
//! better than an atomic, and everything that is proved of the protocol goes on to hold.

use core::fmt::Debug;

use crate::atomic::{AtomicU32, AtomicU64, Ordering};

/// Holds the word of a partition.
///
/// # Safety
/// The operations on one cell are those of an atomic with the given orderings: they take effect one after the other, each on the
/// value that the one before has left, whichever threads on whichever CPUs call them, and wherever these are interrupted or moved.
pub unsafe trait WordCell: Debug + Sync {
    /// Whether one thread runs every level of the partition, so that its own record says which are occupied, and the cell holds
    /// only which are ready; see [`OneThread`](crate::OneThread).
    const OF_ONE_THREAD: bool = false;

    /// Makes `occupied` the levels that the one thread occupies, in its record.
    ///
    /// Whatever it does before and after in the program, it does before and after this, as the handlers of interrupts that it
    /// takes see it.
    #[inline(always)]
    fn occupy(&self, record: &AtomicU32, occupied: u32) {
        #[cfg(not(loom))]
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        record.store(occupied, Ordering::Relaxed);
        #[cfg(not(loom))]
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// A cell whose word is 0.
    #[cfg(not(loom))]
    const EMPTY: Self;

    /// A cell whose word is 0.
    #[cfg(loom)]
    fn empty() -> Self;

    /// The word.
    fn load(&self, order: Ordering) -> u64;

    /// Replaces `from` by `to`; may fail although the word is `from`.
    ///
    /// # Errors
    /// Returns the word, if it has not been changed.
    fn swap(&self, from: u64, to: u64, order: Ordering) -> Result<(), u64>;

    /// Clears the bits that are not in `bits`; returns the word before.
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64;

    /// Sets the bits that are in `bits`; returns the word before.
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64;

    /// Subtracts `number`, with wrapping; returns the word before.
    fn fetch_sub(&self, number: u64, order: Ordering) -> u64;

    /// Makes the word 0 and forgets everything else.
    ///
    /// # Safety
    /// No other thread uses the cell.
    unsafe fn reset(&self);
}

// SAFETY: it is an atomic.
unsafe impl WordCell for AtomicU64 {
    #[cfg(not(loom))]
    const EMPTY: Self = Self::new(0);

    #[cfg(loom)]
    fn empty() -> Self {
        Self::new(0)
    }

    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline(always)]
    fn swap(&self, from: u64, to: u64, order: Ordering) -> Result<(), u64> {
        self.compare_exchange_weak(from, to, order, Ordering::Relaxed).map(drop)
    }

    #[inline(always)]
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        self.fetch_and(bits, order)
    }

    #[inline(always)]
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.fetch_or(bits, order)
    }

    #[inline(always)]
    fn fetch_sub(&self, number: u64, order: Ordering) -> u64 {
        self.fetch_sub(number, order)
    }

    unsafe fn reset(&self) {
        self.store(0, Ordering::Relaxed);
    }
}

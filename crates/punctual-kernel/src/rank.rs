//! The internal representation of priorities.

use core::hint;

/// The number of priorities.
pub(crate) const RANKS: usize = 32;

/// A priority, counted from the highest: priority 32 is rank 0, and the lower rank goes first. In a
/// set of ranks with one bit each, from the left, the first is thus the number of leading zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u8);

impl Rank {
    /// The rank of no thread.
    pub(crate) const LOWEST: Self = Self(RANKS as u8 - 1);

    /// Returns the rank of a priority from 1 to 32.
    #[inline]
    pub(crate) const fn of(priority: u8) -> Option<Self> {
        // In a word, the processor's native size.
        let rank = RANKS.wrapping_sub(priority as usize);
        if rank < RANKS { Some(Self(rank as u8)) } else { None }
    }

    /// Returns the priority.
    #[inline]
    pub(crate) fn priority(self) -> u8 {
        RANKS as u8 - self.0
    }

    /// Returns the index into an array of `RANKS`.
    #[inline]
    pub(crate) fn index(self) -> usize {
        let index = usize::from(self.0);
        // SAFETY: only `of` and the constant create ranks.
        unsafe { hint::assert_unchecked(index < RANKS) };
        index
    }

    /// Returns the bit in a set of ranks.
    #[inline]
    pub(crate) fn bit(self) -> u32 {
        (1 << 31) >> self.index()
    }
}

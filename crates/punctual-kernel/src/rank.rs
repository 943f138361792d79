//! Priorities as the kernel keeps them.

use core::hint;

/// How many there are.
pub(crate) const RANKS: usize = 32;

/// A priority, counted from the highest: priority 32 is rank 0, and the lower rank goes first. So the first of a set of ranks, of which
/// each is a bit from the left, is the number of its leading zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u8);

impl Rank {
    /// Where nobody is.
    pub(crate) const LOWEST: Self = Self(RANKS as u8 - 1);

    /// Of a priority, if it is one of 1 to 32.
    #[inline]
    pub(crate) const fn of(priority: u8) -> Option<Self> {
        // In a word, which the processor computes in.
        let rank = RANKS.wrapping_sub(priority as usize);
        if rank < RANKS { Some(Self(rank as u8)) } else { None }
    }

    /// The priority.
    #[inline]
    pub(crate) fn priority(self) -> u8 {
        RANKS as u8 - self.0
    }

    /// The place in an array of `RANKS`.
    #[inline]
    pub(crate) fn index(self) -> usize {
        let index = usize::from(self.0);
        // SAFETY: nothing else makes a rank than `of` and the constant.
        unsafe { hint::assert_unchecked(index < RANKS) };
        index
    }

    /// The bit in a set of ranks.
    #[inline]
    pub(crate) fn bit(self) -> u32 {
        (1 << 31) >> self.index()
    }
}

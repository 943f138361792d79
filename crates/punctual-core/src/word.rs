//! The word of a partition: which levels are occupied, which are ready, how many threads wait.
//!
//! [`Word`] is a plain value with no atomics in it; [`Partition`](crate::Partition) keeps one in a
//! [`WordCell`](crate::WordCell), mostly an atomic, and changes it by compare-and-swap. Keeping all three parts in one word is what makes
//! "lower the level, and see whether anything became ready meanwhile" a single indivisible step.
//!
//! ```
//! use punctual_core::Word;
//!
//! let idle = Word::EMPTY;
//! let running = idle.occupy(3);
//! assert_eq!((idle.level(), running.level()), (0, 3));
//! assert_eq!(running.occupy(5).vacate(5), running);
//! ```

/// The highest level a task can have.
///
/// Two sets of 28 levels and an 8-bit count fill the 64 bits of a [`Word`].
pub const MAX_LEVEL: u8 = 28;

pub(crate) const READY_SHIFT: u32 = MAX_LEVEL as u32;
const WAITERS_SHIFT: u32 = 2 * MAX_LEVEL as u32;
pub(crate) const SET: u64 = (1 << MAX_LEVEL) - 1;

/// A set of levels as bits: level `l` (from 1) is bit `l - 1`. Level 0, idle, has no bit.
pub(crate) const fn bit(level: u8) -> u32 {
    debug_assert!(level >= 1 && level <= MAX_LEVEL);
    1 << (level - 1)
}

/// The highest level in a set, 0 if it is empty.
pub(crate) const fn highest(set: u32) -> u8 {
    (u32::BITS - set.leading_zeros()) as u8
}

/// A value of a partition's word.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Word(u64);

impl Word {
    /// Nothing occupied, nothing ready, nobody waiting.
    pub const EMPTY: Word = Word(0);
    /// One waiting thread, in the unit of the raw word.
    pub(crate) const ONE_WAITER: u64 = 1 << WAITERS_SHIFT;

    pub(crate) const fn from_raw(raw: u64) -> Self {
        Word(raw)
    }

    pub(crate) const fn raw(self) -> u64 {
        self.0
    }

    /// The word in which these levels are occupied, and those ready that are in `self`.
    #[inline(always)]
    pub(crate) const fn with_occupied(self, occupied: u32) -> Self {
        Word(self.0 & !SET | occupied as u64 & SET)
    }

    /// The partition's level: the highest occupied one, 0 when none is.
    #[inline]
    pub const fn level(self) -> u8 {
        highest(self.occupied())
    }

    /// Whether the partition's level is below `level`.
    ///
    /// As numbers, sets whose highest members differ compare like these, which saves finding them.
    #[inline]
    pub(crate) const fn is_below(self, level: u8) -> bool {
        self.occupied() < bit(level)
    }

    /// Whether the highest of `held` is the partition's level.
    #[inline]
    pub(crate) const fn is_at_highest_of(self, held: u32) -> bool {
        // Of two sets with one highest member what they share is the greater number, and otherwise that in which they differ.
        (self.occupied() ^ held) <= (self.occupied() & held)
    }

    /// The highest level that is ready, 0 when none is.
    #[inline]
    pub const fn highest_ready(self) -> u8 {
        highest(self.ready())
    }

    /// The number of waiting threads.
    #[inline]
    pub const fn waiters(self) -> u8 {
        (self.0 >> WAITERS_SHIFT) as u8
    }

    /// Whether a ready level is above the partition's level, so that somebody has to serve it.
    #[inline]
    pub const fn must_serve(self) -> bool {
        self.highest_ready() > self.level()
    }

    /// Whether `level` is marked ready.
    #[inline]
    pub const fn is_ready(self, level: u8) -> bool {
        self.ready() & bit(level) != 0
    }

    /// Whether `level` is above the partition's level, and above whatever is ready.
    #[inline]
    pub(crate) const fn goes_first(self, level: u8) -> bool {
        // See `is_below`.
        self.occupied() | self.ready() < bit(level)
    }

    /// This word with `level` occupied.
    #[inline]
    #[must_use]
    pub const fn occupy(self, level: u8) -> Self {
        Word(self.0 | bit(level) as u64)
    }

    /// This word with `level` free.
    #[inline]
    #[must_use]
    pub const fn vacate(self, level: u8) -> Self {
        Word(self.0 & !(bit(level) as u64))
    }

    /// This word with `level` marked ready.
    #[inline]
    #[must_use]
    pub const fn mark_ready(self, level: u8) -> Self {
        Word(self.0 | Self::ready_bit(level))
    }

    /// This word with `level` occupied and its ready mark taken down: what starting a level does.
    #[inline]
    #[must_use]
    pub const fn start(self, level: u8) -> Self {
        Word(self.occupy(level).0 & !Self::ready_bit(level))
    }

    /// Whether lowering to this word needs anything beyond having lowered it.
    ///
    /// Comparing the two sets as numbers is cheaper than comparing their highest members and never
    /// misses a case: if the highest ready level is above the highest occupied one, then so is the number.
    #[inline]
    pub(crate) const fn may_need_care(self) -> bool {
        // The number of waiters stands above the ready levels.
        self.0 >> READY_SHIFT > self.occupied() as u64
    }

    pub(crate) const fn ready_bit(level: u8) -> u64 {
        (bit(level) as u64) << READY_SHIFT
    }

    const fn occupied(self) -> u32 {
        (self.0 & SET) as u32
    }

    const fn ready(self) -> u32 {
        (self.0 >> READY_SHIFT & SET) as u32
    }
}

impl core::fmt::Debug for Word {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Word")
            .field("level", &self.level())
            .field("occupied", &format_args!("{:#b}", self.occupied()))
            .field("ready", &format_args!("{:#b}", self.ready()))
            .field("waiters", &self.waiters())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_the_highest_member_of_their_set() {
        assert_eq!(Word::EMPTY.level(), 0);
        for level in 1..=MAX_LEVEL {
            assert_eq!(Word::EMPTY.occupy(level).level(), level);
            assert_eq!(Word::EMPTY.mark_ready(level).highest_ready(), level);
            assert_eq!(Word::EMPTY.occupy(level).vacate(level), Word::EMPTY);
        }
        assert_eq!(Word::EMPTY.occupy(2).occupy(7).vacate(7).level(), 2);
    }

    #[test]
    fn only_what_is_above_must_be_served() {
        let word = Word::EMPTY.occupy(3).mark_ready(2);
        assert!(word.level() == 3 && word.is_ready(2) && !word.is_ready(3));
        assert!(!word.must_serve() && !word.may_need_care());
        let same = word.mark_ready(3);
        assert!(!same.must_serve(), "it is being served");
        assert!(!Word::EMPTY.occupy(3).mark_ready(3).may_need_care());
        assert!(same.mark_ready(4).must_serve());
        assert_eq!(same.mark_ready(4).start(4), same.occupy(4));
    }

    #[test]
    fn what_goes_first_is_above_all_that_is_occupied_or_ready() {
        let first = |word: Word| [2, 3, 4, 7].map(|level| word.goes_first(level));
        assert_eq!(first(Word::EMPTY.mark_ready(3)), [false, false, true, true]);
        assert_eq!(first(Word::EMPTY.occupy(3)), [false, false, true, true]);
        assert_eq!(first(Word::EMPTY.occupy(2).mark_ready(4)), [false, false, false, true]);
    }

    #[test]
    fn the_three_parts_do_not_touch() {
        let full = (1..=MAX_LEVEL).fold(Word::EMPTY, |w, l| w.occupy(l).mark_ready(l));
        let word = Word::from_raw(full.raw() + 255 * Word::ONE_WAITER);
        assert_eq!((word.level(), word.highest_ready(), word.waiters()), (MAX_LEVEL, MAX_LEVEL, 255));
        assert_eq!(word.raw(), u64::MAX);
    }

    #[test]
    fn sets_compare_like_their_highest_members() {
        for occupied in 0..64 {
            let word = Word::from_raw(occupied);
            for level in 1..=8 {
                assert_eq!(word.is_below(level), word.level() < level, "{word:?} {level}");
            }
            for held in 0..64 {
                assert_eq!(word.is_at_highest_of(held), word.level() == highest(held), "{word:?} {held:#b}");
            }
        }
    }

    #[test]
    fn care_is_never_missed() {
        for occupied in 0..64_u64 {
            for ready in 0..64_u64 {
                let word = Word::from_raw(occupied | ready << READY_SHIFT);
                assert!(!word.must_serve() || word.may_need_care(), "{word:?}");
            }
        }
        assert!(Word::from_raw(Word::ONE_WAITER).may_need_care());
    }
}

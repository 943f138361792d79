//! The word of a partition: the occupied levels, the ready levels, and the number of waiting
//! threads.
//!
//! [`Word`] is a plain value without atomics; [`Partition`](crate::Partition) keeps it in a
//! [`WordCell`](crate::WordCell), usually an atomic, and changes it by compare-and-swap. Since one
//! word holds all three parts, "lower the level, and see which levels became ready in the meantime"
//! is a single atomic step.
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

/// Returns the bit of a level in a set: level `l` (from 1) is bit `l - 1`. Level 0, idle, has no
/// bit.
pub(crate) const fn bit(level: u8) -> u32 {
    debug_assert!(level >= 1 && level <= MAX_LEVEL);
    1 << (level - 1)
}

/// Returns the highest level in a set, 0 if it is empty.
pub(crate) const fn highest(set: u32) -> u8 {
    (u32::BITS - set.leading_zeros()) as u8
}

/// A value of a partition's word.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Word(u64);

impl Word {
    /// No level occupied, no level ready, no thread waiting.
    pub const EMPTY: Word = Word(0);
    /// One waiting thread, in the unit of the raw word.
    pub(crate) const ONE_WAITER: u64 = 1 << WAITERS_SHIFT;

    pub(crate) const fn from_raw(raw: u64) -> Self {
        Word(raw)
    }

    pub(crate) const fn raw(self) -> u64 {
        self.0
    }

    /// Returns this word with `occupied` as its occupied levels; the other parts are unchanged.
    #[inline(always)]
    pub(crate) const fn with_occupied(self, occupied: u32) -> Self {
        Word(self.0 & !SET | occupied as u64 & SET)
    }

    /// Returns the partition's level: the highest occupied level, 0 if none is occupied.
    #[inline]
    pub const fn level(self) -> u8 {
        highest(self.occupied())
    }

    /// Returns `true` if the partition's level is below `level`.
    ///
    /// Sets with different highest members compare, as numbers, like these members, so there is no
    /// need to find them.
    #[inline]
    pub(crate) const fn is_below(self, level: u8) -> bool {
        self.occupied() < bit(level)
    }

    /// Returns `true` if the highest of `held` is the partition's level.
    #[inline]
    pub(crate) const fn is_at_highest_of(self, held: u32) -> bool {
        // If the highest members are equal, the intersection is the greater number; otherwise the
        // difference is.
        (self.occupied() ^ held) <= (self.occupied() & held)
    }

    /// Returns the highest ready level, 0 if none is ready.
    #[inline]
    pub const fn highest_ready(self) -> u8 {
        highest(self.ready())
    }

    /// Returns the number of waiting threads.
    #[inline]
    pub const fn waiters(self) -> u8 {
        (self.0 >> WAITERS_SHIFT) as u8
    }

    /// Returns `true` if a ready level is above the partition's level, so that a thread has to
    /// serve it.
    #[inline]
    pub const fn must_serve(self) -> bool {
        self.highest_ready() > self.level()
    }

    /// Returns `true` if `level` is marked ready.
    #[inline]
    pub const fn is_ready(self, level: u8) -> bool {
        self.ready() & bit(level) != 0
    }

    /// Returns `true` if `level` is above the partition's level and above every ready level.
    #[inline]
    pub(crate) const fn goes_first(self, level: u8) -> bool {
        // See `is_below`.
        self.occupied() | self.ready() < bit(level)
    }

    /// Returns this word with `level` occupied.
    #[inline]
    #[must_use]
    pub const fn occupy(self, level: u8) -> Self {
        Word(self.0 | bit(level) as u64)
    }

    /// Returns this word with `level` vacated.
    #[inline]
    #[must_use]
    pub const fn vacate(self, level: u8) -> Self {
        Word(self.0 & !(bit(level) as u64))
    }

    /// Returns this word with `level` marked ready.
    #[inline]
    #[must_use]
    pub const fn mark_ready(self, level: u8) -> Self {
        Word(self.0 | Self::ready_bit(level))
    }

    /// Returns this word with `level` occupied and its ready mark cleared, as starting a level
    /// does.
    #[inline]
    #[must_use]
    pub const fn start(self, level: u8) -> Self {
        Word(self.occupy(level).0 & !Self::ready_bit(level))
    }

    /// Returns `true` if lowering to this word may require further work: waking waiters or serving
    /// levels.
    ///
    /// Comparing the two sets as numbers is cheaper than comparing their highest members and never
    /// misses a case: if the highest ready level is above the highest occupied one, then so is the
    /// number.
    #[inline]
    pub(crate) const fn may_have_work(self) -> bool {
        // The number of waiters is in the bits above the ready levels.
        self.0 >> READY_SHIFT > self.occupied() as u64
    }

    /// Returns `true` if a level is ready or a thread waits.
    #[inline]
    pub(crate) const fn has_requests(self) -> bool {
        self.0 >> READY_SHIFT != 0
    }

    pub(crate) const fn ready_bit(level: u8) -> u64 {
        (bit(level) as u64) << READY_SHIFT
    }

    /// The bits of the occupied levels above `level`.
    pub(crate) const fn occupied_above(level: u8) -> u64 {
        SET & !((1 << level) - 1)
    }

    /// The bits of the ready levels above `level` and of the number of waiters.
    pub(crate) const fn work_above(level: u8) -> u64 {
        u64::MAX << (READY_SHIFT + level as u32)
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
    fn level_is_highest_member_of_set() {
        assert_eq!(Word::EMPTY.level(), 0);
        for level in 1..=MAX_LEVEL {
            assert_eq!(Word::EMPTY.occupy(level).level(), level);
            assert_eq!(Word::EMPTY.mark_ready(level).highest_ready(), level);
            assert_eq!(Word::EMPTY.occupy(level).vacate(level), Word::EMPTY);
        }
        assert_eq!(Word::EMPTY.occupy(2).occupy(7).vacate(7).level(), 2);
    }

    #[test]
    fn serves_only_higher_ready_levels() {
        let word = Word::EMPTY.occupy(3).mark_ready(2);
        assert!(word.level() == 3 && word.is_ready(2) && !word.is_ready(3));
        assert!(!word.must_serve() && !word.may_have_work());
        let same = word.mark_ready(3);
        assert!(!same.must_serve(), "it is being served");
        assert!(!Word::EMPTY.occupy(3).mark_ready(3).may_have_work());
        assert!(same.mark_ready(4).must_serve());
        assert_eq!(same.mark_ready(4).start(4), same.occupy(4));
    }

    #[test]
    fn next_level_is_above_occupied_and_ready_ones() {
        let first = |word: Word| [2, 3, 4, 7].map(|level| word.goes_first(level));
        assert_eq!(first(Word::EMPTY.mark_ready(3)), [false, false, true, true]);
        assert_eq!(first(Word::EMPTY.occupy(3)), [false, false, true, true]);
        assert_eq!(first(Word::EMPTY.occupy(2).mark_ready(4)), [false, false, false, true]);
    }

    #[test]
    fn fields_of_word_do_not_overlap() {
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
    fn work_is_never_missed() {
        for occupied in 0..64_u64 {
            for ready in 0..64_u64 {
                let word = Word::from_raw(occupied | ready << READY_SHIFT);
                assert!(!word.must_serve() || word.may_have_work(), "{word:?}");
            }
        }
        assert!(Word::from_raw(Word::ONE_WAITER).may_have_work());
    }
}

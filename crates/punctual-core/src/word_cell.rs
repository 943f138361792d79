//! The cell of a partition's word.
//!
//! The protocol requires only that the cell is linearizable: each operation takes effect at one
//! instant between its call and its return, and loads and changes by one thread are seen in program
//! order. So a port may use a cell that suits its threads better than an atomic, and the proofs of
//! the protocol still hold.

use core::fmt::Debug;
use core::marker::PhantomData;

use crate::atomic::{AtomicIsize, AtomicU32, AtomicU64, Ordering};
use crate::partition::{Dispatch, SharedWord};
use crate::word::{Word, bit};

/// Constant masks of the word, to occupy and vacate one level.
pub trait Masks {
    /// The occupied bit of the level.
    const BIT: u32;
    /// Bits that prevent the level from being occupied while one of them is set.
    const BLOCKERS: u64;
    /// Bits that require further work if one of them is set after the level was vacated. All bits
    /// from some position on; `BIT` is not among them.
    const WORK: u64;
    /// `true` for the masks of a job, see [`WordCell::CHECKS_JOBS`].
    const IS_JOB: bool = false;
    /// See [`ConstLevel::IS_PLAIN_FIRST`].
    const IS_PLAIN_FIRST: bool = false;
}

/// Result of [`WordCell::set_unless`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// The bit has been set.
    Set,
    /// The bit has been set for a job that requires further checks.
    Flagged,
    /// The bit has not been set.
    Refused,
}

/// Result of [`WordCell::clear`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearing {
    /// The bit has been cleared, and no bit of [`WORK`](Masks::WORK) is set.
    Idle,
    /// The bit has been cleared, and a bit of [`WORK`](Masks::WORK) is set.
    Work,
    /// The bit is still set.
    Refused,
}

impl Clearing {
    /// Returns the result for a word after the bit was cleared.
    #[inline(always)]
    pub fn of<M: Masks>(word: u64) -> Self {
        if word & M::WORK == 0 { Self::Idle } else { Self::Work }
    }
}

/// A level that is a constant.
pub trait ConstLevel {
    /// The level's number.
    const NUMBER: u8;
    /// `true` if a cell with more than one way to change the word first tries that of an atomic, at
    /// the expense of the others.
    const IS_PLAIN_FIRST: bool = false;
}

/// The masks of a job that runs as a call.
pub(crate) struct Start<L>(PhantomData<L>);

impl<L: ConstLevel> Masks for Start<L> {
    const BIT: u32 = bit(L::NUMBER);
    // Rule *Start* of the proof with `Partition`. The ready bit: queued jobs are not overtaken.
    const BLOCKERS: u64 = Word::occupied_above(L::NUMBER - 1) | Word::ready_bit(L::NUMBER);
    // The level that remains occupied is not a constant.
    const WORK: u64 = Word::work_above(0);
    const IS_JOB: bool = true;
    const IS_PLAIN_FIRST: bool = L::IS_PLAIN_FIRST;
}

/// A value by which a thread identifies itself to a [cell](WordCell::token), kept in the record of
/// its worker.
pub trait Token: Copy + Debug {
    /// The value for cells that are not changed.
    const NONE: Self;

    /// Records the token.
    fn store(self, record: &AtomicIsize);

    /// Returns the recorded token.
    fn load(record: &AtomicIsize) -> Self;
}

impl Token for () {
    const NONE: Self = ();

    #[inline(always)]
    fn store(self, _: &AtomicIsize) {}

    #[inline(always)]
    fn load(_: &AtomicIsize) {}
}

impl Token for isize {
    const NONE: Self = 0;

    #[inline(always)]
    fn store(self, record: &AtomicIsize) {
        record.store(self, Ordering::Relaxed);
    }

    #[inline(always)]
    fn load(record: &AtomicIsize) -> Self {
        record.load(Ordering::Relaxed)
    }
}

/// A cell that holds the word of a partition.
///
/// # Safety
/// The operations on one cell behave like those of an atomic with the given orderings: they take
/// effect one after the other, each on the value that its predecessor left, regardless of the
/// calling threads and CPUs, and of where these are interrupted or migrated. With
/// [`OneThread`](crate::OneThread) as the dispatch variant, this concerns the ready levels alone.
pub unsafe trait WordCell: Debug + Sync {
    /// The dispatch variant of the partitions with such a cell: [`SharedWord`](crate::SharedWord),
    /// or [`OneThread`](crate::OneThread) if the cell holds only the ready levels.
    type Dispatch: Dispatch;

    /// The [token](Self::token) of a thread: `()` if the cell needs none.
    type Token: Token;

    /// `true` if the port can flag the cell, so that jobs start and end with further checks.
    ///
    /// Such a cell tests the flag in [`set_unless`](Self::set_unless) and [`clear`](Self::clear)
    /// with the [masks of a job](Masks::IS_JOB), and in [`take_own`](Self::take_own): these fail,
    /// or return [`Setting::Flagged`], after the calling thread has set the flag, or if another
    /// thread has set the flag and then changed the word, and this operation finds that change. So
    /// the port need not test flags of its own around these operations.
    const CHECKS_JOBS: bool = false;

    /// Records `occupied` as the levels that the one thread occupies, for
    /// [`OneThread`](crate::OneThread).
    ///
    /// Accesses of that thread before and after this call, in program order, stay before and after
    /// it for the interrupt handlers that it runs.
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

    /// Loads the word.
    fn load(&self, order: Ordering) -> u64;

    /// Replaces `from` with `to`; may fail spuriously.
    ///
    /// # Errors
    /// Returns the current word if it was not replaced.
    fn swap(&self, from: u64, to: u64, order: Ordering) -> Result<(), u64>;

    /// Clears the bits that are not in `bits`; returns the previous word.
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64;

    /// Sets the bits that are in `bits`; returns the previous word.
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64;

    /// Subtracts `number`, with wrapping; returns the previous word.
    fn fetch_sub(&self, number: u64, order: Ordering) -> u64;

    /// Returns the token of the calling thread, which [`set_unless`](Self::set_unless) and
    /// [`clear`](Self::clear) require.
    ///
    /// The token is constant until the cell is reset, so the thread may store it.
    fn token(&self) -> Self::Token;

    /// Sets `BIT` unless a bit of `BLOCKERS` is set, with acquire ordering; may refuse although no
    /// bit of `BLOCKERS` is set.
    ///
    /// Only threads of the partition call this and [`clear`](Self::clear), so that a port can clean
    /// up after them when they leave.
    ///
    /// # Safety
    /// The [`token`](Self::token) is that of the calling thread.
    #[inline(always)]
    unsafe fn set_unless<M: Masks>(&self, token: Self::Token) -> Setting {
        let _ = token;
        let word = self.load(Ordering::Relaxed);
        let blocked = word & M::BLOCKERS != 0;
        if !blocked && self.swap(word, word | u64::from(M::BIT), Ordering::Acquire).is_ok() {
            Setting::Set
        } else {
            Setting::Refused
        }
    }

    /// Clears `BIT`, with release ordering, and looks for a bit of `WORK` in the resulting word, or
    /// in a later word that other threads have made of it; may refuse.
    ///
    /// # Safety
    /// As for [`set_unless`](Self::set_unless).
    #[inline(always)]
    unsafe fn clear<M: Masks>(&self, token: Self::Token) -> Clearing {
        let _ = token;
        Clearing::of::<M>(self.fetch_and(!u64::from(M::BIT), Ordering::Release))
    }

    /// Replaces `from` in `number` with 0, on a thread of the partition. Returns whether it has;
    /// may fail without need.
    ///
    /// # Safety
    /// As for [`set_unless`](Self::set_unless).
    #[inline(always)]
    unsafe fn take(&self, number: &AtomicU32, from: u32, token: Self::Token) -> bool {
        let _ = token;
        // Acquire: this thread sees what the one that set it did before. Release: a thread that
        // finds 0 sees what this thread did before.
        number.compare_exchange(from, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// [`take`](Self::take) of `from`, which the calling thread has loaded, if it is positive as a
    /// signed number.
    ///
    /// # Safety
    /// As for [`set_unless`](Self::set_unless), and no other thread has made the number positive
    /// since this one loaded `from`, or does so before this returns.
    #[inline(always)]
    unsafe fn take_own(&self, number: &AtomicU32, from: u32, token: Self::Token) -> bool {
        // SAFETY: by this function's contract.
        from.cast_signed() > 0 && unsafe { self.take(number, from, token) }
    }

    /// Replaces `number` with `to`, from any thread; returns the previous value. Linearizable with
    /// [`take`](Self::take).
    fn withdraw(&self, number: &AtomicU32, to: u32) -> u32 {
        // Acquire: as in `take`.
        number.swap(to, Ordering::Acquire)
    }

    /// Sets the word to 0 and discards all other state.
    ///
    /// # Safety
    /// No other thread uses the cell.
    unsafe fn reset(&self);
}

// SAFETY: the cell is an atomic.
unsafe impl WordCell for AtomicU64 {
    type Dispatch = SharedWord;
    type Token = ();

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
    fn token(&self) {}

    #[inline(always)]
    unsafe fn clear<M: Masks>(&self, (): ()) -> Clearing {
        let before = self.fetch_and(!u64::from(M::BIT), Ordering::Release);
        // A locked AND of x86-64 does not return the word, and a compare-and-swap loop costs more
        // than another load. The models use the load, which shows later words, too.
        let word =
            if cfg!(any(loom, target_arch = "x86_64")) { self.load(Ordering::Relaxed) } else { before };
        Clearing::of::<M>(word)
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

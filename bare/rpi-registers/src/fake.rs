//! Blocks of registers in ordinary memory.
//!
//! Such a register keeps the last written value, regardless of its behavior in a peripheral. A test
//! sets the registers that a driver reads and checks those that it writes.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};
use std::boxed::Box;
use std::vec::Vec;

use crate::{Block, Registers};

/// The memory of a block, initially zero. It is never freed.
#[derive(Debug)]
pub struct Fake<R> {
    words: &'static [AtomicU32],
    kind: PhantomData<fn() -> R>,
}

// Implemented by hand, because `R` need not be `Copy`.
impl<R> Clone for Fake<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Fake<R> {}

impl<R: Registers> Fake<R> {
    /// Creates a block of zeros and returns it with its memory.
    pub fn new() -> (Block<R>, Self) {
        const { assert!(size_of::<R>().is_multiple_of(4) && align_of::<R>() <= 4) };
        let words: Vec<AtomicU32> = (0..size_of::<R>() / 4).map(|_| AtomicU32::new(0)).collect();
        let words: &'static [AtomicU32] = Box::leak(words.into_boxed_slice());
        // SAFETY: the memory is never freed, is large enough, and every content is valid. Apart
        // from the block, only atomics access it.
        let block = unsafe { Block::at(words.as_ptr().expose_provenance()) };
        (block, Self { words, kind: PhantomData })
    }

    /// Returns the word at an offset in bytes.
    ///
    /// # Panics
    /// If the block has no such word.
    #[track_caller]
    pub fn get(self, offset: usize) -> u32 {
        self.word(offset).load(Ordering::SeqCst)
    }

    /// Sets the word at an offset in bytes.
    ///
    /// # Panics
    /// If the block has no such word.
    #[track_caller]
    pub fn set(self, offset: usize, value: u32) {
        self.word(offset).store(value, Ordering::SeqCst);
    }

    #[track_caller]
    fn word(self, offset: usize) -> &'static AtomicU32 {
        assert!(offset.is_multiple_of(4), "{offset:#x} is no offset of a word");
        &self.words[offset / 4]
    }
}

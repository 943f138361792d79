//! What each core has of its own.

use core::cell::Cell;

use super::board;

/// How many cores a board has at most.
const CORES: usize = 4;

/// A value for each core, which that core alone uses.
///
/// The handler of an interrupt that changes it has to put back what it has found.
pub(crate) struct PerCore<T>([Cell<T>; CORES]);

// SAFETY: a core uses its own value alone, and does one thing at a time; the value is copied in and out.
unsafe impl<T: Copy> Sync for PerCore<T> {}

impl<T: Copy> PerCore<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self([Cell::new(value), Cell::new(value), Cell::new(value), Cell::new(value)])
    }

    fn mine(&self) -> &Cell<T> {
        &self.0[board::core() as usize % CORES]
    }

    pub(crate) fn get(&self) -> T {
        self.mine().get()
    }

    pub(crate) fn set(&self, value: T) {
        self.mine().set(value);
    }

    pub(crate) fn replace(&self, value: T) -> T {
        self.mine().replace(value)
    }
}

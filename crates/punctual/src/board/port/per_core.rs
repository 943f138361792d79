//! Per-core values.

use core::cell::Cell;

/// Maximum number of cores of a board.
const CORES: usize = 4;

/// A value for each core, used only by that core.
///
/// An interrupt handler that changes it has to restore it.
pub(crate) struct PerCore<T>([Cell<T>; CORES]);

// SAFETY: a core uses only its own value, and executes one thing at a time; the value is copied in
// and out.
unsafe impl<T: Copy> Sync for PerCore<T> {}

impl<T: Copy> PerCore<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self([Cell::new(value), Cell::new(value), Cell::new(value), Cell::new(value)])
    }

    fn mine(&self) -> &Cell<T> {
        &self.0[super::core() as usize % CORES]
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

/// Declares statics with a value for each thread, which is the core.
macro_rules! per_thread {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$attribute])* static $name: $crate::board::port::PerCore<$type> = $crate::board::port::PerCore::new($value);)*
    };
}

pub(crate) use per_thread;

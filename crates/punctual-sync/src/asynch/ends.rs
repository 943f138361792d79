//! Counts the ends of an object, so that their number never exceeds the number of slots.

use crate::Taken;
use crate::atomic::{AtomicU32, Ordering, const_new};

pub(super) struct Ends(AtomicU32);

impl Ends {
    const_new! {
        pub(super) fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// Adds one, up to `most`.
    pub(super) fn try_add(&self, most: usize) -> Result<(), Taken> {
        let mut count = self.0.load(Ordering::Relaxed);
        while (count as usize) < most {
            match self.0.compare_exchange_weak(count, count + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => count = now,
            }
        }
        Err(Taken)
    }

    /// Adds one, up to `most`.
    ///
    /// # Panics
    /// If there are `most` already.
    pub(super) fn add(&self, most: usize) {
        assert!(self.try_add(most).is_ok(), "all {most} ends are in use: raise `W` of the type");
    }

    /// Subtracts one; returns the remaining number.
    pub(super) fn remove(&self) -> u32 {
        // Release: a thread that sees in `count` that none is left sees the actions of all, since
        // each exchange passes on what those before it released.
        self.0.fetch_sub(1, Ordering::Release) - 1
    }

    pub(super) fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}

//! A small model of fixed-priority scheduling: threads with scripts on one or two CPUs, interrupts that nest, locks of
//! three kinds with and without inheritance, a scheduler that takes time.
//!
//! Time goes in ticks. In every tick each job is in one condition, read off the model's own state, and the tick is counted
//! for it: that is the truth. Beside it the model writes the events a kernel would have written.
#![allow(unreachable_pub, missing_docs)]

mod machine;
mod threads;
mod truth;

pub use machine::{Machine, Style};
pub use truth::Truth;

/// Ticks are this long, in ns.
pub const TICK: u64 = 10;

/// xorshift64*, so that a seed says everything.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..4 {
            random.next();
        }
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// From `from` to `to`, both included.
    pub fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    /// Once in `n`.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.next() % n == 0
    }
}

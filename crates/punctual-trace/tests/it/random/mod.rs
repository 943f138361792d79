//! Reproducible randomness.
#![allow(dead_code, unreachable_pub, missing_docs)]

/// xorshift64*, so that a seed determines everything.
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

    /// Returns a number between `from` and `to`, both included.
    pub fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    /// Returns true once in `n` calls on average.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// Returns the number of random inputs of a test: `few`, or the multiple that `PUNCTUAL_REPEATS`
/// states. `cargo xtask nightly` sets it.
pub fn inputs(few: u64) -> u64 {
    let times = std::env::var("PUNCTUAL_REPEATS");
    few * times.map_or(1, |times| times.parse().expect("PUNCTUAL_REPEATS is a number"))
}

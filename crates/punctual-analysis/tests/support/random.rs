//! Reproducible random numbers, and utilizations by UUniFast-discard (Davis & Burns, RTSS 2009).

/// xorshift64*; the seed is not 0.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number from `low` to `high`, both included.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns `true` once in `n` times on average.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    /// Returns a number between both, with the same probability for every magnitude.
    pub(crate) fn log_uniform(&mut self, low: u64, high: u64) -> u64 {
        let (from, to) = ((low as f64).ln(), (high as f64).ln());
        (self.fraction().mul_add(to - from, from).exp() as u64).clamp(low, high)
    }

    /// Returns `count` shares, none above 1, with the sum `total`.
    pub(crate) fn utilizations(&mut self, count: usize, total: f64) -> Vec<f64> {
        loop {
            let mut left = total;
            let mut shares = Vec::with_capacity(count);
            for others in (1..count).rev() {
                let rest = left * self.fraction().powf(1.0 / others as f64);
                shares.push(left - rest);
                left = rest;
            }
            shares.push(left);
            if shares.iter().all(|&share| share <= 1.0) {
                return shares;
            }
        }
    }
}

//! Pseudorandom numbers, the same for the same seed on every machine (SplitMix64).

/// Sequence of numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Returns the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the sequence of several numbers, which differs from that of any others.
    pub fn of(numbers: &[u64]) -> Self {
        let mut all = Self(0);
        for &number in numbers {
            all.0 = Self(all.0 ^ number).bits();
        }
        all
    }

    /// Returns any number.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// Returns a number below `unit`, doubled up to `times` times: small ones are more frequent.
    pub fn scaled(&mut self, unit: u64, times: u64) -> u64 {
        let end = unit << self.below(times + 1);
        self.below(end)
    }

    /// Returns true once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns one element.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    /// Returns each element with a chance of one in `times`.
    pub fn some<T: Clone>(&mut self, all: &[T], times: u64) -> Vec<T> {
        all.iter().filter(|_| self.one_in(times)).cloned().collect()
    }

    /// Shuffles the elements.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for end in (1..all.len()).rev() {
            all.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_reproducible_by_seed() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.bits(), random.below(10), random.bits()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_ne!(Random::of(&[1, 2]).bits(), Random::of(&[2, 1]).bits());
    }

    #[test]
    fn shuffles_without_loss() {
        let mut all: Vec<u32> = (0..20).collect();
        Random::new(3).shuffle(&mut all);
        assert_ne!(all, (0..20).collect::<Vec<_>>());
        all.sort_unstable();
        assert_eq!(all, (0..20).collect::<Vec<_>>());
    }
}

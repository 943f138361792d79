//! Distance curves of observed releases: δ⁻(n) and δ⁺(n), the least and the largest distance
//! between the first and the last of n consecutive releases.
//!
//! *Richter, "Compositional Scheduling Analysis Using Standard Event Models", PhD thesis, TU
//! Braunschweig, 2005*. If releases are known only within windows, both distances are known between
//! two lengths.
//!
//! A burst is rarely as dense for long as it is for a moment. For large n, the least distance is
//! therefore recorded for every power-of-two multiple of the recorded range; the distances between
//! follow by superadditivity.

use std::collections::VecDeque;

use super::Window;
use crate::time::Nanos;

/// Largest number of gaps to look back.
const FAR: usize = 1 << 13;

/// Distances of a sequence of releases, computed online.
#[derive(Debug, Clone)]
pub struct Curves {
    most: usize,
    recent: VecDeque<Window>,
    releases: u64,
    stretches: u64,
    spans: Vec<Span>,
    /// Least distances over more gaps than `spans` covers: twice as many, and twice as many again.
    far: Vec<Nanos>,
}

/// Distances between the first and the last of a number of consecutive releases, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Lower limit of the least distance.
    pub least: Nanos,
    /// Upper limit of the least distance; equal to `least` if releases are known exactly.
    pub least_most: Nanos,
    /// Lower limit of the largest distance.
    pub largest_least: Nanos,
    /// Upper limit of the largest distance.
    pub largest: Nanos,
}

impl Curves {
    /// Creates curves for up to `most` releases, at least two.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(2),
            recent: VecDeque::new(),
            releases: 0,
            stretches: 0,
            spans: Vec::new(),
            far: Vec::new(),
        }
    }

    /// Adds the next release. Releases are ordered, so the window starts no earlier than the
    /// previous ones.
    pub fn push(&mut self, (first, last): Window) {
        let previous = self.recent.back().copied().unwrap_or((0, 0));
        let first = first.max(previous.0);
        let last = last.max(previous.1).max(first);
        if self.recent.is_empty() {
            self.stretches += 1;
        }
        self.releases += 1;
        for (at, &(earliest, latest)) in self.recent.iter().rev().take(self.most - 1).enumerate() {
            let (least, most) = (first.saturating_sub(latest), last - earliest);
            match self.spans.get_mut(at) {
                Some(span) => {
                    span.least = span.least.min(least);
                    span.least_most = span.least_most.min(most);
                    span.largest_least = span.largest_least.max(least);
                    span.largest = span.largest.max(most);
                }
                None => {
                    self.spans.push(Span { least, least_most: most, largest_least: least, largest: most })
                }
            }
        }
        for at in 0.. {
            let gaps = (self.most - 1) << (at + 1);
            let Some(place) = self.recent.len().checked_sub(gaps) else { break };
            let least = first.saturating_sub(self.recent[place].1);
            match self.far.get_mut(at) {
                Some(far) => *far = (*far).min(least),
                None => self.far.push(least),
            }
        }
        if self.recent.len() == FAR.max(self.most - 1) {
            self.recent.pop_front();
        }
        self.recent.push_back((first, last));
    }

    /// Marks a gap in the recording: no distance spans it.
    pub fn interrupt(&mut self) {
        self.recent.clear();
    }

    /// Returns the number of releases.
    #[must_use]
    pub fn releases(&self) -> u64 {
        self.releases
    }

    /// Returns the number of stretches without a gap.
    #[must_use]
    pub fn stretches(&self) -> u64 {
        self.stretches
    }

    /// Returns the distances of 2, 3, … releases, up to the longest sequence observed in one
    /// stretch.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Returns the least distances of 2, 3, … releases, which never decrease.
    #[must_use]
    pub fn least(&self) -> Vec<Nanos> {
        // With one long and many short stretches, more releases may appear closer together than
        // fewer. That is impossible, because the fewer are among the more. Windows may overlap;
        // then both distances are 0.
        let mut before = 0;
        let grow = |span: &Span| {
            before = span.least.max(before);
            before
        };
        self.spans.iter().map(grow).collect()
    }

    /// Returns the least distances like [`least`](Self::least), extended to the power-of-two
    /// multiples.
    #[must_use]
    pub fn least_of_many(&self) -> Vec<Nanos> {
        let mut least = self.least();
        let mut known = self.most - 1;
        if least.len() < known {
            return least;
        }
        for &far in &self.far {
            for gaps in known + 1..=2 * known {
                let parts = least[known - 1].saturating_add(least[gaps - known - 1]);
                let seen = if gaps == 2 * known { far } else { 0 };
                least.push(parts.max(seen).max(least[gaps - 2]));
            }
            known *= 2;
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of the package `rt-model-inference` 1.0.1, whose distances count both ends.
    #[test]
    fn infers_distances_of_published_example() {
        let releases: [Nanos; 20] = [
            135, 249, 354, 473, 526, 657, 729, 823, 935, 1041, 1144, 1258, 1368, 1434, 1534, 1653, 1753,
            1834, 1944, 2057,
        ];
        let mut curves = Curves::new(7);
        releases.iter().for_each(|&at| curves.push((at, at)));
        let least: Vec<Nanos> = curves.least().iter().map(|ns| ns + 1).collect();
        assert_eq!(least[..4], [54, 167, 257, 351]);
        let largest: Vec<Nanos> = curves.spans().iter().map(|span| span.largest - 1).collect();
        assert_eq!(largest, [130, 223, 337, 434, 544, 638]);
        assert!(curves.spans().iter().all(|span| span.least == span.least_most));
    }

    #[test]
    fn bounds_window_distances_below_and_above() {
        let mut curves = Curves::new(3);
        [(0, 10), (100, 130), (200, 205)].into_iter().for_each(|window| curves.push(window));
        let two = Span { least: 70, least_most: 105, largest_least: 90, largest: 130 };
        assert_eq!(
            curves.spans(),
            [two, Span { least: 190, least_most: 205, largest_least: 190, largest: 205 }]
        );
    }

    /// Compares with the least distance of every number of gaps, found by enumeration.
    #[test]
    fn extrapolates_lower_bound_of_many_releases() {
        let mut seed = 1_u64;
        for _ in 0..20 {
            let mut at = 0;
            let releases: Vec<Nanos> = (0..150)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    at += if seed >> 62 == 0 { 1_000 } else { (seed >> 33) % 20 };
                    at
                })
                .collect();
            let mut curves = Curves::new(5);
            releases.iter().for_each(|&at| curves.push((at, at)));
            let least = curves.least_of_many();
            assert_eq!(least.len(), 128);
            assert!(least.is_sorted());
            for (gaps, &least) in (1..).zip(&least) {
                let tried = releases.windows(gaps + 1).map(|it| it[gaps] - it[0]).min().unwrap();
                let is_seen = gaps <= 4 || (gaps / 4).is_power_of_two() && gaps % 4 == 0;
                assert!(
                    if is_seen { least == tried } else { least <= tried },
                    "{gaps}: {least}, not {tried}"
                );
            }
        }
        let mut few = Curves::new(5);
        [1, 2, 4].into_iter().for_each(|at| few.push((at, at)));
        assert_eq!(few.least_of_many(), [1, 3]);
    }

    #[test]
    fn limits_look_back_to_window() {
        let mut curves = Curves::new(65);
        (0..3 * FAR as u64).for_each(|at| curves.push((at * 7, at * 7)));
        assert_eq!((curves.recent.len(), curves.least_of_many().len()), (FAR, FAR));
        assert!(curves.least_of_many().iter().zip(1..).all(|(&least, gaps)| least == 7 * gaps));
    }

    #[test]
    fn ignores_distances_across_gap() {
        let mut curves = Curves::new(4);
        [5, 10].into_iter().for_each(|at| curves.push((at, at)));
        curves.interrupt();
        [11, 18].into_iter().for_each(|at| curves.push((at, at)));
        assert_eq!((curves.least(), curves.releases(), curves.stretches()), (vec![5], 4, 2));
    }

    /// A window that starts before the last one cannot make a distance negative.
    #[test]
    fn keeps_releases_in_order() {
        let mut curves = Curves::new(3);
        [(10, 30), (5, 20), (0, 31)].into_iter().for_each(|window| curves.push(window));
        let two = Span { least: 0, least_most: 20, largest_least: 0, largest: 21 };
        assert_eq!(curves.spans()[0], two);
    }
}

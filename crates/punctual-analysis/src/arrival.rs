//! Arrival curves: the largest number of releases in any interval of a given length.
//!
//! A [`Stream`] is described by its least distances: `distance(k)` is the length of the shortest
//! interval that contains `k` releases. Two counts follow from it: the most releases in an interval
//! without its end, [`Stream::before`], and with its end, [`Stream::until`]. A preemptive analysis
//! counts the releases *before* the instant at which a job ends. An analysis of start times counts
//! the releases *until* the start, because a job released at that very instant can still be chosen.

use std::sync::Arc;

use crate::fraction::Fraction;
use crate::time::Nanos;

/// Releases of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    pattern: Pattern,
    /// Number of jobs that each release comprises.
    each: u64,
    jitter: Nanos,
    /// Number of releases to subtract from every count.
    fewer: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// At most `burst` releases in any window of length `window`, at least `separation` apart.
    Bursts { burst: u64, separation: Nanos, window: Nanos },
    /// The least distances of 2, 3, … releases.
    Distances(Arc<[Nanos]>),
    /// A total number of releases, at any instants.
    InAll(u64),
}

impl Stream {
    /// Creates sporadic releases with at least `period` between any two, or periodic ones with any
    /// offset.
    ///
    /// # Panics
    /// Panics if `period` is 0.
    #[must_use]
    pub fn sporadic(period: Nanos) -> Self {
        Self::bursts(1, 0, period)
    }

    /// Creates a stream with at most `burst` releases in any half-open window of length `window`,
    /// and at least `separation` between any two.
    ///
    /// # Panics
    /// Panics if `burst` or `window` is 0, or if `burst` releases do not fit into the window.
    #[must_use]
    pub fn bursts(burst: u64, separation: Nanos, window: Nanos) -> Self {
        assert!(burst > 0 && window > 0, "a stream needs a window and at least one release in it");
        assert!(
            (burst - 1).checked_mul(separation).is_some_and(|span| span <= window),
            "a burst is too long"
        );
        Self { pattern: Pattern::Bursts { burst, separation, window }, each: 1, jitter: 0, fewer: 0 }
    }

    /// Creates a stream from the lengths of the shortest intervals that contain 2, 3, … releases.
    /// Distances of more releases follow by superadditivity.
    ///
    /// # Panics
    /// Panics if the list is empty, if it decreases, or if its last entry is 0.
    #[must_use]
    pub fn distances(distances: Vec<Nanos>) -> Self {
        assert!(distances.is_sorted(), "more releases cannot be closer to each other");
        assert!(distances.last().is_some_and(|&last| last > 0), "a stream needs a distance");
        Self { pattern: Pattern::Distances(distances.into()), each: 1, jitter: 0, fewer: 0 }
    }

    /// Creates a stream with a total number of releases, possibly 0, at any instants.
    pub(crate) fn in_all(releases: u64) -> Self {
        Self { pattern: Pattern::InAll(releases), each: 1, jitter: 0, fewer: 0 }
    }

    /// Returns the total number of releases, if it is limited.
    pub(crate) fn all(&self) -> Option<u64> {
        match self.pattern {
            Pattern::InAll(releases) => Some(releases),
            _ => None,
        }
    }

    /// Adds release jitter, in ns.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Nanos) -> Self {
        self.jitter = self.jitter.saturating_add(jitter);
        self
    }

    /// Returns the stream without release jitter.
    pub(crate) fn without_jitter(&self) -> Self {
        Self { jitter: 0, ..self.clone() }
    }

    /// Removes one release from every interval.
    pub(crate) fn one_fewer(mut self) -> Self {
        self.fewer = self.fewer.saturating_add(1);
        self
    }

    /// Multiplies the number of jobs per release by `each`.
    ///
    /// # Panics
    /// Panics if `each` is 0.
    #[must_use]
    pub fn times(mut self, each: u64) -> Self {
        assert!(each > 0, "a stream without releases is no stream");
        self.each = self.each.saturating_mul(each);
        self
    }

    /// Keeps `taken` of every `of` jobs that are released together.
    pub(crate) fn share(mut self, taken: u64, of: u64) -> Self {
        match taken {
            0 => Self::in_all(0),
            _ => {
                // Rounds up: a product that overflowed is not a multiple.
                self.each = (self.each / of.max(1) + u64::from(!self.each.is_multiple_of(of.max(1))))
                    .saturating_mul(taken)
                    .min(self.each);
                self
            }
        }
    }

    /// Returns the release jitter, in ns.
    #[must_use]
    pub fn jitter(&self) -> Nanos {
        self.jitter
    }

    /// Returns the most releases in an interval of this length without its end, or `None` on
    /// overflow.
    #[inline]
    #[must_use]
    pub fn before(&self, length: Nanos) -> Option<u64> {
        if length == 0 {
            return Some(0);
        }
        let last = length.checked_add(self.jitter)? - 1;
        let arrivals = match &self.pattern {
            // Division dominates the cost, and the first window needs none.
            &Pattern::Bursts { burst: 1, window, .. } if last < window => 1,
            &Pattern::Bursts { burst: 1, window, .. } => last / window + 1,
            &Pattern::Bursts { burst, separation, window } => {
                let (windows, rest) = (last / window, last % window);
                let in_last = rest.checked_div(separation).map_or(burst, |whole| burst.min(whole + 1));
                windows.checked_mul(burst)?.checked_add(in_last)?
            }
            Pattern::Distances(distances) => {
                let period = *distances.last()?;
                let (windows, rest) = (last / period, last % period);
                let in_last = distances.partition_point(|&distance| distance <= rest) as u64 + 1;
                windows.checked_mul(distances.len() as u64)?.checked_add(in_last)?
            }
            &Pattern::InAll(releases) => releases,
        };
        Some(arrivals.checked_mul(self.each)?.saturating_sub(self.fewer))
    }

    /// Returns the most releases in an interval of this length with its end, or `None` on overflow.
    #[inline]
    #[must_use]
    pub fn until(&self, length: Nanos) -> Option<u64> {
        self.before(length.checked_add(1)?)
    }

    /// Returns `a` such that any interval of length `t` contains at most about `a + rate · t`
    /// releases.
    pub(crate) fn at_once(&self, rate: f64) -> f64 {
        let arrivals = match &self.pattern {
            &Pattern::Bursts { burst, .. } => burst,
            Pattern::Distances(distances) => distances.len() as u64,
            &Pattern::InAll(releases) => releases,
        };
        (arrivals as f64).mul_add(self.each as f64, rate * self.jitter as f64)
    }

    /// Returns the length of the shortest interval, end included, that contains `releases`
    /// releases, or `None` on overflow.
    #[inline]
    #[must_use]
    pub fn distance(&self, releases: u64) -> Option<Nanos> {
        let releases = releases.checked_add(self.fewer)?;
        let gaps = match self.each {
            1 => releases.saturating_sub(1),
            each => releases.saturating_sub(1) / each,
        };
        let distance = match &self.pattern {
            &Pattern::Bursts { burst: 1, window, .. } => gaps.checked_mul(window)?,
            &Pattern::Bursts { burst, separation, window } => {
                (gaps / burst).checked_mul(window)?.checked_add((gaps % burst) * separation)?
            }
            Pattern::Distances(distances) => {
                let (windows, rest) = (gaps / distances.len() as u64, gaps % distances.len() as u64);
                let within = if rest == 0 { 0 } else { distances[rest as usize - 1] };
                windows.checked_mul(*distances.last()?)?.checked_add(within)?
            }
            &Pattern::InAll(all) if gaps >= all => return Some(Nanos::MAX),
            Pattern::InAll(_) => 0,
        };
        Some(distance.saturating_sub(self.jitter))
    }

    /// Returns the next length after `length` at which [`until`](Self::until) grows, or `None` on
    /// overflow.
    #[must_use]
    pub fn next_step(&self, length: Nanos) -> Option<Nanos> {
        self.distance(self.until(length)?.checked_add(1)?)
    }

    /// Returns the long-term number of releases per nanosecond.
    #[must_use]
    pub fn rate(&self) -> Fraction {
        let (arrivals, window) = match &self.pattern {
            &Pattern::Bursts { burst, window, .. } => (burst, window),
            Pattern::Distances(distances) => (distances.len() as u64, distances.last().copied().unwrap_or(1)),
            Pattern::InAll(_) => (0, 1),
        };
        Fraction::new(u128::from(arrivals) * u128::from(self.each), u128::from(window))
    }

    /// Estimates [`rate`](Self::rate) to within a few parts in 10¹⁵.
    #[must_use]
    pub fn rate_estimate(&self) -> f64 {
        let (arrivals, window) = match &self.pattern {
            &Pattern::Bursts { burst, window, .. } => (burst, window),
            Pattern::Distances(distances) => (distances.len() as u64, distances.last().copied().unwrap_or(1)),
            Pattern::InAll(_) => (0, 1),
        };
        arrivals as f64 * self.each as f64 / window as f64
    }

    /// Returns the length after which the pattern of releases repeats at the latest; for a periodic
    /// task, its period.
    #[must_use]
    pub fn window(&self) -> Nanos {
        match &self.pattern {
            &Pattern::Bursts { window, .. } => window,
            Pattern::Distances(distances) => distances.last().copied().unwrap_or(0),
            Pattern::InAll(_) => 0,
        }
    }

    /// Returns whether, without jitter, any two releases are at least one [window](Self::window)
    /// apart.
    #[must_use]
    pub fn is_sporadic(&self) -> bool {
        self.each == 1 && self.fewer == 0 && matches!(&self.pattern, Pattern::Bursts { burst: 1, .. })
    }

    /// Returns the least distance between releases without jitter and the jobs per release, if
    /// these describe the stream completely.
    pub(crate) fn period(&self) -> Option<(Nanos, u64)> {
        match self.pattern {
            Pattern::Bursts { burst: 1, window, .. } => Some((window, self.each)),
            _ => None,
        }
    }

    /// Scales all distances by a fraction, rounded down, to at least 1 ns.
    #[must_use]
    pub fn compressed(&self, numerator: u64, denominator: u64) -> Self {
        let scale = |ns: Nanos| {
            let product = u128::from(ns) * u128::from(numerator) / u128::from(denominator.max(1));
            u64::try_from(product).unwrap_or(Nanos::MAX)
        };
        let pattern = match &self.pattern {
            &Pattern::Bursts { burst, separation, window } => {
                Pattern::Bursts { burst, separation: scale(separation), window: scale(window).max(1) }
            }
            Pattern::Distances(distances) => {
                let mut distances: Vec<Nanos> = distances.iter().map(|&ns| scale(ns)).collect();
                if let Some(last) = distances.last_mut() {
                    *last = (*last).max(1);
                }
                Pattern::Distances(distances.into())
            }
            &Pattern::InAll(releases) => Pattern::InAll(releases),
        };
        Self { pattern, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts by enumeration: places each release as early as the distances allow, minus the
    /// jitter, but not before 0.
    fn counted(stream: &Stream, distance: impl Fn(u64) -> u64, until: Nanos) -> u64 {
        let base = (1..).take_while(|&k| distance(k).saturating_sub(stream.jitter) <= until).count() as u64;
        base * stream.each
    }

    #[test]
    fn counts_releases_allowed_by_distances() {
        type Distance = fn(u64) -> u64;
        let cases: [(Stream, Distance); 4] = [
            (Stream::sporadic(10), |k| (k - 1) * 10),
            (Stream::bursts(3, 2, 20), |k| (k - 1) / 3 * 20 + (k - 1) % 3 * 2),
            (Stream::bursts(4, 0, 9), |k| (k - 1) / 4 * 9),
            (Stream::distances(vec![3, 5, 30]), |k| (k - 1) / 3 * 30 + [0, 3, 5][(k - 1) as usize % 3]),
        ];
        for (stream, distance) in cases {
            for (jitter, each) in [(0, 1), (1, 1), (7, 2), (45, 1), (20, 3)] {
                let stream = stream.clone().with_jitter(jitter).times(each);
                assert_eq!(stream.before(0), Some(0));
                for length in 0..200 {
                    let until = counted(&stream, distance, length);
                    assert_eq!(stream.until(length), Some(until), "{stream:?} until {length}");
                    let next = stream.next_step(length).unwrap();
                    assert!(
                        next > length && stream.until(next).unwrap() > until,
                        "{stream:?} after {length}"
                    );
                    assert_eq!(stream.until(next - 1), Some(until), "{stream:?} before {next}");
                }
            }
        }
    }

    #[test]
    fn caps_simultaneous_releases() {
        for (all, jitter) in [(0, 0), (1, 0), (3, 50)] {
            let stream = Stream::in_all(all).with_jitter(jitter);
            assert_eq!(
                (stream.before(0), stream.before(1), stream.before(1_000)),
                (Some(0), Some(all), Some(all))
            );
            assert_eq!(stream.distance(all + 1), Some(Nanos::MAX));
            assert_eq!(stream.next_step(0), Some(Nanos::MAX));
            assert_eq!((stream.rate(), stream.at_once(0.0)), (Fraction::ZERO, all as f64));
        }
        assert_eq!(Stream::in_all(3).distance(3), Some(0));
    }

    #[test]
    fn rejects_overflowing_counts() {
        let stream = Stream::sporadic(1).times(u64::MAX);
        assert_eq!((stream.before(1), stream.before(2)), (Some(u64::MAX), None));
        assert_eq!(Stream::sporadic(1).until(u64::MAX), None);
        assert_eq!(Stream::sporadic(5).with_jitter(u64::MAX).before(9), None);
    }
}

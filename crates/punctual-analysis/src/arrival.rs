//! Arrival curves: how many jobs of a task may be released in an interval of a given length.
//!
//! A [`Stream`] is described by its least distances: `distance(k)` is the length of the shortest interval in which `k`
//! releases fit. Of this follow the most releases in an interval that does not contain its end, [`Stream::before`], and in
//! one that does, [`Stream::until`]. A preemptive analysis counts what is released *before* the instant at which a job ends;
//! an analysis of starting times counts what is released *until* the instant of the start, for who arrives then is still in
//! time to be chosen.

use std::sync::Arc;

use crate::fraction::Fraction;
use crate::time::Nanos;

/// Releases of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    pattern: Pattern,
    /// So many jobs are released at once by each.
    each: u64,
    jitter: Nanos,
    /// So many fewer than that.
    fewer: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// At most `burst` in any window of the length `window`, and `separation` apart.
    Bursts { burst: u64, separation: Nanos, window: Nanos },
    /// The least distances of 2, 3, … releases.
    Distances(Arc<[Nanos]>),
    /// So many in all, at any time.
    InAll(u64),
}

impl Stream {
    /// Releases with at least this time between any two: sporadic, or periodic with any offset.
    ///
    /// # Panics
    /// If `period` is 0.
    #[must_use]
    pub fn sporadic(period: Nanos) -> Self {
        Self::bursts(1, 0, period)
    }

    /// At most `burst` releases in any half-open window of length `window`, with at least `separation` between any two.
    ///
    /// # Panics
    /// If `burst` or `window` is 0, or if `burst` releases take longer than the window.
    #[must_use]
    pub fn bursts(burst: u64, separation: Nanos, window: Nanos) -> Self {
        assert!(burst > 0 && window > 0, "a stream needs a window and at least one release in it");
        assert!(
            (burst - 1).checked_mul(separation).is_some_and(|span| span <= window),
            "a burst is too long"
        );
        Self { pattern: Pattern::Bursts { burst, separation, window }, each: 1, jitter: 0, fewer: 0 }
    }

    /// Releases of which the shortest intervals with 2, 3, … of them are known. More are as far apart as these allow.
    ///
    /// # Panics
    /// If there is none, if they decrease, or if the last is 0.
    #[must_use]
    pub fn distances(distances: Vec<Nanos>) -> Self {
        assert!(distances.is_sorted(), "more releases cannot be closer to each other");
        assert!(distances.last().is_some_and(|&last| last > 0), "a stream needs a distance");
        Self { pattern: Pattern::Distances(distances.into()), each: 1, jitter: 0, fewer: 0 }
    }

    /// So many releases in all, at any time; perhaps none.
    pub(crate) fn in_all(releases: u64) -> Self {
        Self { pattern: Pattern::InAll(releases), each: 1, jitter: 0, fewer: 0 }
    }

    /// How many releases there are, if they are limited.
    pub(crate) fn all(&self) -> Option<u64> {
        match self.pattern {
            Pattern::InAll(releases) => Some(releases),
            _ => None,
        }
    }

    /// With each release up to this much later than it should be.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Nanos) -> Self {
        self.jitter = self.jitter.saturating_add(jitter);
        self
    }

    /// With each release when it should be.
    pub(crate) fn without_jitter(&self) -> Self {
        Self { jitter: 0, ..self.clone() }
    }

    /// With one release fewer in any interval.
    pub(crate) fn one_fewer(mut self) -> Self {
        self.fewer = self.fewer.saturating_add(1);
        self
    }

    /// With so many jobs for each.
    ///
    /// # Panics
    /// If this is none.
    #[must_use]
    pub fn times(mut self, each: u64) -> Self {
        assert!(each > 0, "a stream without releases is no stream");
        self.each = self.each.saturating_mul(each);
        self
    }

    /// With `taken` of every `of` jobs that are released at once.
    pub(crate) fn share(mut self, taken: u64, of: u64) -> Self {
        match taken {
            0 => Self::in_all(0),
            _ => {
                // Rounded up: a product that was too large to be expressed is no multiple.
                self.each = (self.each / of.max(1) + u64::from(!self.each.is_multiple_of(of.max(1))))
                    .saturating_mul(taken)
                    .min(self.each);
                self
            }
        }
    }

    /// How late a release may be.
    #[must_use]
    pub fn jitter(&self) -> Nanos {
        self.jitter
    }

    /// The most releases in an interval of this length that does not contain its end; `None` if too many to count.
    #[inline]
    #[must_use]
    pub fn before(&self, length: Nanos) -> Option<u64> {
        if length == 0 {
            return Some(0);
        }
        let last = length.checked_add(self.jitter)? - 1;
        let arrivals = match &self.pattern {
            // Dividing takes longer than all the rest, and within the first window there is nothing to divide.
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

    /// The most releases in an interval of this length with its end.
    #[inline]
    #[must_use]
    pub fn until(&self, length: Nanos) -> Option<u64> {
        self.before(length.checked_add(1)?)
    }

    /// `a`, so that in no interval of length `t` are more than about `a + rate · t` releases.
    pub(crate) fn at_once(&self, rate: f64) -> f64 {
        let arrivals = match &self.pattern {
            &Pattern::Bursts { burst, .. } => burst,
            Pattern::Distances(distances) => distances.len() as u64,
            &Pattern::InAll(releases) => releases,
        };
        (arrivals as f64).mul_add(self.each as f64, rate * self.jitter as f64)
    }

    /// The length of the shortest interval with its end in which so many releases fit; `None` if that cannot be expressed.
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

    /// After `length`, the next length at which [`until`](Self::until) grows; `None` if that cannot be expressed.
    #[must_use]
    pub fn next_step(&self, length: Nanos) -> Option<Nanos> {
        self.distance(self.until(length)?.checked_add(1)?)
    }

    /// Releases per nanosecond in the long run.
    #[must_use]
    pub fn rate(&self) -> Fraction {
        let (arrivals, window) = match &self.pattern {
            &Pattern::Bursts { burst, window, .. } => (burst, window),
            Pattern::Distances(distances) => (distances.len() as u64, distances.last().copied().unwrap_or(1)),
            Pattern::InAll(_) => (0, 1),
        };
        Fraction::new(u128::from(arrivals) * u128::from(self.each), u128::from(window))
    }

    /// About the same as [`rate`](Self::rate), to within a few parts in 10¹⁵.
    #[must_use]
    pub fn rate_estimate(&self) -> f64 {
        let (arrivals, window) = match &self.pattern {
            &Pattern::Bursts { burst, window, .. } => (burst, window),
            Pattern::Distances(distances) => (distances.len() as u64, distances.last().copied().unwrap_or(1)),
            Pattern::InAll(_) => (0, 1),
        };
        arrivals as f64 * self.each as f64 / window as f64
    }

    /// The longest time in which a whole pattern of releases repeats: the period of a periodic task.
    #[must_use]
    pub fn window(&self) -> Nanos {
        match &self.pattern {
            &Pattern::Bursts { window, .. } => window,
            Pattern::Distances(distances) => distances.last().copied().unwrap_or(0),
            Pattern::InAll(_) => 0,
        }
    }

    /// Whether any two releases are at least the [window](Self::window) apart but for the jitter.
    #[must_use]
    pub fn is_sporadic(&self) -> bool {
        self.each == 1 && self.fewer == 0 && matches!(&self.pattern, Pattern::Bursts { burst: 1, .. })
    }

    /// The time between releases but for the jitter, and how many jobs come at once, if that is all there is to it.
    pub(crate) fn period(&self) -> Option<(Nanos, u64)> {
        match self.pattern {
            Pattern::Bursts { burst: 1, window, .. } => Some((window, self.each)),
            _ => None,
        }
    }

    /// The same with other times between releases: as a fraction of what they are, rounded down, at least 1 ns.
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

    /// Counts by trying: releases as early as the distances allow, each at its place less the jitter, not before 0.
    fn counted(stream: &Stream, distance: impl Fn(u64) -> u64, until: Nanos) -> u64 {
        let base = (1..).take_while(|&k| distance(k).saturating_sub(stream.jitter) <= until).count() as u64;
        base * stream.each
    }

    #[test]
    fn counts_what_the_distances_allow() {
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
    fn counts_all_at_once_and_no_more() {
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
    fn refuses_to_count_what_overflows() {
        let stream = Stream::sporadic(1).times(u64::MAX);
        assert_eq!((stream.before(1), stream.before(2)), (Some(u64::MAX), None));
        assert_eq!(Stream::sporadic(1).until(u64::MAX), None);
        assert_eq!(Stream::sporadic(5).with_jitter(u64::MAX).before(9), None);
    }
}

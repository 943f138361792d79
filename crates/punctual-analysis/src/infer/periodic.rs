//! Period, offset and jitter that explain a sequence of releases.
//!
//! For a period T, the offset is the least `release(i) − i·T`, and the jitter is the difference
//! between the largest and the least. As a function of T the jitter is convex and depends only on
//! the corners of the convex hull of the releases, so the least jitter is found exactly, from all
//! releases. (LiME searches batch by batch and may miss it.) Among the periods that explain the
//! releases nearly as well, the roundest is selected, as in LiME: developers write 5 ms, not 4 999
//! 873 ns.
//!
//! Releases that are known within windows have two fits: the *certain* fit contains every window
//! and so explains every possible sequence; the *possible* fit meets every window and so explains
//! at least one.

use super::Window;
use crate::time::Nanos;

/// Largest ratio of a model's jitter to the best one at which the model counts as equally good:
/// LiME's selection threshold.
const AS_GOOD: (i128, i128) = (5, 4);

/// Releases at `offset + i·period`, or up to `jitter` later. Times are in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Periodic {
    /// T.
    pub period: Nanos,
    /// Earliest instant of the first release; it may be negative.
    pub offset: i64,
    /// Largest lateness of a release relative to the grid.
    pub jitter: Nanos,
}

/// A sequence of releases without gaps, fitted online. Memory grows only with the corners of the
/// hulls.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    releases: u64,
    /// Index of the last release, in periods.
    place: u64,
    /// Least distance of two releases.
    least: Option<Nanos>,
    last: Window,
    first: [Hull; 2],
    latest: [Hull; 2],
}

/// Corners of a convex hull of points whose first coordinate is their index.
#[derive(Debug, Clone, Default)]
struct Hull(Vec<(i128, i128)>);

impl Hull {
    /// Adds a point. `sign` is 1 for the upper hull and −1 for the lower.
    fn push(&mut self, point: (i128, i128), sign: i128) {
        while let [.., a, b] = self.0[..] {
            let turn = (b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0);
            if turn * sign < 0 {
                break;
            }
            self.0.pop();
        }
        self.0.push(point);
    }

    /// Returns the largest `sign · (y − x·slope)`.
    fn extreme(&self, slope: i128, sign: i128) -> i128 {
        self.0.iter().map(|&(x, y)| sign * (y - x * slope)).max().unwrap_or(0)
    }
}

const UPPER: i128 = 1;
const LOWER: i128 = -1;

impl Grid {
    /// Adds the next release.
    pub fn push(&mut self, window: Window) {
        self.add(window, 1);
    }

    /// Adds the next release, which may be several periods after the last one: a multiple of the
    /// least distance so far, to within a sixteenth of that.
    pub fn push_after_skips(&mut self, window: Window) {
        let gap = window.0.saturating_sub(self.last.0);
        let periods = self.least.filter(|&least| least > 0).map_or(1, |least| {
            let periods = (gap + least / 2) / least;
            let is_multiple = periods.saturating_mul(least).abs_diff(gap) <= least / 16;
            if is_multiple { periods.max(1) } else { 1 }
        });
        if self.releases > 0 {
            self.least = Some(self.least.map_or(gap, |least| least.min(gap)));
        }
        self.add(window, periods);
    }

    fn add(&mut self, (first, last): Window, periods: u64) {
        let first = first.max(self.last.0);
        let last = last.max(self.last.1).max(first);
        self.last = (first, last);
        self.place += if self.releases > 0 { periods } else { 0 };
        let at = i128::from(self.place);
        for (hulls, instant) in [(&mut self.first, first), (&mut self.latest, last)] {
            let point = (at, i128::from(instant));
            hulls[0].push(point, UPPER);
            hulls[1].push(point, LOWER);
        }
        self.releases += 1;
    }

    /// Returns the number of releases.
    #[must_use]
    pub fn releases(&self) -> u64 {
        self.releases
    }

    /// Returns the model that contains every window. `None` for fewer than three releases, which
    /// any period explains, or if all are at one instant.
    #[must_use]
    pub fn certain(&self) -> Option<Periodic> {
        self.fit(&self.latest[0], &self.first[1])
    }

    /// Returns the model that meets every window with the least possible jitter.
    #[must_use]
    pub fn possible(&self) -> Option<Periodic> {
        self.fit(&self.first[0], &self.latest[1])
    }

    /// Returns the jitter of the certain fit for another period.
    #[must_use]
    pub fn jitter_with(&self, period: Nanos) -> Nanos {
        Nanos::try_from(jitter(&self.latest[0], &self.first[1], i128::from(period))).unwrap_or(0)
    }

    fn fit(&self, above: &Hull, below: &Hull) -> Option<Periodic> {
        if self.releases < 3 || above.0.first()?.1 == above.0.last()?.1 {
            return None;
        }
        let jitter = |period: i128| jitter(above, below, period);
        let (mut low, mut high) = (1_i128, i128::from(self.last.1).max(1));
        while low < high {
            let middle = (low + high) / 2;
            if jitter(middle + 1) < jitter(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let (best, least) = (low, jitter(low));
        let is_as_good = |period: i128| period > 0 && jitter(period) * AS_GOOD.1 <= least.max(0) * AS_GOOD.0;
        // The jitter is convex, so the best multiple of a power of ten is a neighbor of the best
        // period.
        let powers = std::iter::successors(Some(10_i128), |power| Some(power * 10));
        let round = powers.take_while(|&power| power <= best).filter_map(|power| {
            let down = best / power * power;
            [down, down + power].into_iter().filter(|&it| is_as_good(it)).min_by_key(|&it| jitter(it))
        });
        let period = round.last().unwrap_or(best);
        let offset = -below.extreme(period, LOWER);
        Some(Periodic {
            period: Nanos::try_from(period).ok()?,
            offset: i64::try_from(offset).ok()?,
            jitter: Nanos::try_from(jitter(period).max(0)).ok()?,
        })
    }
}

/// Returns the distance between the highest point of `above` and the lowest of `below`, along the
/// slope.
fn jitter(above: &Hull, below: &Hull, period: i128) -> i128 {
    above.extreme(period, UPPER) + below.extreme(period, LOWER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(windows: impl IntoIterator<Item = Window>) -> Grid {
        let mut grid = Grid::default();
        windows.into_iter().for_each(|window| grid.push(window));
        grid
    }

    /// Example of the package `rt-model-inference` 1.0.1.
    #[test]
    fn infers_model_of_published_example() {
        let releases = [
            135, 249, 354, 473, 526, 657, 729, 823, 935, 1041, 1144, 1258, 1368, 1434, 1534, 1653, 1753,
            1834, 1944, 2057,
        ];
        let found = grid(releases.map(|at| (at, at))).certain();
        assert_eq!(found, Some(Periodic { period: 100, offset: 123, jitter: 50 }));
    }

    /// Compares with every possible period.
    #[test]
    fn infers_least_jitter() {
        let mut seed = 3_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let period = 5 + random(40);
            let windows: Vec<Window> = (0..3 + random(20))
                .scan(0, |last, at| {
                    let first = (17 + at * period + random(period)).max(*last);
                    *last = first;
                    Some((first, first + random(4)))
                })
                .collect();
            let tried = |period: i64, certain: bool| {
                let at = |i: usize, instant: u64| instant as i64 - i as i64 * period;
                let mut last = 0;
                let windows: Vec<Window> = windows
                    .iter()
                    .map(|w| {
                        last = last.max(w.1);
                        (w.0, last)
                    })
                    .collect();
                let low =
                    windows.iter().enumerate().map(|(i, w)| at(i, if certain { w.0 } else { w.1 })).min();
                let high =
                    windows.iter().enumerate().map(|(i, w)| at(i, if certain { w.1 } else { w.0 })).max();
                (high.unwrap() - low.unwrap()).max(0) as u64
            };
            let grid = grid(windows.iter().copied());
            for (found, certain) in [(grid.certain(), true), (grid.possible(), false)] {
                let found = found.unwrap();
                let best = (1..200).map(|period| tried(period, certain)).min().unwrap();
                assert_eq!(found.jitter, tried(found.period as i64, certain), "{windows:?}");
                assert!(
                    found.jitter >= best && found.jitter * 4 <= best * 5,
                    "{windows:?}: {found:?}, {best}"
                );
            }
        }
    }

    #[test]
    fn releases_lie_on_grid_within_jitter() {
        let releases: Vec<Nanos> = (0..1000).map(|i| 1_000_000 + i * 250_000 + (i * i) % 977).collect();
        let Periodic { period, offset, jitter } =
            grid(releases.iter().map(|&at| (at, at))).certain().unwrap();
        assert_eq!(period, 250_000);
        for (i, &at) in releases.iter().enumerate() {
            let late = at as i64 - offset - (i as u64 * period) as i64;
            assert!((0..=jitter as i64).contains(&late));
        }
    }

    #[test]
    fn infers_nothing_from_two_releases() {
        assert_eq!(grid([(1, 1), (5, 5)]).certain(), None);
        assert_eq!(grid([(7, 7); 4]).certain(), None);
    }

    #[test]
    fn windows_lie_between_certain_and_possible_model() {
        let windows = (0..50).map(|i| (i * 1000 + 10, i * 1000 + 10 + 40 * (i % 3)));
        let grid = grid(windows);
        assert_eq!(grid.certain(), Some(Periodic { period: 1000, offset: 10, jitter: 80 }));
        assert_eq!(grid.possible().map(|model| (model.period, model.jitter)), Some((1000, 0)));
    }
}

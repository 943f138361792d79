//! Statistics of measured times: exact extremes, mean and deviation, percentiles within 0.1 %, and
//! a histogram.
//!
//! Times are recorded in picoseconds, because times measured in a loop differ by fractions of a
//! nanosecond, and reported in nanoseconds. All values are included.
//!
//! ```
//! use punctual_bench::stats::Statistics;
//!
//! let mut statistics = Statistics::new();
//! for ns in [10, 20, 30, 40] {
//!     statistics.record_ps(ns * 1000);
//! }
//! let distribution = statistics.distribution().unwrap();
//! assert_eq!((distribution.max_ns, distribution.mean_ns, distribution.samples), (40.0, 25.0, 4));
//! ```

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The number of histogram buckets per decade, of equal width on a logarithmic scale.
const BUCKETS_PER_DECADE: f64 = 10.0;

/// The significant decimal digits of values for percentiles, which makes them accurate to 0.1 %.
const DIGITS: u8 = 3;

/// Longer times, of more than two hours, count as this time in percentiles and buckets, but not in
/// the maximum.
const MAX_PS: u64 = 10_u64.pow(16);

/// Collects times.
#[derive(Debug, Clone)]
pub struct Statistics {
    histogram: Histogram<u64>,
    max_ps: u64,
    min_ps: u64,
    mean_ps: f64,
    /// The sum of squared differences from the mean, by Welford's method, which avoids subtracting
    /// large numbers.
    squares: f64,
}

impl Default for Statistics {
    fn default() -> Self {
        Self::new()
    }
}

impl Statistics {
    /// Creates empty statistics.
    pub fn new() -> Self {
        // Fixed, since a growing histogram can fail to grow.
        let histogram = Histogram::new_with_max(MAX_PS, DIGITS).expect("the bounds are within its own");
        Self { histogram, max_ps: 0, min_ps: u64::MAX, mean_ps: 0.0, squares: 0.0 }
    }

    /// Records one time in picoseconds. Not real-time safe: may allocate.
    pub fn record_ps(&mut self, ps: u64) {
        self.record_many_ps(ps, 1);
    }

    /// Records the same time, in picoseconds, `count` times.
    pub fn record_many_ps(&mut self, ps: u64, count: u64) {
        if count == 0 {
            return;
        }
        let before = self.histogram.len() as f64;
        self.histogram.saturating_record_n(ps, count);
        self.max_ps = self.max_ps.max(ps);
        self.min_ps = self.min_ps.min(ps);
        let (count, difference) = (count as f64, ps as f64 - self.mean_ps);
        let all = before + count;
        self.mean_ps += difference * count / all;
        self.squares += difference * difference * before * count / all;
    }

    /// Returns the number of recorded times.
    pub fn samples(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the figures; `None` without recorded times.
    pub fn distribution(&self) -> Option<Distribution> {
        let samples = self.samples();
        if samples == 0 {
            return None;
        }
        // The histogram returns the upper bound of a bucket, which may be above the maximum.
        let percentile = |percent| nanos(self.histogram.value_at_percentile(percent).min(self.max_ps));
        // With fewer samples it would be the maximum.
        let tail = |percent, least| (samples >= least).then(|| percentile(percent));
        Some(Distribution {
            samples,
            max_ns: nanos(self.max_ps),
            p9999_ns: tail(99.99, 10_000),
            p999_ns: tail(99.9, 1000),
            p99_ns: percentile(99.0),
            p75_ns: percentile(75.0),
            p50_ns: percentile(50.0),
            p25_ns: percentile(25.0),
            min_ns: nanos(self.min_ps),
            mean_ns: rounded(self.mean_ps / 1e3),
            sigma_ns: rounded((self.squares / samples as f64).sqrt() / 1e3),
            buckets: self.buckets(),
        })
    }

    fn buckets(&self) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        for value in self.histogram.iter_recorded() {
            let ps = value.value_iterated_to().clamp(self.min_ps.max(1), self.max_ps.max(1));
            // The small offset puts a value equal to a bound into the bucket that it ends.
            let number = ((ps as f64 / 1e3).log10() * BUCKETS_PER_DECADE - 1e-6).ceil();
            let upper_ns = rounded_to(10_f64.powf(number / BUCKETS_PER_DECADE), 4);
            match buckets.last_mut() {
                Some(last) if last.upper_ns == upper_ns => last.count += value.count_since_last_iteration(),
                _ => buckets.push(Bucket { upper_ns, count: value.count_since_last_iteration() }),
            }
        }
        buckets
    }
}

/// The figures of a measured quantity, in nanoseconds. They have fractions if an operation was
/// measured in a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// The number of samples; none is omitted.
    pub samples: u64,
    /// The largest, exactly.
    pub max_ns: f64,
    /// The 99.99th percentile, within 0.1 %, for at least 10 000 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p9999_ns: Option<f64>,
    /// The 99.9th percentile, within 0.1 %, for at least 1000 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<f64>,
    /// The 99th percentile, within 0.1 %.
    pub p99_ns: f64,
    /// The 75th percentile, within 0.1 %.
    pub p75_ns: f64,
    /// The median, within 0.1 %.
    pub p50_ns: f64,
    /// The 25th percentile, within 0.1 %.
    pub p25_ns: f64,
    /// The smallest, exactly.
    pub min_ns: f64,
    /// The mean, from exact values.
    pub mean_ns: f64,
    /// The standard deviation σ of all samples, from exact values.
    pub sigma_ns: f64,
    /// The histogram: the nonempty buckets, ten per decade.
    pub buckets: Vec<Bucket>,
}

/// One bucket of a histogram. Its lower bound is 10^-0.1 times the upper.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// The upper bound, inclusive.
    pub upper_ns: f64,
    /// The number of samples.
    pub count: u64,
}

impl Bucket {
    /// Returns the lower bound, exclusive.
    pub fn lower_ns(&self) -> f64 {
        self.upper_ns * 10_f64.powf(-1.0 / BUCKETS_PER_DECADE)
    }
}

fn nanos(ps: u64) -> f64 {
    ps as f64 / 1e3
}

/// Rounds to picoseconds: further digits are noise that makes the JSON longer.
fn rounded(ns: f64) -> f64 {
    (ns * 1e3).round() / 1e3
}

/// Rounds to significant digits.
fn rounded_to(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits - 1 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values_ps: impl IntoIterator<Item = u64>) -> Distribution {
        let mut statistics = Statistics::new();
        values_ps.into_iter().for_each(|ps| statistics.record_ps(ps));
        statistics.distribution().expect("there are samples")
    }

    #[test]
    fn matches_percentiles_of_known_sample() {
        // 2 4 4 4 5 5 7 9: mean 5, standard deviation 2.
        let d = of([2, 4, 4, 4, 5, 5, 7, 9].map(|ns| ns * 1000));
        assert_eq!((d.samples, d.max_ns, d.min_ns), (8, 9.0, 2.0));
        assert_eq!((d.mean_ns, d.sigma_ns), (5.0, 2.0));
        assert_eq!((d.p999_ns, d.p9999_ns), (None, None));
        assert!((d.p50_ns - 4.0).abs() <= 0.004, "{}", d.p50_ns);
    }

    #[test]
    fn keeps_percentiles_within_a_thousandth() {
        // 1 µs, 2 µs … 10 ms: the p-th percentile is p hundredths of the largest.
        let d = of((1..=10_000).map(|us| us * 1_000_000));
        for (measured, exact) in [(d.p25_ns, 2.5e6), (d.p50_ns, 5e6), (d.p75_ns, 7.5e6), (d.p99_ns, 9.9e6)] {
            assert!((measured / exact - 1.0).abs() <= 1e-3, "{measured} for {exact}");
        }
        for (measured, exact) in [(d.p999_ns, 9.99e6), (d.p9999_ns, 9.999e6)] {
            assert!((measured.unwrap() / exact - 1.0).abs() <= 1e-3, "{measured:?} for {exact}");
        }
        assert_eq!((d.max_ns, d.min_ns), (1e7, 1e3));
        assert!((d.mean_ns - 5_000_500.0).abs() < 1e-2);
        // The deviation of 1 … n is the square root of (n² - 1) / 12.
        assert!((d.sigma_ns / (99_999_999_f64 / 12.0).sqrt() / 1e3 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn keeps_single_outlier_as_maximum() {
        let mut statistics = Statistics::new();
        statistics.record_many_ps(10_000, 1_000_000);
        statistics.record_ps(50_000_000_000);
        let d = statistics.distribution().unwrap();
        assert_eq!((d.max_ns, d.samples), (5e7, 1_000_001));
        assert_eq!(d.buckets.iter().map(|b| b.count).collect::<Vec<_>>(), [1_000_000, 1]);
        assert!(d.p99_ns <= d.max_ns && (d.p99_ns - 10.0).abs() <= 0.01);
    }

    #[test]
    fn records_many_as_one_by_one() {
        let mut together = Statistics::new();
        let mut apart = Statistics::new();
        for (ps, count) in [(1500, 3), (77_000, 2), (12, 5)] {
            together.record_many_ps(ps, count);
            (0..count).for_each(|_| apart.record_ps(ps));
        }
        assert_eq!(together.distribution(), apart.distribution());
    }

    #[test]
    fn buckets_hold_every_sample_and_enclose_it() {
        let values = [0, 1, 999, 1_000, 1_001, 123_456, 10_000_000, u64::MAX / 2];
        let d = of(values);
        assert_eq!(d.buckets.iter().map(|b| b.count).sum::<u64>(), values.len() as u64);
        assert!(d.buckets.is_sorted_by(|a, b| a.upper_ns < b.upper_ns));
        let ten = of([10_000_000]).buckets[0];
        assert!(ten.lower_ns() < 10_000.0 && 10_000.0 <= ten.upper_ns * 1.002, "{ten:?}");
    }

    #[test]
    fn has_no_figures_without_samples() {
        assert_eq!(Statistics::new().distribution(), None);
    }
}

//! One quantity over many jobs.

use hdrhistogram::Histogram;

use crate::jobs::Bounds;

/// Upper limit of the histogram: 100 s, in buckets at most 1 % wide. The maximum is always stored
/// exactly.
const HIGHEST: u64 = 100_000_000_000;
const DIGITS: u8 = 2;

/// A quantity over all jobs of a task, in ns. A bounded value counts with its upper bound, or with
/// its lower one if it has no other; unknown values are counted separately.
#[derive(Debug, Clone)]
pub struct Quantity {
    max: u64,
    sum: u128,
    bounded: u64,
    at_least: u64,
    unknown: u64,
    histogram: Histogram<u32>,
}

/// Summary of a [`Quantity`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summary {
    /// Exact maximum.
    pub max: u64,
    /// 99.9 % quantile; at most 1 % above the true value.
    pub p999: u64,
    /// Median; at most 1 % above the true value.
    pub p50: u64,
    /// Exact mean.
    pub mean: f64,
    /// Number of jobs.
    pub count: u64,
    /// Number of those known only within bounds, which count with the upper one.
    pub bounded: u64,
    /// Number of jobs with only a lower bound, which counts. The figures for all jobs are then
    /// lower bounds, too.
    pub at_least: u64,
    /// Number of further jobs for which it was unknown.
    pub unknown: u64,
}

impl Default for Quantity {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, HIGHEST, DIGITS).expect("the bounds are constants");
        Self { max: 0, sum: 0, bounded: 0, at_least: 0, unknown: 0, histogram }
    }
}

impl Quantity {
    /// Adds the value of a job.
    pub fn record(&mut self, value: Bounds) {
        let Some(ns) = value.hi().or(value.lo()) else {
            self.unknown += 1;
            return;
        };
        self.at_least += u64::from(matches!(value, Bounds::AtLeast(_)));
        self.bounded += u64::from(matches!(value, Bounds::Between { .. }));
        self.max = self.max.max(ns);
        self.sum += u128::from(ns);
        // Never drops a value: those above the range count in the last bucket.
        self.histogram.saturating_record(ns);
    }

    /// Returns the summary.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let count = self.histogram.len();
        let quantile = |q| if count == 0 { 0 } else { self.histogram.value_at_quantile(q).min(self.max) };
        Summary {
            max: self.max,
            p999: quantile(0.999),
            p50: quantile(0.5),
            mean: if count == 0 { 0.0 } else { self.sum as f64 / count as f64 },
            count,
            bounded: self.bounded,
            at_least: self.at_least,
            unknown: self.unknown,
        }
    }

    /// Returns the non-empty buckets: the largest value of each, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.histogram
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), u64::from(bucket.count_at_value())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_upper_bounds_and_drops_nothing() {
        let mut quantity = Quantity::default();
        (1..=100_000).for_each(|ns| quantity.record(Bounds::Exact(ns)));
        quantity.record(Bounds::Between { lo: 5, hi: 200_000 });
        quantity.record(Bounds::Unknown);
        quantity.record(Bounds::AtLeast(300_000));
        quantity.record(Bounds::Exact(u64::MAX));
        let summary = quantity.summary();
        assert_eq!((summary.max, summary.count), (u64::MAX, 100_003));
        assert_eq!((summary.bounded, summary.at_least, summary.unknown), (1, 1, 1));
        assert!(summary.p50.abs_diff(50_000) <= 500, "{}", summary.p50);
        assert!(summary.p999.abs_diff(99_900) <= 999, "{}", summary.p999);
        assert_eq!(quantity.buckets().map(|bucket| bucket.1).sum::<u64>(), 100_003);
    }

    #[test]
    fn is_zero_without_jobs() {
        assert_eq!(Quantity::default().summary(), Summary::default());
    }
}

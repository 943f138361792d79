//! The figures of a task: counts, and a histogram for each quantity.

use super::histogram::Histogram;
use super::monitor::{Job, since};
use crate::app::report::{Summary, TaskReport};

/// One quantity over all jobs of a task, in ns.
#[derive(Debug)]
struct Quantity {
    max: u64,
    sum: u128,
    histogram: Histogram,
}

impl Quantity {
    fn new() -> Self {
        Self { max: 0, sum: 0, histogram: Histogram::new() }
    }

    #[inline]
    fn record(&mut self, value: u64) {
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        self.histogram.record(value);
    }

    fn summary(&self) -> Summary {
        let buckets: Vec<_> = self.histogram.recorded().collect();
        let count: u64 = buckets.iter().map(|bucket| bucket.1).sum();
        let mean = if count == 0 { 0.0 } else { self.sum as f64 / count as f64 };
        // The end of the bucket in which the quantile is.
        let quantile = |quantile: f64| {
            let rank = ((quantile * count as f64).ceil() as u64).max(1);
            let mut seen = 0;
            let bucket = buckets.iter().find(|(_, count)| {
                seen += count;
                seen >= rank
            });
            bucket.map_or(0, |&(end, _)| end.min(self.max))
        };
        Summary { max: self.max, p999: quantile(0.999), p50: quantile(0.5), mean, buckets }
    }
}

/// What was measured of the jobs of a task in a run.
#[derive(Debug)]
pub(super) struct Measured {
    jobs: u64,
    misses: u64,
    suspended: u64,
    jitter: Quantity,
    response: Quantity,
    execution: Quantity,
}

impl Measured {
    /// Room for a run's measurements.
    pub(super) fn new() -> Option<Box<Self>> {
        Some(Box::new(Self {
            jobs: 0,
            misses: 0,
            suspended: 0,
            jitter: Quantity::new(),
            response: Quantity::new(),
            execution: Quantity::new(),
        }))
    }

    /// Adds a job.
    #[inline]
    pub(super) fn record(&mut self, job: Job) {
        let response = since(job.end, job.release);
        let gross = since(job.end, job.start);
        self.jobs += 1;
        self.jitter.record(since(job.start, job.release));
        self.response.record(response);
        self.execution.record(gross.saturating_sub(job.preempted));
        self.misses += u64::from(job.deadline.is_some_and(|d| response > d.as_ticks()));
        self.suspended += u64::from(job.suspended);
    }

    /// Puts the figures into `report`.
    pub(super) fn fill(&self, report: &mut TaskReport) {
        report.measured = true;
        report.jobs = self.jobs;
        report.misses = self.misses;
        report.self_suspensions = self.suspended;
        report.jitter = self.jitter.summary();
        report.response = self.response.summary();
        report.execution = self.execution.summary();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_stay_within_one_percent_and_no_value_is_dropped() {
        let mut quantity = Quantity::new();
        (1..=100_000).for_each(|value| quantity.record(value));
        quantity.record(u64::MAX);
        let summary = quantity.summary();
        assert_eq!(summary.max, u64::MAX);
        assert_eq!(summary.buckets.iter().map(|b| b.1).sum::<u64>(), 100_001);
        assert!(summary.p50.abs_diff(50_000) <= 500, "{}", summary.p50);
    }
}

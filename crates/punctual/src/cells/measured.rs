//! Recording of the figures of a task: counts, and a histogram for each quantity.

// Atomics from `core`, not loom: other processes read them.
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use punctual_core::metrics::{Histogram, Quantity, TaskFigures, bucket_end, bucket_of, quantile};

use crate::cells::Job;
use crate::report::{Summary, TaskReport};

/// Adds to a count that no other thread writes concurrently.
#[inline]
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed).wrapping_add(more), Relaxed);
}

/// Adds a value. Never allocates and never loses a value.
#[inline]
fn record(quantity: &Quantity, histogram: &Histogram, value: u64) {
    record_in(quantity, histogram, value, bucket_of(value));
}

/// [`record`] of a value whose bucket is known.
#[inline(always)]
fn record_in(quantity: &Quantity, histogram: &Histogram, value: u64, bucket: usize) {
    quantity.record(value);
    let count = &histogram.0[bucket];
    count.store(count.load(Relaxed).saturating_add(1), Relaxed);
}

/// [`record`] of 0, which changes neither the sum nor the maximum.
#[inline(always)]
fn record_zero(quantity: &Quantity, histogram: &Histogram) {
    quantity.last.store(0, Relaxed);
    let count = &histogram.0[0];
    count.store(count.load(Relaxed).saturating_add(1), Relaxed);
}

/// Returns the upper end of each nonempty bucket, which is the last value in it, and its count.
fn recorded(histogram: &Histogram) -> impl Iterator<Item = (u64, u64)> + Clone {
    let buckets = histogram.0.iter().map(|count| count.load(Relaxed)).enumerate();
    buckets.filter(|(_, count)| *count != 0).map(|(bucket, count)| (bucket_end(bucket), count.into()))
}

/// Returns the summary of a quantity, given the end and count of each nonempty bucket of its
/// histogram, in order.
pub(crate) fn summary(quantity: &Quantity, buckets: impl Iterator<Item = (u64, u64)> + Clone) -> Summary {
    let max = quantity.max.load(Relaxed);
    let count: u64 = buckets.clone().map(|bucket| bucket.1).sum();
    let mean = if count == 0 { 0.0 } else { quantity.sum.load(Relaxed) as f64 / count as f64 };
    let quantile = |part| quantile(buckets.clone(), part).min(max);
    Summary {
        max,
        p999: Some(quantile(0.999)),
        p50: Some(quantile(0.5)),
        mean,
        #[cfg(feature = "alloc")]
        buckets: buckets.collect(),
    }
}

/// Adds a job. Only for the thread that may run jobs of the task.
#[inline(always)]
pub(crate) fn add_job(figures: &TaskFigures, job: Job) {
    add(&figures.jobs, 1);
    // A job that runs as a call starts when it is released, and unless it is preempted, its
    // response time is its execution time.
    let jitter = job.jitter();
    if jitter == 0 {
        record_zero(&figures.jitter, &figures.jitters);
    } else {
        record(&figures.jitter, &figures.jitters, jitter);
    }
    let (response, execution) = (job.response(), job.execution());
    let bucket = bucket_of(response);
    record_in(&figures.response, &figures.responses, response, bucket);
    let bucket = if execution == response { bucket } else { bucket_of(execution) };
    record_in(&figures.execution, &figures.executions, execution, bucket);
    if let Some(deadline) = job.deadline {
        add(&figures.misses, u64::from(response > deadline.as_ticks()));
    }
    if job.suspensions.count > 0 {
        suspended(figures, job.suspensions.time);
    }
}

/// Adds a job that suspended itself and was off its CPU for `time` ns.
#[cold]
#[inline(never)]
fn suspended(figures: &TaskFigures, time: u64) {
    add(&figures.suspended, 1);
    figures.suspension_max.store(figures.suspension_max.load(Relaxed).max(time), Relaxed);
}

/// Copies the figures into `report`.
pub(crate) fn fill(figures: &TaskFigures, report: &mut TaskReport) {
    report.measured = true;
    report.jobs = figures.jobs.load(Relaxed);
    report.misses = figures.misses.load(Relaxed);
    report.suspended = figures.suspended.load(Relaxed);
    report.suspension_max = figures.suspension_max.load(Relaxed);
    report.jitter = summary(&figures.jitter, recorded(&figures.jitters));
    report.response = summary(&figures.response, recorded(&figures.responses));
    report.execution = summary(&figures.execution, recorded(&figures.executions));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use punctual_core::{Duration, Instant};

    use super::*;
    use crate::port::Suspensions;

    fn job(release: u64, start: u64, end: u64) -> Job {
        let at = Instant::from_ticks;
        Job {
            release: at(release),
            start: at(start),
            end: at(end),
            preempted: 30,
            suspensions: Suspensions::NONE,
            deadline: Some(Duration::from_ticks(150)),
        }
    }

    #[test]
    fn measures_known_jobs() {
        // SAFETY: zero is a valid value of an atomic.
        let figures: Arc<TaskFigures> = unsafe { Arc::new_zeroed().assume_init() };
        let mut report = TaskReport::default();
        add_job(&figures, job(0, 10, 110));
        add_job(&figures, job(200, 200, 360));
        fill(&figures, &mut report);
        assert_eq!((report.jobs, report.misses), (2, 1));
        assert_eq!((report.jitter.max, report.response.max, report.execution.max), (10, 160, 130));
        assert_eq!(report.response.mean, 135.0);
    }

    #[test]
    fn sleep_of_job_is_not_execution() {
        // SAFETY: zero is a valid value of an atomic.
        let figures: Arc<TaskFigures> = unsafe { Arc::new_zeroed().assume_init() };
        let suspended = |time| Job { suspensions: Suspensions { count: 2, time }, ..job(0, 10, 110) };
        let mut report = TaskReport::default();
        for job in [suspended(40), suspended(30), job(200, 210, 220)] {
            add_job(&figures, job);
        }
        fill(&figures, &mut report);
        assert_eq!((report.suspended, report.suspension_max), (2, 40));
        assert_eq!((report.response.max, report.execution.max), (110, 40));
    }

    /// Returns the release jitter of a task with these values.
    fn jitter(values: impl IntoIterator<Item = u64>) -> Summary {
        // SAFETY: zero is a valid value of an atomic.
        let figures: Arc<TaskFigures> = unsafe { Arc::new_zeroed().assume_init() };
        values.into_iter().for_each(|value| record(&figures.jitter, &figures.jitters, value));
        summary(&figures.jitter, recorded(&figures.jitters))
    }

    #[test]
    fn quantiles_stay_within_one_percent_and_no_value_is_dropped() {
        let summary = jitter((1..=100_000).chain([u64::MAX]));
        assert_eq!(summary.max, u64::MAX);
        assert_eq!(summary.buckets.iter().map(|b| b.1).sum::<u64>(), 100_001);
        assert!(summary.p50.is_some_and(|p50| p50.abs_diff(50_000) <= 500), "{:?}", summary.p50);
    }

    #[test]
    fn has_buckets_of_two_digit_hdr_histogram() {
        let mut hdr = hdrhistogram::Histogram::<u32>::new_with_bounds(1, 100_000_000_000, 2).unwrap();
        let around = |power: u32| {
            let value = 1_u64 << power;
            [value - 1, value, value + 1, value + value / 3, value + value / 2]
        };
        let values = || (0..1_000).chain((8..36).flat_map(around));
        values().for_each(|value| hdr.saturating_record(value));
        let expected: Vec<_> =
            hdr.iter_recorded().map(|b| (b.value_iterated_to(), u64::from(b.count_at_value()))).collect();
        assert_eq!(jitter(values()).buckets, expected);
    }

    #[test]
    fn out_of_range_values_count_in_last_bucket() {
        let last = (1 << 37) - 1;
        let buckets = jitter([last - (1 << 29), last, last + 1, u64::MAX]).buckets;
        assert_eq!(buckets, [(last - (1 << 29), 1), (last, 3)]);
    }

    #[test]
    fn sum_saturates() {
        assert_eq!(jitter([u64::MAX, u64::MAX]).mean, u64::MAX as f64 / 2.0);
    }
}

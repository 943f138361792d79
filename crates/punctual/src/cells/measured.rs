//! Recording of the figures of a task: counts, and a histogram for each quantity.

// Atomics from `core`, not loom: other processes read them.
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use punctual_core::metrics::TaskFigures;

use crate::cells::Job;

/// Adds to a count that no other thread writes concurrently.
#[inline]
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed).wrapping_add(more), Relaxed);
}

/// Adds a job, which misses its deadline if it takes longer than `max_response`, in ns. Never
/// allocates and never loses a value.
///
/// # Safety
/// No other thread adds a job of the task during the call.
#[inline]
pub(crate) unsafe fn add_job(figures: &TaskFigures, job: Job, max_response: u64) {
    if job.suspensions.count > 0 {
        suspended(figures, job.suspensions.time);
    }
    let (jitter, response, execution) = (job.jitter(), job.response(), job.execution());
    if jitter == 0 && execution == response {
        // SAFETY: by this function's contract.
        return unsafe { add_undisturbed(figures, response, max_response) };
    }
    add(&figures.jobs, 1);
    if response > max_response {
        add(&figures.misses, 1);
    }
    // SAFETY: by this function's contract.
    unsafe { figures.record_disturbed(jitter, response, execution) };
}

/// [`add_job`] of a job whose J is 0, and whose R and C are `response`: a job that runs as a call
/// starts when it is released, and unless it is preempted, its response time is its execution time.
///
/// # Safety
/// As for [`add_job`].
#[inline(always)]
pub(crate) unsafe fn add_undisturbed(figures: &TaskFigures, response: u64, max_response: u64) {
    if response > max_response {
        add(&figures.misses, 1);
    }
    add(&figures.jobs, 1);
    // SAFETY: by this function's contract.
    unsafe { figures.record_undisturbed(response) };
}

/// Adds a job that suspended itself and was off its CPU for `time` ns.
#[cold]
#[inline(never)]
fn suspended(figures: &TaskFigures, time: u64) {
    add(&figures.suspended, 1);
    figures.suspension_max.store(figures.suspension_max.load(Relaxed).max(time), Relaxed);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use punctual_core::Instant;
    use punctual_core::metrics::Term;

    use super::*;
    use crate::port::Suspensions;
    use crate::report::{Summary, TaskReport};

    fn job(release: u64, start: u64, end: u64) -> Job {
        let at = Instant::from_ticks;
        Job {
            release: at(release),
            start: at(start),
            gross: end - start,
            preempted: 30,
            suspensions: Suspensions::NONE,
        }
    }

    /// Returns the report of these jobs with a deadline of 150 ns.
    fn report(jobs: impl IntoIterator<Item = Job>) -> TaskReport {
        // SAFETY: zero is a valid value of an atomic.
        let figures: Arc<TaskFigures> = unsafe { Arc::new_zeroed().assume_init() };
        // SAFETY: a single thread.
        jobs.into_iter().for_each(|job| unsafe { add_job(&figures, job, 150) });
        let mut report = TaskReport::default();
        report.fill(&figures);
        report
    }

    #[test]
    fn measures_known_jobs() {
        let report = report([job(0, 10, 110), job(200, 200, 360)]);
        assert_eq!((report.jobs, report.misses), (2, 1));
        assert_eq!((report.jitter.max, report.response.max, report.execution.max), (10, 160, 130));
        assert_eq!(report.response.mean, 135.0);
    }

    #[test]
    fn sleep_of_job_is_not_execution() {
        let suspended = |time| Job { suspensions: Suspensions { count: 2, time }, ..job(0, 10, 110) };
        let report = report([suspended(40), suspended(30), job(200, 210, 220)]);
        assert_eq!((report.suspended, report.suspension_max), (2, 40));
        assert_eq!((report.response.max, report.execution.max), (110, 40));
    }

    #[test]
    fn counts_undisturbed_jobs_in_every_term() {
        let undisturbed = |gross: u64| Job { preempted: 0, ..job(500, 500, 500 + gross) };
        let report = report([undisturbed(40), undisturbed(160), job(0, 10, 110)]);
        assert_eq!((report.jobs, report.misses), (3, 1));
        let terms = [&report.jitter, &report.response, &report.execution];
        assert_eq!(terms.map(|term| term.max), [10, 160, 160]);
        assert_eq!(terms.map(|term| term.mean), [10.0 / 3.0, 310.0 / 3.0, 270.0 / 3.0]);
        assert_eq!(report.jitter.buckets, [(0, 2), (10, 1)]);
        assert_eq!(report.response.buckets, [(40, 1), (110, 1), (160, 1)]);
        assert_eq!(report.execution.buckets, [(40, 1), (70, 1), (160, 1)]);
    }

    #[test]
    fn counts_suspension_of_unknown_duration() {
        let suspensions = Suspensions { count: 1, time: 0 };
        let report = report([Job { suspensions, preempted: 0, ..job(0, 0, 10) }]);
        assert_eq!((report.jobs, report.suspended, report.execution.max), (1, 1, 10));
    }

    /// Returns the release jitter of a task with these values.
    fn jitter(values: impl IntoIterator<Item = u64>) -> Summary {
        // SAFETY: zero is a valid value of an atomic.
        let figures: Arc<TaskFigures> = unsafe { Arc::new_zeroed().assume_init() };
        // SAFETY: a single thread.
        values.into_iter().for_each(|jitter| unsafe { figures.record_disturbed(jitter, 0, 0) });
        Summary::of_term(&figures, Term::Jitter)
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

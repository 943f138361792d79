//! The measurements of a task in a run, and pointers to the data of its observers.
//!
//! [`Cells`] are part of a task's static. A job leaves its times there; observers find the data of
//! the task that they have placed there before the run.

use punctual_core::Instant;
use punctual_core::metrics::TaskFigures;

pub(crate) use crate::platform::cells::*;
use crate::port::Suspensions;

/// The times of one job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) release: Instant,
    pub(crate) start: Instant,
    /// Start to end, in ns.
    pub(crate) gross: u64,
    /// Execution time of jobs that preempted this one, in ns.
    pub(crate) preempted: u64,
    pub(crate) suspensions: Suspensions,
}

impl Job {
    /// Returns the release jitter J, in ns.
    #[inline]
    pub(crate) fn jitter(&self) -> u64 {
        since(self.start, self.release)
    }

    /// Returns the response time R, in ns.
    #[inline]
    pub(crate) fn response(&self) -> u64 {
        self.jitter().saturating_add(self.gross)
    }

    /// Returns the execution time C, in ns.
    #[inline]
    pub(crate) fn execution(&self) -> u64 {
        let off_cpu = self.preempted.saturating_add(self.suspensions.time);
        self.gross.saturating_sub(off_cpu)
    }

    /// Adds the job, which misses its deadline if it takes longer than `max_response`, in ns.
    ///
    /// # Safety
    /// No other thread adds a job of the task during the call.
    #[inline]
    pub(crate) unsafe fn record_in(&self, figures: &TaskFigures, max_response: u64) {
        let terms = [self.jitter(), self.response(), self.execution()];
        let suspension = (self.suspensions.count > 0).then_some(self.suspensions.time);
        // SAFETY: by this function's contract.
        unsafe { figures.record(terms, suspension, max_response) };
    }
}

/// Returns the time between two instants, in ns.
#[inline]
pub(crate) fn since(later: Instant, earlier: Instant) -> u64 {
    later.as_ticks().saturating_sub(earlier.as_ticks())
}

/// Observers of jobs and spawns in addition to their measurement: marks, profile, guard and
/// supervisor. A platform without them uses the default methods.
pub(crate) trait Observe {
    /// Returns whether jobs of the task are observed.
    #[inline(always)]
    fn is_on(&self) -> bool {
        false
    }

    /// Called before a spawn of the task; returns the time for [`spawned`](Self::spawned).
    #[inline(always)]
    fn before_spawn(&self) -> Option<u64> {
        None
    }

    /// Called after a spawn.
    #[inline(always)]
    fn spawned(&self, _when: Option<u64>) {}

    /// Called after a timed spawn.
    #[inline(always)]
    fn spawned_in_time(&self) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use punctual_core::metrics::Term;

    use super::*;
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
        jobs.into_iter().for_each(|job| unsafe { job.record_in(&figures, 150) });
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
        values.into_iter().for_each(|jitter| unsafe { figures.record([jitter, 1, 0], None, 1) });
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

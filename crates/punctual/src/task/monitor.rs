//! What is measured of every job: release jitter J, response time R, execution time C.
//!
//! Always on, in bounded memory that is allocated before the app starts. Costs at most two clock readings a
//! job: one at its end, and one at its start if it runs as a call or at its spawn if it is queued. A queued job
//! starts when the one before it on its thread ends, which has been read; only a thread that was asleep reads
//! the clock once more when it wakes.
//!
//! * J = start - release. The release of a periodic or timed job is its nominal time, so J includes how
//!   late the kernel's timer was; that of a spawned job is the spawn.
//! * R = end - release.
//! * C = end - start, less the time that jobs of higher levels ran meanwhile. Time the kernel took for
//!   itself or gave to other processes is in C; telling that apart needs a trace.

use std::cell::UnsafeCell;

use hdrhistogram::Histogram;
use punctual_core::{Duration, Instant};

use crate::app::report::{Summary, TaskReport};
use crate::port::linux::trace_marker::Mark;

/// Histogram range: to 100 s, in buckets at most 1 % wide.
const HIGHEST: u64 = 100_000_000_000;
const DIGITS: u8 = 2;

/// One quantity over all jobs of a task, in ns.
#[derive(Debug)]
struct Quantity {
    max: u64,
    sum: u128,
    histogram: Histogram<u32>,
}

impl Quantity {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, HIGHEST, DIGITS).expect("the bounds are constants");
        Self { max: 0, sum: 0, histogram }
    }

    #[inline]
    fn record(&mut self, value: u64) {
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        // Never allocates and never drops: values beyond the range count in the last bucket.
        self.histogram.saturating_record(value);
    }

    fn summary(&self) -> Summary {
        let count = self.histogram.len();
        let mean = if count == 0 { 0.0 } else { self.sum as f64 / count as f64 };
        Summary {
            max: self.max,
            p999: self.histogram.value_at_quantile(0.999).min(self.max),
            p50: self.histogram.value_at_quantile(0.5).min(self.max),
            mean,
            buckets: self
                .histogram
                .iter_recorded()
                .map(|b| (b.value_iterated_to(), u64::from(b.count_at_value())))
                .collect(),
        }
    }
}

#[derive(Debug)]
struct Measured {
    jobs: u64,
    misses: u64,
    suspended: u64,
    jitter: Quantity,
    response: Quantity,
    execution: Quantity,
}

/// What one job took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) release: Instant,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// Execution of jobs that preempted this one, in ns.
    pub(crate) preempted: u64,
    /// Whether the job suspended itself.
    pub(crate) suspended: bool,
    pub(crate) deadline: Option<Duration>,
}

/// The measurements of one task, and whether its jobs are marked in the kernel's trace.
#[derive(Debug)]
pub(crate) struct Monitor {
    measured: UnsafeCell<Option<Box<Measured>>>,
    pub(crate) mark: Mark,
}

// SAFETY: the mark is an atomic. Of the rest, `record` is called by the thread that occupies the task's level, one at a time and handed over
// with the level; `start` and `report` while no job of the task can run.
unsafe impl Sync for Monitor {}

impl Monitor {
    pub(crate) const fn new() -> Self {
        Self { measured: UnsafeCell::new(None), mark: Mark::off() }
    }

    /// Makes room for a run's measurements.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn start(&self) {
        let measured = Measured {
            jobs: 0,
            misses: 0,
            suspended: 0,
            jitter: Quantity::new(),
            response: Quantity::new(),
            execution: Quantity::new(),
        };
        // SAFETY: by this function's contract nothing else refers to the cell's content.
        unsafe { *self.measured.get() = Some(Box::new(measured)) };
    }

    /// Adds a job.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline]
    pub(crate) unsafe fn record(&self, job: Job) {
        // SAFETY: by this function's contract nothing else refers to the cell's content.
        let Some(measured) = (unsafe { &mut *self.measured.get() }) else { return };
        let response = since(job.end, job.release);
        let gross = since(job.end, job.start);
        measured.jobs += 1;
        measured.jitter.record(since(job.start, job.release));
        measured.response.record(response);
        measured.execution.record(gross.saturating_sub(job.preempted));
        measured.misses += u64::from(job.deadline.is_some_and(|d| response > d.as_ticks()));
        measured.suspended += u64::from(job.suspended);
    }

    /// The measurements so far.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn report(&self, name: &str, level: u8, partition: Option<&str>) -> TaskReport {
        // SAFETY: by this function's contract nothing else refers to the cell's content.
        let measured = unsafe { &*self.measured.get() };
        let partition = partition.map(str::to_owned);
        let mut report = TaskReport { name: name.into(), level, partition, ..TaskReport::default() };
        if let Some(measured) = measured {
            report.jobs = measured.jobs;
            report.misses = measured.misses;
            report.self_suspensions = measured.suspended;
            report.jitter = measured.jitter.summary();
            report.response = measured.response.summary();
            report.execution = measured.execution.summary();
        }
        report
    }
}

#[inline]
pub(crate) fn since(later: Instant, earlier: Instant) -> u64 {
    later.as_ticks().saturating_sub(earlier.as_ticks())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(release: u64, start: u64, end: u64) -> Job {
        let at = Instant::from_ticks;
        Job {
            release: at(release),
            start: at(start),
            end: at(end),
            preempted: 30,
            suspended: false,
            deadline: Some(Duration::from_ticks(150)),
        }
    }

    #[test]
    fn the_quantities_of_known_jobs() {
        let monitor = Monitor::new();
        // SAFETY: a single thread.
        let report = unsafe {
            monitor.start();
            monitor.record(job(0, 10, 110));
            monitor.record(job(200, 200, 360));
            monitor.report("task", 3, None)
        };
        assert_eq!((report.jobs, report.misses), (2, 1));
        assert_eq!((report.jitter.max, report.response.max, report.execution.max), (10, 160, 130));
        assert_eq!(report.response.mean, 135.0);
    }

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

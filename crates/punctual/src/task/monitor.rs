//! What is measured of every job: release jitter J, response time R, execution time C.
//!
//! On unless the app or the features of this crate say otherwise, in bounded memory that is allocated before the app
//! starts. Costs at most two readings of the processor's counter a job (of the clock, where the kernel does not keep
//! that by the counter): one at its end, and one at its start if it runs as a call or at its spawn if it is queued. A
//! queued job starts when the one before it on its thread ends, which has been read; only a thread that was asleep reads
//! the clock once more when it wakes.
//!
//! * J = start - release. The release of a periodic or timed job is its nominal time, so J includes how
//!   late the kernel's timer was; that of a spawned job is the spawn.
//! * R = end - release.
//! * C = end - start, less the time that jobs of higher levels ran meanwhile and, of a job that suspended
//!   itself, the time for which it was off its CPU. Time that the kernel took from other jobs, for itself
//!   or for other threads, is in C; telling that apart needs a profile or a trace.

use punctual_core::{Duration, Instant};

use super::body::Body;
use super::measured;
use crate::app::figures::FiguresCell;
use crate::app::guard::GuardSlot;
use crate::app::heartbeat::BeatSlot;
use crate::app::profile::ProfileSlot;
use crate::app::report::TaskReport;
use crate::app::runtime::TaskInfo;
use crate::port::linux::suspension::Suspensions;
use crate::port::linux::trace_marker::Mark;

/// What one job took.
#[cfg_attr(not(feature = "monitoring"), allow(dead_code, reason = "nothing is measured"))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) release: Instant,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// Execution of jobs that preempted this one, in ns.
    pub(crate) preempted: u64,
    pub(crate) suspensions: Suspensions,
    pub(crate) deadline: Option<Duration>,
}

/// The measurements of one task, and whether its jobs are marked in the kernel's trace.
#[derive(Debug)]
pub(crate) struct Monitor {
    figures: FiguresCell,
    pub(crate) mark: Mark,
    pub(crate) profile: ProfileSlot,
    pub(crate) beat: BeatSlot,
    pub(crate) guard: GuardSlot,
}

impl Monitor {
    pub(crate) const fn new() -> Self {
        Self {
            figures: FiguresCell::empty(),
            mark: Mark::off(),
            profile: ProfileSlot::empty(),
            beat: BeatSlot::empty(),
            guard: GuardSlot::empty(),
        }
    }

    /// The task `B`, whose monitor this is, to the rest of the app.
    pub(crate) fn info<B: Body>(&'static self) -> TaskInfo {
        TaskInfo {
            name: B::NAME,
            level: B::LEVEL,
            partition: B::partition(),
            mark: &self.mark,
            profile: &self.profile,
            beat: &self.beat,
            figures: &self.figures,
            guard: &self.guard,
        }
    }

    /// Makes room for a run's measurements.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn start(&self) {
        // SAFETY: no job of the task can run, by this function's contract, so nobody uses the cell.
        unsafe { self.figures.begin() };
    }

    /// Adds a job.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline]
    pub(crate) unsafe fn record(&self, job: Job) {
        // SAFETY: the cell changes only while no job of the task can run, and this is called by one.
        if let Some(figures) = unsafe { self.figures.get() } {
            measured::add_job(figures, job);
        }
    }

    /// The measurements so far of the task `B`, whose monitor this is.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn report<B: Body>(&self) -> TaskReport {
        // SAFETY: by this function's contract.
        unsafe { self.report_as(B::NAME, B::LEVEL, B::partition().public_name()) }
    }

    /// # Safety
    /// As for [`report`](Self::report).
    unsafe fn report_as(&self, name: &str, level: u8, partition: Option<&str>) -> TaskReport {
        // SAFETY: the cell changes only when a run begins, and this one has not ended.
        let figures = unsafe { self.figures.get() };
        let partition = partition.map(str::to_owned);
        let mut report = TaskReport { name: name.into(), level, partition, ..TaskReport::default() };
        if let Some(figures) = figures {
            measured::fill(figures, &mut report);
        }
        report
    }
}

#[inline]
pub(crate) fn since(later: Instant, earlier: Instant) -> u64 {
    later.as_ticks().saturating_sub(earlier.as_ticks())
}

#[cfg(all(test, feature = "monitoring"))]
mod tests {
    use super::*;

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
    fn the_quantities_of_known_jobs() {
        let monitor = Monitor::new();
        // SAFETY: a single thread.
        let report = unsafe {
            monitor.start();
            monitor.record(job(0, 10, 110));
            monitor.record(job(200, 200, 360));
            monitor.report_as("task", 3, None)
        };
        assert_eq!((report.jobs, report.misses), (2, 1));
        assert_eq!((report.jitter.max, report.response.max, report.execution.max), (10, 160, 130));
        assert_eq!(report.response.mean, 135.0);
    }

    #[test]
    fn time_that_a_job_sleeps_is_not_its_execution() {
        let monitor = Monitor::new();
        let suspended = |time| Job { suspensions: Suspensions { count: 2, time }, ..job(0, 10, 110) };
        // SAFETY: a single thread.
        let report = unsafe {
            monitor.start();
            monitor.record(suspended(40));
            monitor.record(suspended(30));
            monitor.record(job(200, 210, 220));
            monitor.report_as("task", 3, None)
        };
        assert_eq!((report.self_suspensions, report.suspension_max), (2, 40));
        assert_eq!((report.response.max, report.execution.max), (110, 40));
    }
}

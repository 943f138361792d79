//! The measurements of every job: release jitter J, response time R, execution time C.
//!
//! Enabled unless the app or the features of this crate disable them, in bounded memory that is
//! allocated before the app starts. They cost at most two readings of the processor's counter per
//! job (of the clock, if the kernel's clock does not use that counter): one at its end, and one at
//! its start if it runs as a call or at its spawn if it is queued. A queued job starts when the
//! previous job on its thread ends, and that time has been read; only a thread that was asleep
//! reads the clock once more when it wakes.
//!
//! * J = start - release. The release of a periodic or timed job is its nominal time, so J includes
//!   the lateness of the kernel's timer; that of a spawned job is the spawn.
//! * R = end - release.
//! * C = end - start, less the time that jobs of higher levels ran in between and, for a job that
//!   suspended itself, the time for which it was off its CPU. C includes time that the kernel took
//!   from other jobs, for itself or for other threads; separating it requires a profile or a trace.

use punctual_core::{Duration, Instant};

use super::body::{Body, Declared};
use super::measured;
use super::spawn_error::FullTask;
use crate::app::figures::FiguresCell;
use crate::app::guard::GuardSlot;
use crate::app::heartbeat::BeatSlot;
use crate::app::profile::ProfileSlot;
use crate::app::runtime::TaskInfo;
use crate::app::stop::StopReason;
use crate::port::linux::suspension::Suspensions;
use crate::port::linux::trace_marker::Mark;
use crate::report::TaskReport;

/// The times of one job.
#[cfg_attr(not(feature = "monitoring"), allow(dead_code, reason = "nothing is measured"))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) release: Instant,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// Execution time of jobs that preempted this one, in ns.
    pub(crate) preempted: u64,
    pub(crate) suspensions: Suspensions,
    pub(crate) deadline: Option<Duration>,
}

/// A task without its types: its declaration, its measurements, and whether its jobs are marked in
/// the kernel's trace.
#[derive(Debug)]
pub(crate) struct Monitor {
    pub(crate) declared: Declared,
    figures: FiguresCell,
    pub(crate) mark: Mark,
    pub(crate) profile: ProfileSlot,
    pub(crate) beat: BeatSlot,
    pub(crate) guard: GuardSlot,
    /// The reason with which the guard stops the app.
    pub(crate) guard_stop: &'static StopReason,
}

impl Monitor {
    /// Creates the monitor of the task `B`; see [`Declared::of`].
    pub(crate) const fn new<B: Body>(full: &'static FullTask) -> Self {
        Self {
            declared: Declared::of::<B>(full),
            figures: FiguresCell::empty(),
            mark: Mark::off(),
            profile: ProfileSlot::empty(),
            beat: BeatSlot::empty(),
            guard: GuardSlot::empty(),
            guard_stop: const { &StopReason::Guard(B::NAME) },
        }
    }

    /// Returns the task's data for the rest of the app.
    pub(crate) fn info(&'static self) -> TaskInfo {
        TaskInfo {
            name: self.declared.name,
            level: self.declared.level,
            partition: (self.declared.partition)(),
            mark: &self.mark,
            profile: &self.profile,
            beat: &self.beat,
            figures: &self.figures,
            guard: &self.guard,
        }
    }

    /// Allocates memory for a run's measurements, if there are to be any.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn begin(&self) {
        if let Some(interval) = (self.declared.interval)() {
            interval.reset();
        }
        if self.declared.is_measured {
            // SAFETY: no job of the task can run, by this function's contract, so no thread uses
            // the cell.
            unsafe { self.figures.begin() };
        }
    }

    /// Adds a job.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline]
    pub(crate) unsafe fn record(&self, job: Job) {
        // SAFETY: the cell changes only while no job of the task can run, and a job calls this.
        if let Some(figures) = unsafe { self.figures.get() } {
            measured::add_job(figures, job);
        }
    }

    /// Returns the measurements so far.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn report(&self) -> TaskReport {
        let Declared { name, level, .. } = self.declared;
        let partition = (self.declared.partition)().public_name();
        // SAFETY: the cell changes only when a run begins, and this one has not ended.
        let figures = unsafe { self.figures.get() };
        let mut report = TaskReport { name, level, partition, ..TaskReport::default() };
        if let Some(figures) = figures {
            measured::fill(figures, &mut report);
        }
        if let Some(interval) = (self.declared.interval)() {
            interval.fill(&mut report);
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
    use std::sync::Arc;

    use punctual_core::metrics::TaskFigures;

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
        // SAFETY: zero is a valid value of an atomic.
        let figures: Arc<TaskFigures> = unsafe { Arc::new_zeroed().assume_init() };
        let mut report = TaskReport::default();
        measured::add_job(&figures, job(0, 10, 110));
        measured::add_job(&figures, job(200, 200, 360));
        measured::fill(&figures, &mut report);
        assert_eq!((report.jobs, report.misses), (2, 1));
        assert_eq!((report.jitter.max, report.response.max, report.execution.max), (10, 160, 130));
        assert_eq!(report.response.mean, 135.0);
    }

    #[test]
    fn time_that_a_job_sleeps_is_not_its_execution() {
        // SAFETY: zero is a valid value of an atomic.
        let figures: Arc<TaskFigures> = unsafe { Arc::new_zeroed().assume_init() };
        let suspended = |time| Job { suspensions: Suspensions { count: 2, time }, ..job(0, 10, 110) };
        let mut report = TaskReport::default();
        for job in [suspended(40), suspended(30), job(200, 210, 220)] {
            measured::add_job(&figures, job);
        }
        measured::fill(&figures, &mut report);
        assert_eq!((report.self_suspensions, report.suspension_max), (2, 40));
        assert_eq!((report.response.max, report.execution.max), (110, 40));
    }
}

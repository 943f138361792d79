//! The measurements of a task on a board: counts, maxima and means of release jitter J, response time
//! R and execution time C.
//!
//! Boards have no memory for histograms, and thus no quantiles, except for those that share memory
//! with Linux: their tasks count [there](shared).

mod shared;

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::Relaxed;

use punctual_core::remote::Distribution;

use crate::cells::{Job, Observe};
use crate::report::{Summary, TaskReport};
use crate::stop::StopReason;

pub(crate) use self::shared::{Shared, area, make_ring};

/// One quantity over all jobs of a task, in ns.
#[derive(Debug, Clone, Copy)]
struct Quantity {
    max: u64,
    sum: u64,
}

impl Quantity {
    const NONE: Self = Self { max: 0, sum: 0 };

    #[inline]
    fn record(&mut self, value: u64) {
        self.max = self.max.max(value);
        self.sum = self.sum.saturating_add(value);
    }

    fn summary(self, jobs: u64) -> Summary {
        let mean = if jobs == 0 { 0.0 } else { self.sum as f64 / jobs as f64 };
        Summary { max: self.max, mean, ..Summary::default() }
    }
}

/// Measurements of a task.
#[derive(Debug)]
struct Measured {
    jobs: u64,
    misses: u64,
    jitter: Quantity,
    response: Quantity,
    execution: Quantity,
}

impl Measured {
    const NONE: Self = Self {
        jobs: 0,
        misses: 0,
        jitter: Quantity::NONE,
        response: Quantity::NONE,
        execution: Quantity::NONE,
    };
}

/// Place of a task's figures.
#[derive(Debug)]
enum Figures {
    /// Nowhere: the task is not measured, or there has been no run.
    None,
    Own(Measured),
    /// In memory that Linux reads.
    Shared(Shared),
}

/// The measurements of one task.
#[derive(Debug)]
pub(crate) struct Cells {
    figures: UnsafeCell<Figures>,
}

// SAFETY: the thread that occupies the task's level calls `record`, and the other methods are called
// while no job of the task can run.
unsafe impl Sync for Cells {}

impl Observe for Cells {}

impl Cells {
    pub(crate) const fn empty(_: &'static StopReason) -> Self {
        Self { figures: UnsafeCell::new(Figures::None) }
    }

    /// Begins a run, in which jobs are measured.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn begin(&self) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        unsafe { *self.figures.get() = Figures::Own(Measured::NONE) };
    }

    /// Counts the jobs of this run in a row, if they are measured.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn count_in(&self, shared: Shared) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        let figures = unsafe { &mut *self.figures.get() };
        if matches!(figures, Figures::Own(_)) {
            *figures = Figures::Shared(shared);
        }
    }

    /// Adds a job.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline]
    pub(crate) unsafe fn record(&self, job: Job) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        let measured = match unsafe { &mut *self.figures.get() } {
            Figures::None => return,
            Figures::Own(measured) => measured,
            Figures::Shared(shared) => {
                let [release, start, end] = [job.release, job.start, job.end].map(|time| time.as_ticks());
                return shared.record(release, start, end, job.preempted);
            }
        };
        measured.jobs += 1;
        measured.jitter.record(job.jitter());
        measured.response.record(job.response());
        measured.execution.record(job.execution());
        let is_late = job.deadline.is_some_and(|deadline| job.response() > deadline.as_ticks());
        measured.misses += u64::from(is_late);
    }

    /// Shows how many releases found the previous job unfinished, where Linux reads that.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline]
    pub(crate) unsafe fn show_overruns(&self, overruns: impl FnOnce() -> u64) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        if let Figures::Shared(shared) = unsafe { &*self.figures.get() } {
            shared.row.figures.overruns.store(overruns(), Relaxed);
        }
    }

    /// Shows how many releases came too early, where Linux reads that.
    ///
    /// # Safety
    /// As for [`show_overruns`](Self::show_overruns).
    #[inline]
    pub(crate) unsafe fn show_early(&self, early: impl FnOnce() -> u64) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        if let Figures::Shared(shared) = unsafe { &*self.figures.get() } {
            shared.row.figures.early.store(early(), Relaxed);
        }
    }

    /// Copies the measurements of the last run into `report`.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn fill(&self, report: &mut TaskReport) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        match unsafe { &*self.figures.get() } {
            Figures::None => {}
            Figures::Own(measured) => {
                let jobs = measured.jobs;
                report.measured = true;
                report.jobs = jobs;
                report.misses = measured.misses;
                report.jitter = measured.jitter.summary(jobs);
                report.response = measured.response.summary(jobs);
                report.execution = measured.execution.summary(jobs);
            }
            Figures::Shared(shared) => {
                let figures = &shared.row.figures;
                let jobs = figures.jobs.load(Relaxed);
                let summary = |of: &Distribution| {
                    let statistics = of.statistics(jobs);
                    Summary {
                        max: statistics.max,
                        mean: statistics.mean as f64,
                        p999: Some(statistics.p999),
                        p50: Some(statistics.p50),
                    }
                };
                report.measured = true;
                (report.jobs, report.misses) = (jobs, figures.misses.load(Relaxed));
                report.jitter = summary(&figures.jitter);
                report.response = summary(&figures.response);
                report.execution = summary(&figures.execution);
            }
        }
    }
}

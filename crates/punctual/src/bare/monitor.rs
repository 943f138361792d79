//! The measurements of every job: counts, maxima and means of release jitter J, response time R and
//! execution time C.
//!
//! Boards have no memory for histograms, and thus no quantiles, except for those that share memory
//! with Linux: their tasks count [there](super::remote).

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::Relaxed;

use punctual_core::remote::Distribution;
use punctual_core::{Arguments, CurrentWorker, Duration, Instant, Stamp};

use super::job::execute;
use super::profile::ProfileSlot;
use super::remote::Shared;
use super::runtime::TaskInfo;
use crate::report::{Summary, TaskReport};
use crate::task::body::{Body, Declared};
use crate::task::spawn_error::FullTask;

/// Times of one job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) release: Instant,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// Execution time of jobs that preempted this one, in ns.
    pub(crate) preempted: u64,
    pub(crate) deadline: Option<Duration>,
}

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

/// Mark of a task in the kernel's trace, on targets that have one.
#[derive(Debug)]
pub(crate) struct Mark;

impl Mark {
    pub(crate) const fn is_on(&self) -> bool {
        false
    }
}

/// The measurements of one task.
#[derive(Debug)]
pub(crate) struct Monitor {
    pub(crate) declared: Declared,
    /// [`execute`] for the task.
    pub(crate) execute: unsafe fn(&Self, CurrentWorker, Arguments, u64, Stamp) -> Stamp,
    figures: UnsafeCell<Figures>,
    pub(crate) mark: Mark,
    pub(crate) profile: ProfileSlot,
}

// SAFETY: `record` is called by the thread that occupies the task's level, `start` and `report` while no job of the task can
// run.
unsafe impl Sync for Monitor {}

impl Monitor {
    /// Creates the monitor of the task `B`; see [`Declared::of`].
    pub(crate) const fn new<B: Body>(full: &'static FullTask) -> Self {
        let (declared, execute) = (Declared::of::<B>(full), execute::<B>);
        Self { declared, execute, figures: UnsafeCell::new(Figures::None), mark: Mark, profile: ProfileSlot }
    }

    /// Describes the task to the rest of the app.
    pub(crate) fn info(&'static self) -> TaskInfo {
        TaskInfo {
            name: self.declared.name,
            level: self.declared.level,
            partition: (self.declared.partition)(),
            measured: self.declared.is_measured,
            monitor: self,
        }
    }

    /// Begins a run.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn begin(&self) {
        if let Some(interval) = (self.declared.interval)() {
            interval.reset();
        }
        if self.declared.is_measured {
            // SAFETY: by this function's contract no other reference to the cell's contents exists.
            unsafe { *self.figures.get() = Figures::Own(Measured::NONE) };
        }
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
        let since = |later: Instant, earlier: Instant| later.as_ticks().saturating_sub(earlier.as_ticks());
        let response = since(job.end, job.release);
        measured.jobs += 1;
        measured.jitter.record(since(job.start, job.release));
        measured.response.record(response);
        measured.execution.record(since(job.end, job.start).saturating_sub(job.preempted));
        measured.misses += u64::from(job.deadline.is_some_and(|deadline| response > deadline.as_ticks()));
    }

    /// Shows how many releases found the previous job unfinished, and how many came too early,
    /// where Linux reads that.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline]
    pub(crate) unsafe fn show_counts(&self, overruns: Option<u64>, early: Option<u64>) {
        // SAFETY: by this function's contract no other reference to the cell's contents exists.
        if let Figures::Shared(shared) = unsafe { &*self.figures.get() } {
            let figures = &shared.row.figures;
            overruns.into_iter().for_each(|count| figures.overruns.store(count, Relaxed));
            early.into_iter().for_each(|count| figures.early.store(count, Relaxed));
        }
    }

    /// Returns the measurements so far.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn report(&self) -> TaskReport {
        let Declared { name, level, .. } = self.declared;
        let partition = (self.declared.partition)().public_name();
        let mut report = TaskReport { name, level, partition, ..TaskReport::default() };
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
        if let Some(interval) = (self.declared.interval)() {
            interval.fill(&mut report);
        }
        report
    }
}

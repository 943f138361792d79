//! Result of a run: the reason for its end, the granted real-time settings, and the timing of every
//! task.
//!
//! `{}` prints a table for people; the fields contain the same data for programs. Maxima come first
//! and include every job. The types and the text are the same on Linux and on a board.
//!
//! ```
//! use punctual::report::{Outcome, Report, TaskReport};
//!
//! let mut task = TaskReport::default();
//! (task.name, task.level, task.measured, task.jobs) = ("sample", 4, true, 100_000);
//!
//! let mut report = Report::default();
//! (report.outcome, report.tasks) = (Outcome::Shutdown, vec![task].into());
//! assert_eq!(report.exit_code(), 0);
//! assert!(report.to_string().contains("sample"));
//! ```

pub(crate) mod display;
mod storage;
pub(crate) mod table;

use core::fmt;

use punctual_core::Duration;

use crate::model::OnEarly;

pub(crate) use self::storage::Rows;
pub use self::storage::{Tasks, Text};
#[allow(unused_imports, unreachable_pub, reason = "a board adds no public item")]
pub use crate::platform::report::*;

/// Reason for the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// `punctual::shutdown` was called.
    #[default]
    Shutdown,
    /// The time limit set with [`Config::until`](crate::Config::until) was reached, or virtual time
    /// ended.
    TimeUp,
    /// In virtual time: no work was left.
    Quiescent,
    /// The process got this signal.
    Signal(i32),
    /// A task, `init` or `idle` panicked.
    Panicked {
        /// The name of the task, or `init` or `idle`.
        task: Text,
        /// The panic message.
        message: Text,
    },
    /// A periodic task with `on_overrun = stop` was released while its previous job was unfinished.
    Overrun {
        /// The name of the task.
        task: &'static str,
    },
    /// The [guard](crate::Config::guard) found a job that allocates or blocks, and was configured
    /// to stop the app.
    Guard {
        /// The name of the task.
        task: &'static str,
    },
    /// The event source of a task with `on_idle_source = stop` was at its end, and still was after
    /// a job.
    IdleSource {
        /// The name of the task.
        task: &'static str,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("shut down"),
            Self::TimeUp => f.write_str("time up"),
            Self::Quiescent => f.write_str("nothing left to do"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Panicked { task, message } => write!(f, "`{task}` panicked: {message}"),
            Self::Overrun { task } => write!(f, "overrun of `{task}`"),
            Self::Guard { task } => write!(f, "the guard found `{task}` allocating or blocking"),
            Self::IdleSource { task } => write!(f, "the event source of `{task}` is at its end"),
        }
    }
}

/// A measured quantity over all jobs of a task, in ns.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Exact maximum.
    pub max: u64,
    /// The 99.9th percentile, at most 1 % too large, or 1/16 on a CPU without Linux. `None` if it is
    /// unknown.
    pub p999: Option<u64>,
    /// The median, with the same precision.
    pub p50: Option<u64>,
    /// The mean.
    pub mean: f64,
    /// The histogram: upper end of each non-empty bucket, and its count.
    #[cfg(feature = "alloc")]
    pub buckets: alloc::vec::Vec<(u64, u64)>,
}

/// Measurements of a task.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct TaskReport {
    /// The task's name.
    pub name: &'static str,
    /// Its partition, if the app has several.
    pub partition: Option<&'static str>,
    /// Its level.
    pub level: u8,
    /// Its period, if it has one.
    pub period: Option<Duration>,
    /// Its relative deadline, if it has one.
    pub deadline: Option<Duration>,
    /// The length of a window with at most [`burst`](Self::burst) releases, if the task declares one.
    pub min_interval: Option<Duration>,
    /// The largest number of releases in any window of [`min_interval`](Self::min_interval); 0 if none is declared.
    pub burst: u16,
    /// Policy for early releases, if a [`min_interval`](Self::min_interval) is declared.
    pub on_early: Option<OnEarly>,
    /// The number of early releases: those less than `min_interval` after the release `burst` before them. With
    /// `on_early = count`, only those whose jobs have started.
    pub early: u64,
    /// True if its jobs were measured. Without measurement, because of `#[app(monitor = false)]` or
    /// without the feature `monitoring`, nothing is known of single jobs: `jobs`, `misses`,
    /// `suspended` and the times are empty.
    pub measured: bool,
    /// Number of jobs that ended.
    pub jobs: u64,
    /// Number of releases that found the previous job unfinished.
    pub overruns: u64,
    /// Number of jobs that ended after their deadline.
    pub misses: u64,
    /// Number of jobs that suspended themselves; for those the bounds of the analysis do not hold.
    pub suspended: u64,
    /// The longest time that one of these was off its CPU between its start and its end, in ns:
    /// asleep, and displaced by other threads before, between and after its sleeps. The first one
    /// of a thread may be underestimated by the thread's earlier CPU time, up to a tick of the
    /// kernel.
    pub suspension_max: u64,
    /// Findings of the [guard](crate::Config::guard) about its jobs, if it was on, in the order of
    /// the first occurrence. The first eight calls are listed individually, and further ones as
    /// `other calls`.
    #[cfg(feature = "std")]
    pub findings: std::vec::Vec<Finding>,
    /// The number of jobs released by an idle event source (end of file or hang-up), not counting
    /// the first one each time.
    pub idle_releases: u64,
    /// Release jitter J: start - release.
    pub jitter: Summary,
    /// Response time R: end - release.
    pub response: Summary,
    /// Execution time C: end - start, without the jobs of the partition that preempted it and the
    /// time for which a job that suspended itself was off its CPU. It includes time that the kernel
    /// or other threads took from other jobs; a [profile](crate::Config::profile) has the CPU time.
    pub execution: Summary,
}

/// Result of a run.
#[cfg_attr(feature = "alloc", derive(Clone))]
#[derive(Debug, PartialEq, Default)]
#[non_exhaustive]
pub struct Report {
    /// Name of the app's module.
    pub app: &'static str,
    /// Whether the run was in virtual time.
    pub virtual_time: bool,
    /// Reason for its end.
    pub outcome: Outcome,
    /// Its duration, from the end of `init`.
    pub elapsed: core::time::Duration,
    /// The granted settings; empty in virtual time.
    #[cfg(feature = "std")]
    pub settings: Settings,
    /// Every task, highest level first.
    pub tasks: Tasks,
    /// Jobs that were released but not run, because the app ended first.
    pub dropped_jobs: u64,
    /// On a board: the number of interrupts that no task binds.
    pub unbound_interrupts: u64,
}

impl Report {
    /// Returns the task with this name.
    pub fn task(&self, name: &str) -> Option<&TaskReport> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// Returns the exit code of the program: 0; 101 after a panic; 1 after an overrun, an idle event
    /// source, or a finding of the guard that stops the app.
    pub fn exit_code(&self) -> u8 {
        match self.outcome {
            Outcome::Panicked { .. } => 101,
            Outcome::Overrun { .. } | Outcome::IdleSource { .. } | Outcome::Guard { .. } => 1,
            _ => 0,
        }
    }
}

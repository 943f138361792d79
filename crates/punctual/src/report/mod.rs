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
mod task;

use core::fmt;
// Atomics from `core`, as in `punctual_core::metrics`.
use core::sync::atomic::Ordering::Relaxed;

use punctual_core::metrics::{BUCKETS, TaskFigures, Term, Values, bucket_end, quantile};

pub(crate) use self::storage::Rows;
pub use self::storage::{Tasks, Text};
pub use self::task::TaskReport;
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
            Self::Signal(2) => f.write_str("stopped by SIGINT"),
            Self::Signal(15) => f.write_str("stopped by SIGTERM"),
            Self::Signal(number) => write!(f, "stopped by signal {number}"),
            Self::Panicked { task, message } => write!(f, "`{task}` panicked: {message}"),
            Self::Overrun { task } => write!(f, "overrun of `{task}`"),
            Self::Guard { task } => write!(f, "the guard found `{task}` allocating or blocking"),
            Self::IdleSource { task } => write!(f, "the event source of `{task}` is at its end"),
        }
    }
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
    /// Its duration, from the end of `init`; zero if that panicked.
    pub elapsed: core::time::Duration,
    /// The granted settings; empty in virtual time.
    #[cfg(feature = "std")]
    pub settings: Settings,
    /// The helper processes of the program.
    #[cfg(feature = "std")]
    pub helpers: alloc::vec::Vec<HelperReport>,
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

    /// Returns the exit code of the program: 0; 101 after a panic; 1 after an overrun, an idle
    /// event source, or a finding of the guard that stops the app.
    pub fn exit_code(&self) -> u8 {
        match self.outcome {
            Outcome::Panicked { .. } => 101,
            Outcome::Overrun { .. } | Outcome::IdleSource { .. } | Outcome::Guard { .. } => 1,
            _ => 0,
        }
    }
}

/// A measured quantity over all jobs of a task, in ns.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Exact maximum.
    pub max: u64,
    /// The 99.9th percentile, at most 1 % too large, or 1/16 on a CPU without Linux. `None` if it
    /// is unknown.
    pub p999: Option<u64>,
    /// The median, with the same precision.
    pub p50: Option<u64>,
    /// The mean.
    pub mean: f64,
    /// The histogram: upper end of each non-empty bucket, and its count.
    #[cfg(feature = "alloc")]
    pub buckets: alloc::vec::Vec<(u64, u64)>,
}

impl Summary {
    /// Returns the summary of a quantity, given the end and count of each nonempty bucket of its
    /// histogram, in order.
    pub(crate) fn new(values: Values, buckets: impl Iterator<Item = (u64, u64)> + Clone) -> Self {
        let Values { max, sum, .. } = values;
        let count: u64 = buckets.clone().map(|bucket| bucket.1).sum();
        let mean = if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        let quantile = |part| quantile(buckets.clone(), part).min(max);
        Self {
            max,
            p999: Some(quantile(0.999)),
            p50: Some(quantile(0.5)),
            mean,
            #[cfg(feature = "alloc")]
            buckets: buckets.collect(),
        }
    }

    /// Returns the summary of a term over all jobs.
    pub(crate) fn of_term(figures: &TaskFigures, term: Term) -> Self {
        let own = figures.of_term(term).0.into();
        Self::new(term.combine(own, (&figures.undisturbed).into()), recorded(figures, term))
    }
}

/// Returns the upper end of each nonempty bucket of a term, which is the last value in it, and its
/// count over all jobs.
fn recorded(figures: &TaskFigures, term: Term) -> impl Iterator<Item = (u64, u64)> + Clone {
    let own = &figures.of_term(term).1.0;
    let undisturbed = move |bucket: usize| figures.undisturbed_times.0[bucket].load(Relaxed);
    let count = move |bucket: usize| term.combine_count(bucket, own[bucket].load(Relaxed), undisturbed);
    let counts = (0..BUCKETS).map(move |bucket| (bucket, count(bucket)));
    counts.filter(|(_, count)| *count != 0).map(|(bucket, count)| (bucket_end(bucket), count.into()))
}

//! The measurements of a task: their fields, their origin, and their columns in the text.

use core::fmt::{self, Write};
// As in `punctual_core::metrics`.
use core::sync::atomic::Ordering::Relaxed;

use punctual_core::Duration;
use punctual_core::metrics::{TaskFigures, Term};

use super::Summary;
use super::display::IS_PROCESS;
use super::table::Column;
use crate::model::OnEarly;
use crate::port::{Count, Nanos};

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
    /// The length of a window with at most [`burst`](Self::burst) releases, if the task declares
    /// one.
    pub min_interval: Option<Duration>,
    /// The largest number of releases in any window of [`min_interval`](Self::min_interval); 0 if
    /// none is declared.
    pub burst: u16,
    /// Policy for early releases, if a [`min_interval`](Self::min_interval) is declared.
    pub on_early: Option<OnEarly>,
    /// The number of early releases: those less than `min_interval` after the release `burst`
    /// before them. With `on_early = count`, only those whose jobs have started.
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
    pub findings: std::vec::Vec<super::Finding>,
    /// The external clock that its grid followed, if it has one.
    #[cfg(feature = "std")]
    pub clock: Option<super::ClockReport>,
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

impl TaskReport {
    /// Copies the figures of the jobs.
    pub(crate) fn fill(&mut self, figures: &TaskFigures) {
        self.measured = true;
        self.jobs = figures.jobs.load(Relaxed);
        self.misses = figures.misses.load(Relaxed);
        self.suspended = figures.suspended.load(Relaxed);
        self.suspension_max = figures.suspension_max.load(Relaxed);
        self.jitter = Summary::of_term(figures, Term::Jitter);
        self.response = Summary::of_term(figures, Term::Response);
        self.execution = Summary::of_term(figures, Term::Execution);
    }
}

/// Placeholder of an unknown value.
pub(super) const UNKNOWN: &str = "–";

/// The columns of the tasks, in order.
pub(super) const COLUMNS: [Column<TaskReport>; 15] = [
    Column::new("task", |task: &TaskReport, to| to.write_str(task.name)),
    Column::new("partition", |task: &TaskReport, to| to.write_str(task.partition.unwrap_or_default()))
        .shown_if(any_placed),
    Column::new("level", |task: &TaskReport, to| write!(to, "{}", task.level)),
    Column::new("jobs", |task: &TaskReport, to| known(task, to, Count(task.jobs))),
    Column::new("J max", |task: &TaskReport, to| longest(task, to, task.jitter.max)).shown_if(any_timed),
    Column::new("p99.9", |task: &TaskReport, to| quantile(task, to, task.jitter.p999)).shown_if(any_timed),
    Column::new("p50", |task: &TaskReport, to| quantile(task, to, task.jitter.p50)).shown_if(any_timed),
    Column::new("R max", |task: &TaskReport, to| longest(task, to, task.response.max)).shown_if(any_timed),
    Column::new("p99.9", |task: &TaskReport, to| quantile(task, to, task.response.p999)).shown_if(any_timed),
    Column::new("p50", |task: &TaskReport, to| quantile(task, to, task.response.p50)).shown_if(any_timed),
    Column::new("C max", |task: &TaskReport, to| longest(task, to, task.execution.max)).shown_if(any_timed),
    Column::new("overruns", |task: &TaskReport, to| write!(to, "{}", Count(task.overruns))),
    Column::new("misses", |task: &TaskReport, to| known(task, to, Count(task.misses))),
    Column::new("suspended", |task: &TaskReport, to| known(task, to, Count(task.suspended)))
        .shown_if(any_suspended),
    Column::new("max", suspension).shown_if(any_suspended),
];

fn any_placed(tasks: &[TaskReport]) -> bool {
    tasks.iter().any(|task| task.partition.is_some())
}

/// Returns false if all times are zero, as in virtual time without declared execution times. Boards
/// show them anyway, so that the tables of several runs have the same columns.
pub(super) fn any_timed(tasks: &[TaskReport]) -> bool {
    let is_timed = |task: &TaskReport| {
        !task.measured || task.jitter.max > 0 || task.response.max > 0 || task.execution.max > 0
    };
    !IS_PROCESS || tasks.iter().any(is_timed)
}

fn any_suspended(tasks: &[TaskReport]) -> bool {
    tasks.iter().any(|task| task.suspended > 0)
}

/// Prints a figure of a task whose jobs are measured.
fn known(task: &TaskReport, to: &mut dyn Write, figure: impl fmt::Display) -> fmt::Result {
    if task.measured { write!(to, "{figure}") } else { to.write_str(UNKNOWN) }
}

/// Prints the longest time for which a job that suspended itself was off its CPU. 0 is a lower
/// bound then.
fn suspension(task: &TaskReport, to: &mut dyn Write) -> fmt::Result {
    match (task.suspended, task.suspension_max) {
        (1.., 0) => to.write_str(UNKNOWN),
        (_, max) => known(task, to, Nanos(max)),
    }
}

/// Prints the longest time of the jobs of a task, in ns.
fn longest(task: &TaskReport, to: &mut dyn Write, ns: u64) -> fmt::Result {
    quantile(task, to, Some(ns))
}

/// Prints a quantile, in ns, of a task with jobs and a histogram.
fn quantile(task: &TaskReport, to: &mut dyn Write, ns: Option<u64>) -> fmt::Result {
    match ns.filter(|_| task.jobs > 0) {
        Some(ns) => known(task, to, Nanos(ns)),
        None => to.write_str(UNKNOWN),
    }
}

//! Result of a run: the reason for its end, and the timing of every task.
//!
//! `{}` prints the same table as on Linux, with a dash for values that are unknown on a bare board.

use core::fmt::{self, Write as _};

use punctual_core::Duration;

use super::model::OnEarly;
use super::runtime::Runtime;

/// Reason for the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// `punctual::shutdown` was called.
    #[default]
    Shutdown,
    /// A periodic task with `on_overrun = stop` was released while its previous job was unfinished.
    Overrun {
        /// The task.
        task: &'static str,
    },
    /// The time limit given by [`Config::until`](crate::Config::until) was reached.
    #[cfg(feature = "virtual-time")]
    TimeUp,
    /// In virtual time: no job was left to run or to release.
    #[cfg(feature = "virtual-time")]
    Quiescent,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("shut down"),
            Self::Overrun { task } => write!(f, "overrun of `{task}`"),
            #[cfg(feature = "virtual-time")]
            Self::TimeUp => f.write_str("time up"),
            #[cfg(feature = "virtual-time")]
            Self::Quiescent => f.write_str("nothing left to do"),
        }
    }
}

/// A measured quantity over all jobs of a task, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Exact maximum.
    pub max: u64,
    /// Mean, rounded down.
    pub mean: u64,
    /// The value that 99.9 % of the jobs do not exceed, at most 1/16 too large; `None` without
    /// memory that Linux shares.
    pub p999: Option<u64>,
    /// The median, at most 1/16 too large.
    pub p50: Option<u64>,
}

/// Measurements of a task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
    /// True if its jobs were measured. If not, `jobs`, `misses` and the times are unknown.
    pub measured: bool,
    /// Number of jobs that ended.
    pub jobs: u64,
    /// Number of releases that found the previous job unfinished.
    pub overruns: u64,
    /// Number of jobs that ended after their deadline.
    pub misses: u64,
    /// Its `min_interval`, if it has one.
    pub min_interval: Option<Duration>,
    /// Maximum number of releases in that interval.
    pub burst: u16,
    /// Number of earlier releases.
    pub early: u64,
    /// Policy for those.
    pub on_early: Option<OnEarly>,
    /// Release jitter J: start - release.
    pub jitter: Summary,
    /// Response time R: end - release.
    pub response: Summary,
    /// Execution time C: end - start, without preempting jobs.
    pub execution: Summary,
}

/// Result of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The app's name.
    pub app: &'static str,
    /// Reason for the end.
    pub outcome: Outcome,
    /// Time from the end of `init` to the end of the last job.
    pub elapsed: Duration,
    /// Number of jobs that were released and never run.
    pub dropped_jobs: u64,
    /// Number of interrupts that no task binds.
    pub unbound_interrupts: u64,
    /// True if time was virtual.
    #[cfg(feature = "virtual-time")]
    pub virtual_time: bool,
    /// The tasks, in the order of their declaration; without the feature `alloc`, use
    /// [`tasks()`](Self::tasks).
    #[cfg(feature = "alloc")]
    pub tasks: alloc::vec::Vec<TaskReport>,
    pub(crate) runtime: &'static Runtime,
}

impl Report {
    /// Creates the report of a run that has ended.
    pub(crate) fn new(
        runtime: &'static Runtime,
        elapsed: Duration,
        dropped_jobs: u64,
        unbound_interrupts: u64,
    ) -> Self {
        Self {
            app: runtime.name,
            outcome: runtime.stop_reason().outcome(),
            elapsed,
            dropped_jobs,
            unbound_interrupts,
            #[cfg(feature = "virtual-time")]
            virtual_time: super::virtual_time::is_on(),
            #[cfg(feature = "alloc")]
            tasks: tasks(runtime).collect(),
            runtime,
        }
    }

    /// Returns the tasks, in the order of their declaration.
    pub fn tasks(&self) -> impl Iterator<Item = TaskReport> + use<> {
        tasks(self.runtime)
    }

    /// Returns a task by its name.
    pub fn task(&self, name: &str) -> Option<TaskReport> {
        self.tasks().find(|task| task.name == name)
    }

    /// Returns the exit code of a program that consists of this app.
    pub fn exit_code(&self) -> u8 {
        match self.outcome {
            Outcome::Shutdown => 0,
            #[cfg(feature = "virtual-time")]
            Outcome::TimeUp | Outcome::Quiescent => 0,
            Outcome::Overrun { .. } => 1,
        }
    }
}

fn tasks(runtime: &'static Runtime) -> impl Iterator<Item = TaskReport> {
    // SAFETY: a report is created after the last job has ended, and exists only until another run
    // can begin.
    runtime.tasks.iter().filter_map(|task| unsafe { task.report() })
}

/// The columns after the names, and their widths.
const COLUMNS: [(&str, usize); 11] = [
    ("level", 5),
    ("jobs", 6),
    ("J max", 7),
    ("p99.9", 5),
    ("p50", 3),
    ("R max", 7),
    ("p99.9", 5),
    ("p50", 3),
    ("C max", 7),
    ("overruns", 8),
    ("misses", 6),
];

/// Placeholder of an unknown value.
const UNKNOWN: &str = "–";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} after {}", self.app, self.outcome, Nanos(self.elapsed.as_ticks()))?;
        #[cfg(feature = "virtual-time")]
        if self.virtual_time {
            f.write_str(" of virtual time")?;
        }
        if self.dropped_jobs > 0 {
            write!(f, "; jobs dropped: {}", self.dropped_jobs)?;
        }
        if self.unbound_interrupts > 0 {
            write!(f, "; interrupts that no task binds: {}", self.unbound_interrupts)?;
        }
        f.write_str("\n\n")?;
        let names = Names {
            task: self.widest("task", |task| Some(task.name)).unwrap_or_default(),
            partition: self.widest("partition", |task| task.partition),
        };
        names.write(f, "task", "partition")?;
        for (head, width) in COLUMNS {
            write!(f, "  {head:>width$}")?;
        }
        f.write_char('\n')?;
        let width = names.width() + COLUMNS.iter().map(|(_, width)| 2 + width).sum::<usize>();
        (0..width).try_for_each(|_| f.write_char('─'))?;
        f.write_char('\n')?;
        for level in (1..=punctual_core::MAX_LEVEL).rev() {
            for task in self.tasks().filter(|task| task.level == level) {
                row(f, &task, &names)?;
            }
        }
        Ok(())
    }
}

impl Report {
    /// Returns the width of a column with names of tasks; `None` if no task has one.
    fn widest(&self, head: &str, name: fn(&TaskReport) -> Option<&'static str>) -> Option<usize> {
        let width = self.tasks().filter_map(|task| name(&task)).map(|name| name.chars().count()).max()?;
        Some(width.max(head.len()))
    }
}

/// Widths of the columns with names.
struct Names {
    task: usize,
    /// Present if the app has several partitions.
    partition: Option<usize>,
}

impl Names {
    fn write(&self, f: &mut fmt::Formatter<'_>, task: &str, partition: &str) -> fmt::Result {
        write!(f, "{task:0$}", self.task)?;
        self.partition.map_or(Ok(()), |width| write!(f, "  {partition:>width$}"))
    }

    fn width(&self) -> usize {
        self.task + self.partition.map_or(0, |width| 2 + width)
    }
}

fn row(f: &mut fmt::Formatter<'_>, task: &TaskReport, names: &Names) -> fmt::Result {
    let known = |text: Text| if task.measured { text } else { Text::of(UNKNOWN) };
    let quantile = |value: Option<u64>| value.map_or(Text::of(UNKNOWN), |value| Text::of(Nanos(value)));
    let cells = [
        Text::of(task.level),
        known(Text::of(task.jobs)),
        known(Text::of(Nanos(task.jitter.max))),
        quantile(task.jitter.p999),
        quantile(task.jitter.p50),
        known(Text::of(Nanos(task.response.max))),
        quantile(task.response.p999),
        quantile(task.response.p50),
        known(Text::of(Nanos(task.execution.max))),
        Text::of(task.overruns),
        known(Text::of(task.misses)),
    ];
    names.write(f, task.name, task.partition.unwrap_or_default())?;
    for (cell, (_, width)) in cells.iter().zip(COLUMNS) {
        write!(f, "  {:>width$}", cell.as_str())?;
    }
    f.write_char('\n')
}

/// Nanoseconds, with a suitable unit and three significant digits.
struct Nanos(u64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = match self.0 {
            0..1_000 => return write!(f, "{} ns", self.0),
            1_000..999_500 => ("µs", 1_000),
            999_500..999_500_000 => ("ms", 1_000_000),
            _ => ("s", 1_000_000_000),
        };
        // In hundredths, and then with the significant digits.
        let hundredths = (self.0 + scale / 200) / (scale / 100);
        match hundredths {
            0..1_000 => write!(f, "{}.{:02} {unit}", hundredths / 100, hundredths % 100),
            1_000..10_000 => write!(f, "{}.{} {unit}", hundredths / 100, hundredths % 100 / 10),
            _ => write!(f, "{} {unit}", hundredths / 100),
        }
    }
}

/// A cell of the table; its width is the number of characters, not bytes.
struct Text {
    bytes: [u8; 24],
    length: usize,
}

impl Text {
    fn of(value: impl fmt::Display) -> Self {
        let mut text = Self { bytes: [0; 24], length: 0 };
        // Names that are too long are truncated; figures never are.
        let _ = write!(text, "{value}");
        text
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

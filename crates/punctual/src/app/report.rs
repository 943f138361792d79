//! Result of a run: the reason for its end, the granted real-time settings, and the timing of every
//! task.
//!
//! `{}` prints a table for people; the fields contain the same data for programs. Maxima come first
//! and include every job.
//!
//! ```
//! use punctual::report::{Outcome, Report, TaskReport};
//!
//! let mut task = TaskReport::default();
//! (task.name, task.level, task.measured, task.jobs) = ("sample".into(), 4, true, 100_000);
//!
//! let mut report = Report::default();
//! (report.outcome, report.tasks) = (Outcome::Shutdown, vec![task]);
//! assert_eq!(report.exit_code(), 0);
//! assert!(report.to_string().contains("sample"));
//! ```

use std::fmt;

use punctual_core::Duration;

use crate::model::OnEarly;
use crate::port::format_nanos;
pub use crate::port::linux::settings::ThreadSettings;

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
        task: String,
        /// The panic message.
        message: String,
    },
    /// A periodic task with `on_overrun = stop` was released while its previous job was unfinished.
    Overrun {
        /// The name of the task.
        task: String,
    },
    /// The [guard](crate::Config::guard) found a job that allocates or blocks, and was configured
    /// to stop the app.
    Guard {
        /// The name of the task.
        task: String,
    },
    /// The event source of a task with `on_idle_source = stop` was at its end, and still was after
    /// a job.
    IdleSource {
        /// The name of the task.
        task: String,
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
    /// The 99.9th percentile, within 1 %; within 7 % for a task that runs without Linux.
    pub p999: u64,
    /// The median, with the same precision.
    pub p50: u64,
    /// Exact mean.
    pub mean: f64,
    /// The histogram: upper end of each non-empty bucket, and its count.
    pub buckets: Vec<(u64, u64)>,
}

/// An unbounded operation that the [guard](crate::Config::guard) found in the jobs of a task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Finding {
    /// `allocation`, `deallocation`, or the name of a system call, such as `write`.
    pub call: String,
    /// Number of occurrences.
    pub count: u64,
    /// The stack of the first occurrence, from the call to the task's function: functions, with
    /// file and line if the program has debug information.
    pub stack: Vec<String>,
}

/// Measurements of a task.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct TaskReport {
    /// The task's name.
    pub name: String,
    /// Its partition, if the app has several.
    pub partition: Option<String>,
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
    /// `self_suspensions` and the times are empty.
    pub measured: bool,
    /// Number of jobs that ended.
    pub jobs: u64,
    /// Number of releases that found the previous job unfinished.
    pub overruns: u64,
    /// Number of jobs that ended after their deadline.
    pub misses: u64,
    /// Number of jobs that suspended themselves; for those the bounds of the analysis do not hold.
    pub self_suspensions: u64,
    /// The longest time that one of these was off its CPU between its start and its end, in ns:
    /// asleep, and displaced by other threads before, between and after its sleeps. The first one
    /// of a thread may be underestimated by the thread's earlier CPU time, up to a tick of the
    /// kernel.
    pub suspension_max: u64,
    /// Findings of the [guard](crate::Config::guard) about its jobs, if it was on, in the order of
    /// the first occurrence. The first eight calls are listed individually, and further ones as
    /// `other calls`.
    pub findings: Vec<Finding>,
    /// The number of jobs released by an idle event source (end of file or hang-up), not counting the first one each time.
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

/// The real-time settings that the kernel granted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The kernel, and whether it is PREEMPT_RT.
    pub kernel: String,
    /// Amount of locked memory.
    pub memory: String,
    /// Every thread that runs tasks, and the idle thread.
    pub threads: Vec<ThreadSettings>,
    /// Missing settings of the whole process, each with the remedy.
    pub missing: Vec<String>,
    /// Further conditions that affect timing on the partition's CPU.
    pub notes: Vec<String>,
}

impl Settings {
    /// Returns all missing settings, each with the remedy and, if it concerns one thread, with the
    /// thread's name.
    pub fn all_missing(&self) -> Vec<String> {
        let threads = self
            .threads
            .iter()
            .flat_map(|t| t.missing.iter().map(move |what| format!("thread {}: {what}", t.thread)));
        self.missing.iter().cloned().chain(threads).collect()
    }
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Report {
    /// Name of the app's module.
    pub app: String,
    /// Whether the run was in virtual time.
    pub virtual_time: bool,
    /// Reason for its end.
    pub outcome: Outcome,
    /// Its duration, from the end of `init`.
    pub elapsed: std::time::Duration,
    /// The granted settings; empty in virtual time.
    pub settings: Settings,
    /// Every task, highest level first.
    pub tasks: Vec<TaskReport>,
    /// Jobs that were released but not run, because the app ended first.
    pub dropped_jobs: u64,
}

impl Report {
    /// Returns the task with this name.
    pub fn task(&self, name: &str) -> Option<&TaskReport> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// Returns the exit code of the process: 0; 101 after a panic; 1 after an overrun, an idle
    /// event source, a finding of the guard that stops the app, or a failure of the app's other
    /// half.
    pub fn exit_code(&self) -> u8 {
        match self.outcome {
            Outcome::Panicked { .. } => 101,
            Outcome::Overrun { .. } | Outcome::IdleSource { .. } | Outcome::Guard { .. } => 1,
            _ => 0,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = if self.virtual_time { "virtual time" } else { "real time" };
        writeln!(
            f,
            "{}: {} after {} of {time}",
            self.app,
            self.outcome,
            format_nanos(self.elapsed.as_nanos() as f64)
        )?;
        if !self.tasks.is_empty() {
            writeln!(
                f,
                "\nJ: release to start, R: release to end, C: start to end without preemption and suspension\n"
            )?;
            table(f, &self.task_rows())?;
        }
        if self.tasks.iter().any(|task| !task.measured) {
            let why = match cfg!(feature = "monitoring") {
                true => "the app sets `monitor = false`",
                false => "`punctual` was built without its feature `monitoring`",
            };
            writeln!(f, "{UNKNOWN} was not measured, because {why}")?;
        }
        for task in &self.tasks {
            self.explain_misses(f, task)?;
        }
        for task in self.tasks.iter().filter(|task| task.early > 0) {
            explain_early(f, task)?;
        }
        for task in self.tasks.iter().filter(|task| task.idle_releases > 0) {
            writeln!(
                f,
                "{} of the jobs of {} found no data, because its event source is at its end; \
                 replace the source, or declare `on_idle_source = once` or `stop`",
                task.idle_releases, task.name
            )?;
        }
        for task in &self.tasks {
            explain_findings(f, task)?;
        }
        if self.dropped_jobs > 0 {
            let jobs = counted(self.dropped_jobs, "released job");
            writeln!(f, "{jobs} not run, because the app ended first")?;
        }
        if !self.virtual_time {
            writeln!(f, "\n{}; memory: {}", self.settings.kernel, self.settings.memory)?;
            table(f, &self.thread_rows())?;
            for missing in self.settings.all_missing() {
                writeln!(f, "missing: {missing}")?;
            }
            for note in &self.settings.notes {
                writeln!(f, "note: {note}")?;
            }
        }
        Ok(())
    }
}

/// "1 job", "2 jobs".
fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Prints the guard's findings about the jobs of a task.
fn explain_findings(f: &mut fmt::Formatter<'_>, task: &TaskReport) -> fmt::Result {
    for finding in &task.findings {
        let times = counted(finding.count, "time");
        writeln!(f, "guard: {}: {} {times} in its jobs, first here:", task.name, finding.call)?;
        for frame in &finding.stack {
            writeln!(f, "    {frame}")?;
        }
    }
    Ok(())
}

/// Prints a line on the early releases of a task.
fn explain_early(f: &mut fmt::Formatter<'_>, task: &TaskReport) -> fmt::Result {
    let interval = task.min_interval.map_or(0, |interval| interval.as_ticks());
    let became = match task.on_early {
        Some(OnEarly::Delay) => " and waited",
        Some(OnEarly::Reject) if task.early == 1 => " and was rejected",
        Some(OnEarly::Reject) => " and were rejected",
        _ => "",
    };
    writeln!(
        f,
        "{}: {} came too early{became}: more than {} in {}",
        task.name,
        counted(task.early, "release"),
        task.burst,
        format_nanos(interval as f64)
    )
}

impl Report {
    /// Prints a line on the deadlines that a task missed, with the causes that are certain.
    fn explain_misses(&self, f: &mut fmt::Formatter<'_>, task: &TaskReport) -> fmt::Result {
        let Some(deadline) = task.deadline.filter(|_| task.misses > 0) else { return Ok(()) };
        let deadline = deadline.as_ticks();
        let nanos = |ns: u64| format_nanos(ns as f64);
        write!(
            f,
            "{}: {} of {} missed the deadline of {}",
            task.name,
            task.misses,
            counted(task.jobs, "job"),
            nanos(deadline)
        )?;
        let suspends = task.self_suspensions > 0;
        let asleep = task.suspension_max > deadline;
        if task.jitter.max > deadline {
            write!(f, "; one of them started {} late", nanos(task.jitter.max))?;
        } else if asleep {
            write!(f, "; one of them was suspended for {}", nanos(task.suspension_max))?;
        } else if task.execution.max > deadline {
            write!(f, "; one of them took {} from start to end", nanos(task.execution.max))?;
        } else if suspends {
            let jobs = counted(task.self_suspensions, "job");
            write!(f, "; {jobs} suspended themselves, for up to {}", nanos(task.suspension_max))?;
        }
        writeln!(f)?;
        if suspends {
            writeln!(f, "    PUNCTUAL_GUARD=report names the calls in which its jobs wait")?;
        }
        if !(self.virtual_time || asleep) {
            writeln!(f, "    `punctual trace record` and `report` show which threads had the CPU")?;
        }
        Ok(())
    }

    fn task_rows(&self) -> Vec<Vec<String>> {
        let several = self.tasks.iter().any(|task| task.partition.is_some());
        let suspended = self.tasks.iter().any(|task| task.self_suspensions > 0);
        let mut head = Vec::from([
            "task", "level", "jobs", "J max", "p99.9", "p50", "R max", "p99.9", "p50", "C max", "overruns",
            "misses",
        ]);
        if suspended {
            head.extend(["suspended", "max"]);
        }
        if several {
            head.insert(1, "partition");
        }
        let rows = self.tasks.iter().map(|task| {
            let known = |figure: String| if task.measured { figure } else { UNKNOWN.to_owned() };
            let mut row = vec![task.name.clone(), task.level.to_string(), known(task.jobs.to_string())];
            if several {
                row.insert(1, task.partition.clone().unwrap_or_default());
            }
            for quantity in [&task.jitter, &task.response] {
                let values = [quantity.max, quantity.p999, quantity.p50];
                row.extend(values.map(|ns| known(format_nanos(ns as f64))));
            }
            row.push(known(format_nanos(task.execution.max as f64)));
            row.push(task.overruns.to_string());
            row.push(known(task.misses.to_string()));
            if suspended {
                row.push(known(task.self_suspensions.to_string()));
                row.push(known(format_nanos(task.suspension_max as f64)));
            }
            row
        });
        std::iter::once(head.into_iter().map(str::to_owned).collect()).chain(rows).collect()
    }

    fn thread_rows(&self) -> Vec<Vec<String>> {
        let head = ["thread", "policy", "priority", "CPUs", "stack used", "of"].map(str::to_owned).to_vec();
        let rows = self.settings.threads.iter().map(|thread| {
            vec![
                thread.thread.clone(),
                thread.policy.clone(),
                thread.priority.to_string(),
                thread.cpus.clone(),
                kib(thread.stack_used),
                kib(thread.stack),
            ]
        });
        std::iter::once(head).chain(rows).collect()
    }
}

/// Placeholder of an unknown value.
const UNKNOWN: &str = "–";

/// Formats a size in KiB, rounded up.
fn kib(bytes: Option<usize>) -> String {
    bytes.map_or_else(|| "unknown".into(), |bytes| format!("{} KiB", bytes.div_ceil(1024)))
}

/// Prints rows under a header; the first column is left-aligned, the others right-aligned.
fn table(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        if number == 0 {
            writeln!(f, "{}", "─".repeat(widths.iter().sum::<usize>() + 2 * (columns - 1)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines of a report on a task with a deadline of 80 µs, of which two jobs of ten
    /// missed it.
    fn lines_on(jitter: u64, execution: u64) -> Vec<String> {
        let summary = |max| Summary { max, ..Summary::default() };
        let task = TaskReport {
            name: "late".into(),
            jobs: 10,
            misses: 2,
            deadline: Some(Duration::from_micros(80)),
            jitter: summary(jitter),
            response: summary(jitter + execution),
            execution: summary(execution),
            ..TaskReport::default()
        };
        let text = Report { tasks: vec![task], virtual_time: true, ..Report::default() }.to_string();
        text.lines().filter(|line| line.starts_with("late:")).map(str::to_owned).collect()
    }

    #[test]
    fn explains_misses_by_what_is_certain() {
        let missed = "late: 2 of 10 jobs missed the deadline of 80.0 µs";
        assert_eq!(lines_on(90_000, 5_000), [format!("{missed}; one of them started 90.0 µs late")]);
        assert_eq!(
            lines_on(5_000, 90_000),
            [format!("{missed}; one of them took 90.0 µs from start to end")]
        );
        assert_eq!(lines_on(50_000, 50_000), [missed]);
    }

    #[test]
    fn tells_of_releases_that_came_too_early_and_what_became_of_them() {
        let line = |on_early, early| {
            let min_interval = Some(Duration::from_millis(5));
            let task = TaskReport {
                name: "button".into(),
                burst: 2,
                min_interval,
                early,
                on_early: Some(on_early),
                ..TaskReport::default()
            };
            let text = Report { tasks: vec![task], virtual_time: true, ..Report::default() }.to_string();
            text.lines().find(|line| line.starts_with("button:")).map(str::to_owned)
        };
        let expected = "button: 7 releases came too early and were rejected: more than 2 in 5.00 ms";
        assert_eq!(line(OnEarly::Reject, 7).as_deref(), Some(expected));
        assert_eq!(line(OnEarly::Delay, 7), Some(expected.replace("were rejected", "waited")));
        assert_eq!(line(OnEarly::Count, 7), Some(expected.replace(" and were rejected", "")));
        assert_eq!(line(OnEarly::Count, 0), None);
    }

    #[test]
    fn tells_of_suspensions_only_where_there_are_some() {
        let with = |self_suspensions| {
            let task = TaskReport { self_suspensions, ..TaskReport::default() };
            Report { tasks: vec![task], ..Report::default() }.to_string()
        };
        assert!(with(1).contains("suspended  ") && !with(0).contains("suspended  "));
    }

    #[test]
    fn explains_a_miss_by_sleep_with_the_guard_and_not_with_the_trace() {
        let task = |suspension_max, execution| TaskReport {
            name: "t".into(),
            jobs: 4,
            misses: 4,
            self_suspensions: 4,
            suspension_max,
            deadline: Some(Duration::from_millis(10)),
            execution: Summary { max: execution, ..Summary::default() },
            ..TaskReport::default()
        };
        let explained = |task| {
            let text = Report { tasks: vec![task], ..Report::default() }.to_string();
            let lines = text.lines().skip_while(|line| !line.starts_with("t: "));
            lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
        };
        let slept = explained(task(20_000_000, 100_000));
        assert!(slept.contains("one of them was suspended for 20.0 ms\n"), "{slept}");
        assert!(slept.contains("PUNCTUAL_GUARD=report") && !slept.contains("punctual trace"), "{slept}");
        let both = explained(task(6_000_000, 5_000_000));
        assert!(both.contains("; 4 jobs suspended themselves, for up to 6.00 ms\n"), "{both}");
        assert!(both.contains("PUNCTUAL_GUARD=report") && both.contains("punctual trace"), "{both}");
    }

    #[test]
    fn says_that_figures_are_unknown_instead_of_zero() {
        let task = |measured| TaskReport { name: "t".into(), measured, overruns: 7, ..TaskReport::default() };
        let shows = |measured| Report { tasks: vec![task(measured)], ..Report::default() }.to_string();
        assert!(shows(true).contains("0 ns") && !shows(true).contains(UNKNOWN));
        let unknown = shows(false);
        assert!(unknown.contains("– was not measured"), "{unknown}");
        let row = unknown.lines().find(|line| line.starts_with("t ")).expect("the row of the task");
        let row: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(row[..2], ["t", "0"], "{unknown}");
        assert_eq!(row[2..], [&[UNKNOWN; 8][..], &["7", UNKNOWN]].concat(), "{unknown}");
    }

    #[test]
    fn exit_codes() {
        let ended = |outcome| Report { outcome, ..Report::default() }.exit_code();
        assert_eq!(ended(Outcome::Signal(15)), 0);
        assert_eq!(ended(Outcome::Overrun { task: "t".into() }), 1);
        assert_eq!(ended(Outcome::IdleSource { task: "t".into() }), 1);
        assert_eq!(ended(Outcome::Guard { task: "t".into() }), 1);
        assert_eq!(ended(Outcome::Panicked { task: "t".into(), message: "m".into() }), 101);
    }
}

//! Parts of a report that only a Linux process has: the granted real-time settings, helper
//! processes, and the guard's findings.

use std::fmt;

pub use crate::port::linux::settings::ThreadSettings;
use crate::port::{Count, Nanos};
use crate::report::display::counted;
use crate::report::table::{self, Column};
use crate::report::{Report, TaskReport};

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

/// The state of a grid that follows an [external clock](crate::ExternalClock).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockState {
    /// There was no usable reading in this run, or the last one lies in the future: the grid runs
    /// on the clock of the machine.
    #[default]
    Never,
    /// The grid approaches its phase, by at most 0.1 % of the period at each release.
    Locking,
    /// The releases are at the multiples of the period on the external clock.
    Locked,
    /// Readings are missing: the grid continues at the last rate.
    HoldOver,
}

impl ClockState {
    /// All states.
    pub(crate) const ALL: [Self; 4] = [Self::Never, Self::Locking, Self::Locked, Self::HoldOver];
}

/// The external clock that a task's grid followed, with `clock = …`. Unknown figures are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClockReport {
    /// Name of the clock in the source.
    pub clock: &'static str,
    /// State after the last job.
    pub state: ClockState,
    /// Drift of the external clock against the machine's, in ppb; positive if it runs faster.
    pub drift_ppb: Option<i64>,
    /// Phase error after the last job, by the last reading, in ns; positive if releases are late.
    pub phase_ns: Option<i64>,
    /// The largest phase error while the grid was locked, in ns, without its sign.
    pub phase_max_ns: Option<u64>,
    /// Number of steps of the external clock.
    pub steps: u64,
    /// Number of times that the grid went into hold-over.
    pub hold_overs: u64,
}

impl ClockReport {
    /// Prints the state of the grid of `task`.
    fn explain(&self, f: &mut fmt::Formatter<'_>, task: &str) -> fmt::Result {
        let clock = self.clock;
        match self.state {
            ClockState::Never => {
                return writeln!(
                    f,
                    "{task}: {clock} had no usable reading, so the grid ran on the machine's clock"
                );
            }
            ClockState::Locking => write!(f, "{task}: locking to {clock}")?,
            ClockState::Locked => write!(f, "{task}: locked to {clock}")?,
            ClockState::HoldOver => {
                write!(f, "{task}: in hold-over, because readings of {clock} are missing")?
            }
        }
        if let Some(drift) = self.drift_ppb {
            let sign = if drift < 0 { '−' } else { '+' };
            write!(f, "; drift {sign}{} ppb", Count(drift.unsigned_abs()))?;
        }
        match self.phase_ns {
            Some(phase) if phase < 0 => write!(f, "; phase error −{}", Nanos(phase.unsigned_abs()))?,
            Some(phase) => write!(f, "; phase error {}", Nanos(phase.unsigned_abs()))?,
            None => write!(f, "; phase error unknown")?,
        }
        self.phase_max_ns.iter().try_for_each(|max| write!(f, ", at most {} while locked", Nanos(*max)))?;
        writeln!(f, "; {}, {}", counted(self.steps, "step"), counted(self.hold_overs, "hold-over"))
    }
}

/// Prints the external clock of a task.
pub(crate) fn explain_clock(f: &mut fmt::Formatter<'_>, task: &TaskReport) -> fmt::Result {
    task.clock.iter().try_for_each(|clock| clock.explain(f, task.name))
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
    /// Returns all missing settings, each once with the remedy and the names of the threads that it
    /// concerns, if any.
    pub fn all_missing(&self) -> Vec<String> {
        let mut by_threads: Vec<(&str, Vec<&str>)> = Vec::new();
        for thread in &self.threads {
            for what in &thread.missing {
                match by_threads.iter_mut().find(|(other, _)| other == what) {
                    Some((_, threads)) => threads.push(&thread.thread),
                    None => by_threads.push((what, vec![&thread.thread])),
                }
            }
        }
        let by_threads = by_threads.into_iter().map(|(what, threads)| {
            let s = if threads.len() == 1 { "" } else { "s" };
            format!("thread{s} {}: {what}", threads.join(", "))
        });
        self.missing.iter().cloned().chain(by_threads).collect()
    }
}

/// Starts and ends of a [helper process](crate::background::HelperProcess).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HelperReport {
    /// File name of the program.
    pub name: String,
    /// Number of starts.
    pub starts: u64,
    /// Number of ends that the app had not requested.
    pub ends: u64,
    /// Exit status or signal of the last of these, if the kernel reported it.
    pub last_end: Option<String>,
    /// Number of the process, if it runs.
    pub process: Option<u32>,
}

impl fmt::Display for HelperReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (starts, ends) = (counted(self.starts, "start"), counted(self.ends, "end"));
        write!(f, "helper process {}: {starts}, {ends} that the app had not requested", self.name)?;
        self.last_end.iter().try_for_each(|end| write!(f, "; the last: {end}"))
    }
}

/// The columns of the threads.
const COLUMNS: [Column<ThreadSettings>; 6] = [
    Column::new("thread", |thread: &ThreadSettings, to| to.write_str(&thread.thread)),
    Column::new("policy", |thread: &ThreadSettings, to| to.write_str(&thread.policy)),
    Column::new("priority", |thread: &ThreadSettings, to| write!(to, "{}", thread.priority)),
    Column::new("CPUs", |thread: &ThreadSettings, to| to.write_str(&thread.cpus)),
    Column::new("stack used", |thread: &ThreadSettings, to| kib(to, thread.stack_used)),
    Column::new("of", |thread: &ThreadSettings, to| kib(to, thread.stack)),
];

/// Prints the threads, the missing settings and the notes.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}; memory: {}", self.kernel, self.memory)?;
        table::write(f, &COLUMNS, &self.threads)?;
        self.all_missing().iter().try_for_each(|missing| writeln!(f, "missing: {missing}"))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

/// Prints a size in KiB, rounded up.
fn kib(to: &mut dyn fmt::Write, bytes: Option<usize>) -> fmt::Result {
    match bytes {
        Some(bytes) => write!(to, "{} KiB", Count(bytes.div_ceil(1024) as u64)),
        None => to.write_str("unknown"),
    }
}

/// Prints the guard's findings about the jobs of a task.
pub(crate) fn explain_findings(f: &mut fmt::Formatter<'_>, task: &TaskReport) -> fmt::Result {
    for finding in &task.findings {
        let times = counted(finding.count, "time");
        writeln!(f, "guard: {}: {} {times} in its jobs, first here:", task.name, finding.call)?;
        for frame in &finding.stack {
            writeln!(f, "    {frame}")?;
        }
    }
    Ok(())
}

/// Prints the helper processes of a run.
pub(crate) fn write_helpers(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    report.helpers.iter().try_for_each(|helper| writeln!(f, "{helper}"))
}

/// Prints the command that shows why jobs were late.
pub(crate) fn write_trace_command(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let program = std::env::args_os().next().unwrap_or_else(|| "./my-app".into());
    let program = program.display();
    writeln!(
        f,
        "to see which threads had the CPU, run `punctual trace record -- {program}` as root; it names the command \
         for the report"
    )
}

/// Prints the granted settings of a run.
pub(crate) fn write_settings(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    write!(f, "{}", report.settings)
}

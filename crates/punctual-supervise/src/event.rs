//! The events that a supervisor reports.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use punctual_report::format::format_nanos;

/// An event. Its `Display` output is one human-readable line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The app was started.
    Started {
        /// The process ID.
        process: u32,
    },
    /// The app has declared its tasks, and is supervised.
    Watches {
        /// The app's name.
        app: String,
        /// The tasks with a budget.
        budgets: Vec<String>,
        /// The interval between checks.
        interval: Duration,
    },
    /// A job has used more CPU time than its budget.
    OverBudget {
        /// The task.
        task: String,
        /// The level.
        level: u32,
        /// The CPU time that it has used.
        executed: Duration,
        /// The time since its start, without jobs of higher levels of its partition.
        elapsed: Duration,
        /// The CPU time that it may use.
        budget: Duration,
        /// The action.
        action: Action,
        /// The file with its stack, if it can be written.
        snapshot: Option<PathBuf>,
    },
    /// A job has been in progress for longer than its budget, and has used less CPU time: it was
    /// preempted by other threads or the kernel, or it waits. Reported once per job, and at most
    /// once a second per task.
    Displaced {
        /// The task.
        task: String,
        /// The level.
        level: u32,
        /// The CPU time that it has used.
        executed: Duration,
        /// The time since its start, without jobs of higher levels of its partition.
        elapsed: Duration,
        /// The CPU time that it may use.
        budget: Duration,
        /// The current state of its thread.
        state: String,
    },
    /// A signal ends the app.
    Crash {
        /// The signal.
        signal: i32,
        /// The task of the running job, if any.
        task: Option<String>,
        /// The thread that received the signal.
        thread: u32,
        /// The file with its stack, if it can be written.
        snapshot: Option<PathBuf>,
    },
    /// The process was stopped, by SIGSTOP for example.
    Paused,
    /// The process was continued.
    Continued,
    /// The process is killed.
    Kills {
        /// The reason.
        why: String,
    },
    /// The app has ended.
    Ended {
        /// The exit status.
        status: ExitStatus,
        /// `true` if the kernel's OOM killer killed it.
        out_of_memory: bool,
    },
    /// The app will be restarted.
    Restarts {
        /// The delay.
        after: Duration,
    },
    /// An operation failed, or is not possible here.
    Lacks {
        /// The operation, and the reason.
        what: String,
    },
}

/// The action taken when a job exceeds its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Reports only.
    Report,
    /// Asks the app to stop.
    Stop,
    /// Kills the process.
    Kill,
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let seen = |f: &mut Formatter<'_>, snapshot: &Option<PathBuf>| match snapshot {
            Some(path) => write!(f, "; its stack: {}", path.display()),
            None => Ok(()),
        };
        match self {
            Self::Started { process } => write!(f, "started, process {process}"),
            Self::Watches { app, budgets, interval } if budgets.is_empty() => {
                write!(f, "watches {app}, none of whose tasks has a budget, every {}", nanos(*interval))
            }
            Self::Watches { app, budgets, interval } => {
                write!(f, "watches {app} every {}; with a budget: {}", nanos(*interval), budgets.join(", "))
            }
            Self::OverBudget { task, level, executed, elapsed, budget, action, snapshot } => {
                let (executed, elapsed, budget) = (nanos(*executed), nanos(*elapsed), nanos(*budget));
                write!(f, "a job of {task}, level {level}, has used {executed} of CPU time in {elapsed}; ")?;
                write!(f, "its budget is {budget}")?;
                f.write_str(match action {
                    Action::Report => "",
                    Action::Stop => "; the app is asked to stop",
                    Action::Kill => "; the process is killed",
                })?;
                seen(f, snapshot)
            }
            Self::Displaced { task, level, executed, elapsed, budget, state } => {
                let (executed, elapsed, budget) = (nanos(*executed), nanos(*elapsed), nanos(*budget));
                write!(f, "a job of {task}, level {level}, has had the CPU for {executed} of {elapsed}, ")?;
                write!(f, "within its budget of {budget}; {state}")
            }
            Self::Crash { signal, task, thread, snapshot } => {
                match task {
                    Some(task) => write!(f, "{} in a job of {task}, thread {thread}", signal_name(*signal))?,
                    None => write!(f, "{} in thread {thread}", signal_name(*signal))?,
                }
                seen(f, snapshot)
            }
            Self::Paused => f.write_str("the process was stopped by a signal"),
            Self::Continued => f.write_str("the process continues"),
            Self::Kills { why } => write!(f, "kills the process: {why}"),
            Self::Ended { out_of_memory: true, .. } => {
                f.write_str("ended: killed by the kernel, out of memory")
            }
            Self::Ended { status, .. } => write!(f, "ended: {status}"),
            Self::Restarts { after } => write!(f, "restarts in {}", nanos(*after)),
            Self::Lacks { what } => f.write_str(what),
        }
    }
}

fn nanos(duration: Duration) -> String {
    format_nanos(duration.as_nanos() as f64)
}

/// Returns the name of a signal that ends programs.
pub(crate) fn signal_name(signal: i32) -> String {
    let known = match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGABRT => "SIGABRT",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        _ => return format!("signal {signal}"),
    };
    known.to_owned()
}

/// The error of [`supervise`](crate::supervise).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuperviseError {
    /// The program cannot be started.
    #[error("{program}: {error}")]
    Start {
        /// The program.
        program: String,
        /// The reason.
        error: io::Error,
    },
    /// The system rejects an operation that supervision requires.
    #[error("{attempt}: {error}")]
    System {
        /// The operation.
        attempt: &'static str,
        /// The reason.
        error: io::Error,
    },
}

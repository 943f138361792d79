//! What a supervisor tells.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use punctual_report::format::format_nanos;

/// Something that happened. As text, one line for people.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The app was started.
    Started {
        /// Its process.
        process: u32,
    },
    /// The app has said what it is, and is watched.
    Watches {
        /// Its name.
        app: String,
        /// The tasks with a budget.
        budgets: Vec<String>,
        /// How often the supervisor looks.
        interval: Duration,
    },
    /// A job has used more CPU time than its budget.
    OverBudget {
        /// Its task.
        task: String,
        /// Its level.
        level: u32,
        /// The CPU time that it has used.
        executed: Duration,
        /// The time since its start, without jobs of higher levels of its partition.
        elapsed: Duration,
        /// The CPU time that it may use.
        budget: Duration,
        /// What is done about it.
        action: Action,
        /// Where its stack is written, if that can be.
        snapshot: Option<PathBuf>,
    },
    /// A job has been in progress for longer than its budget, and has used less CPU time: other threads or the kernel displaced it, or
    /// it waits. Told once for a job, and at most once a second for a task.
    Displaced {
        /// Its task.
        task: String,
        /// Its level.
        level: u32,
        /// The CPU time that it has used.
        executed: Duration,
        /// The time since its start, without jobs of higher levels of its partition.
        elapsed: Duration,
        /// The CPU time that it may use.
        budget: Duration,
        /// What its thread does now.
        state: String,
    },
    /// A signal ends the app.
    Crash {
        /// The signal.
        signal: i32,
        /// The task of the job that ran, if one did.
        task: Option<String>,
        /// The thread that got it.
        thread: u32,
        /// Where its stack is written, if that can be.
        snapshot: Option<PathBuf>,
    },
    /// Somebody has stopped the process, by SIGSTOP for example.
    Paused,
    /// It goes on.
    Continued,
    /// The process is killed.
    Kills {
        /// Why.
        why: String,
    },
    /// The app has ended.
    Ended {
        /// How.
        status: ExitStatus,
        /// Whether the kernel killed it for want of memory.
        out_of_memory: bool,
    },
    /// The app is started again.
    Restarts {
        /// After this time.
        after: Duration,
    },
    /// Something could not be done.
    Lacks {
        /// What, and why.
        what: String,
    },
}

/// What is done about a job beyond its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing more.
    Report,
    /// The app is asked to stop.
    Stop,
    /// The process is killed.
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
            Self::Paused => f.write_str("somebody has stopped the process"),
            Self::Continued => f.write_str("the process goes on"),
            Self::Kills { why } => write!(f, "kills the process: {why}"),
            Self::Ended { out_of_memory: true, .. } => {
                f.write_str("ended: the kernel killed it for want of memory")
            }
            Self::Ended { status, .. } => write!(f, "ended: {status}"),
            Self::Restarts { after } => write!(f, "starts again in {}", nanos(*after)),
            Self::Lacks { what } => f.write_str(what),
        }
    }
}

fn nanos(duration: Duration) -> String {
    format_nanos(duration.as_nanos() as f64)
}

/// The name of a signal that ends programs.
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

/// Why an app cannot be supervised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuperviseError {
    /// The program cannot be started.
    #[error("{program}: {error}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// The system refuses something without which nothing can be watched.
    #[error("{attempt}: {error}")]
    System {
        /// What was attempted.
        attempt: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

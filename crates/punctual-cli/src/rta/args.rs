//! The command line of `punctual rta`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use punctual_analysis::time::Ratio;

use crate::parse::seconds;
use crate::trace::parse::Deadline;

/// Bound the response time of every task, and show the margin to each deadline
///
/// The task set is written by hand, in TOML or JSON, or comes from an app: its declared model and
/// the profile of a run. From a recording alone, a model of every real-time thread is inferred.
/// docs/book/src/reference/taskset.md explains all three. Exits with 0 if every deadline is met, 1
/// if not, 2 if the input is invalid or a task has no bound.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual rta tasks.toml                              analyze a task set written by hand
  punctual rta tasks.toml --scale 1.2 --fail-under 10% the same with C 20 % longer; fail if less than 10 % is left
  punctual rta tasks.toml --assign                     find levels
  punctual rta --model m.json --profile p.json         analyze an app's model and a measured run
  punctual rta tasks.toml --profile p.json             compare a task set with a run: which values it exceeded
  punctual rta -- ./my-app                             run the app for 5 s to measure it
  punctual rta --trace trace.dat                       infer a model of every real-time thread of a recording
  punctual rta --trace t.dat --model m.json --profile p.json
                                                       add interrupts and other threads of a recording to an app")]
pub(crate) struct Rta {
    /// Task set in TOML or JSON
    #[arg(value_name = "MODEL.toml", conflicts_with_all = ["model", "command"])]
    pub(super) file: Option<PathBuf>,

    /// Model written by an app with PUNCTUAL_MODEL=FILE
    #[arg(long, value_name = "FILE", requires = "profile", conflicts_with = "command")]
    pub(super) model: Option<PathBuf>,

    /// Profile written by an app with PUNCTUAL_PROFILE=FILE, at its end; with a task set, lists the
    /// values that were exceeded
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(super) profile: Option<PathBuf>,

    /// Recording made by `punctual trace record`; with --model and --profile, adds the other
    /// activity on the CPUs
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["file", "command", "assign"])]
    pub(super) trace: Option<PathBuf>,

    /// Definition of a job of a recorded thread
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Jobs::Auto, requires = "trace")]
    pub(super) jobs: Jobs,

    /// Deadline of a recorded thread, from release to end; may be repeated
    #[arg(long = "deadline", value_name = "NAME=US", requires = "trace")]
    pub(super) deadlines: Vec<Deadline>,

    /// Use as C the time that a job exceeds with this probability, such as 1e-9, by a distribution
    /// fitted to the recording
    #[arg(long, value_name = "P", value_parser = probability, requires = "trace", conflicts_with = "model")]
    pub(super) pwcet: Option<f64>,

    /// CPUs of the global executor [default: those of this machine, if the app is run]
    #[arg(long, value_name = "N")]
    pub(super) cpus: Option<u64>,

    /// Leave out a task of the app, as if it had no jobs; may be repeated
    #[arg(long, value_name = "TASK", conflicts_with = "file")]
    pub(super) without: Vec<String>,

    /// Seconds to run the app
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "5")]
    pub(super) seconds: Duration,

    /// Multiply all execution times and critical sections by this factor, such as 1.2
    #[arg(long, value_name = "FACTOR", value_parser = Ratio::parse, default_value = "1")]
    pub(super) scale: Ratio,

    /// Fail unless all execution times can grow by this much, such as 20%
    #[arg(long, value_name = "MARGIN", value_parser = percent)]
    pub(super) fail_under: Option<f64>,

    /// Find levels that meet every deadline, and show what to change
    #[arg(long)]
    pub(super) assign: bool,

    /// Explain every task, not only the tightest
    #[arg(long)]
    pub(super) explain: bool,

    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,

    /// Write the result as an HTML page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,

    /// The app to measure, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// Definition of a job of a recorded thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Jobs {
    /// `timers` if the thread has a periodic timer and its other sleeps are not periodic, else
    /// `sleeps`
    Auto,
    /// From one sleep to the next
    Sleeps,
    /// From one release by a timer to the next; other sleeps are part of the job
    Timers,
}

fn probability(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (1e-15..0.1).contains(number));
    number.ok_or_else(|| "write a probability from 1e-15 to 0.1, such as 1e-9".into())
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').ok_or("write a percentage, such as 20%")?;
    let number: f64 = number.trim_end().parse().map_err(|_| "write a percentage, such as 20%")?;
    if number.is_finite() { Ok(number) } else { Err("write a percentage, such as 20%".into()) }
}

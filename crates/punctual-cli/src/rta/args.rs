//! The command line of `punctual rta`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use punctual_analysis::time::Ratio;
use punctual_isolate::cpus::Cpus;

use crate::output::Json;
use crate::parse::{Deadline, duration};
use crate::trace::args::Futex;

/// Bound the response time of every task, and show the margin to each deadline
///
/// The task set is written by hand, in TOML or JSON, or comes from an app: its declared model and
/// the profile of a run. From a recording alone, a model of every real-time thread is inferred.
/// docs/book/src/reference/taskset.md explains all three.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual rta tasks.toml                         a task set written by hand
  punctual rta tasks.toml --scale 1.2             with C 20 % longer
  punctual rta tasks.toml --fail-under 10%        fail below this margin
  punctual rta tasks.toml --assign                find levels
  punctual rta model.json --profile profile.json  an app, and a measured run
  punctual rta tasks.toml --profile profile.json  values that a run exceeded
  punctual rta -- ./my-app                        run the app for 5 s
  punctual rta --trace trace.dat                  the threads of a recording")]
pub(crate) struct Rta {
    /// Task set in TOML or JSON, or the model that an app wrote with PUNCTUAL_MODEL=FILE
    #[arg(value_name = "TASKS|MODEL", conflicts_with = "command")]
    pub(super) file: Option<PathBuf>,

    /// Profile written by an app with PUNCTUAL_PROFILE=FILE, at its end: required by a model; with
    /// a task set, lists the values that were exceeded
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(super) profile: Option<PathBuf>,

    /// Recording made by `punctual trace record`; with a model, adds the other activity on the CPUs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "assign"])]
    pub(super) trace: Option<PathBuf>,

    /// Definition of a job of a recorded thread
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Jobs::Auto, requires = "trace", conflicts_with = "file")]
    pub(super) jobs: Jobs,

    /// Which futex waits of recorded threads count as blocking, as in `punctual trace report`
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Futex::Auto, requires = "trace")]
    pub(super) futex: Futex,

    /// Deadline from release to end of a recorded thread, or of every one without its own; may be
    /// repeated
    #[arg(long = "deadline", value_name = "[NAME=]TIME", requires = "trace", conflicts_with = "file")]
    pub(super) deadlines: Vec<Deadline>,

    /// Use as C the time that a job exceeds with this probability, such as 1e-9, by a distribution
    /// fitted to the recording
    #[arg(long, value_name = "P", value_parser = probability, requires = "trace", conflicts_with = "file")]
    pub(super) pwcet: Option<f64>,

    /// CPUs of the global executor [default: those of this machine, if the app is run]
    #[arg(long, value_name = "LIST", value_parser = Cpus::checked)]
    pub(super) cpus: Option<Cpus>,

    /// Leave out a task of the app, as if it had no jobs; may be repeated
    #[arg(long, value_name = "TASK")]
    pub(super) without: Vec<String>,

    /// Length of the app's run [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) duration: Option<Duration>,

    /// Multiply all execution times and critical sections by this factor, such as 1.2
    #[arg(long, value_name = "FACTOR", value_parser = factor, default_value = "1")]
    pub(super) scale: Ratio,

    /// Fail unless all execution times can grow by this much, such as 20%
    #[arg(long, value_name = "MARGIN", value_parser = percent)]
    pub(super) fail_under: Option<f64>,

    /// Find levels that meet every deadline, and show what to change
    #[arg(long, conflicts_with_all = ["fail_under", "json", "html"])]
    pub(super) assign: bool,

    #[command(flatten)]
    pub(super) json: Json,

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

fn factor(text: &str) -> Result<Ratio, String> {
    match Ratio::parse(text)? {
        Ratio { numerator: 0, .. } => Err("write a factor above 0, such as 1.2".into()),
        factor => Ok(factor),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').ok_or("write a percentage, such as 20%")?;
    let number: f64 = number.trim_end().parse().map_err(|_| "write a percentage, such as 20%")?;
    if number.is_finite() { Ok(number) } else { Err("write a percentage, such as 20%".into()) }
}

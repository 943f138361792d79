//! The command line of `punctual rta`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use punctual_analysis::time::Ratio;

use crate::args::seconds;
use crate::trace::parse::Deadline;

/// Bound the response time of every task, and say by how much deadlines are met
///
/// A task set is written by hand, in TOML or JSON (docs/analysis.md), or comes from an app: its declared model and the
/// profile of a run. Of a recording alone, a model of every real-time thread is inferred (docs/analysis.md). Exits with 0 if every deadline is met, 1 if not, 2 if the input is wrong or a task has no bound.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual rta tasks.toml                              a task set written by hand
  punctual rta tasks.toml --scale 1.2 --fail-under 10% with C 20 % longer, at least 10 % are to be left
  punctual rta tasks.toml --assign                     finds levels
  punctual rta --model m.json --profile p.json         what an app declares, and a run of it has measured
  punctual rta -- ./my-app                             runs the app for 5 s to measure it
  punctual rta --trace trace.dat                       infers a model of every real-time thread of a recording
  punctual rta --trace t.dat --model m.json --profile p.json
                                                       the app, with interrupts and other threads of the recording")]
pub(crate) struct Rta {
    /// Task set in TOML or JSON
    #[arg(value_name = "MODEL.toml", conflicts_with_all = ["model", "profile", "command"])]
    pub(super) file: Option<PathBuf>,

    /// Model that an app has written, by PUNCTUAL_MODEL=FILE
    #[arg(long, value_name = "FILE", requires = "profile", conflicts_with = "command")]
    pub(super) model: Option<PathBuf>,

    /// Profile that an app has written at its end, by PUNCTUAL_PROFILE=FILE
    #[arg(long, value_name = "FILE", requires = "model", conflicts_with = "command")]
    pub(super) profile: Option<PathBuf>,

    /// Recording of any program, by punctual trace record; with --model and --profile it adds what else ran on the CPUs
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["file", "command", "assign"])]
    pub(super) trace: Option<PathBuf>,

    /// What a job of a recorded thread is
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Jobs::Auto, requires = "trace")]
    pub(super) jobs: Jobs,

    /// Deadline of a recorded thread, from release to end; may be repeated
    #[arg(long = "deadline", value_name = "NAME=US", requires = "trace")]
    pub(super) deadlines: Vec<Deadline>,

    /// Take for C what a job exceeds with this probability, by a distribution fitted to the recorded ones, such as 1e-9
    #[arg(long, value_name = "P", value_parser = probability, requires = "trace", conflicts_with = "model")]
    pub(super) pwcet: Option<f64>,

    /// CPUs of the global executor [default: as many as there are here, if the app is run]
    #[arg(long, value_name = "N")]
    pub(super) cpus: Option<u64>,

    /// Leave out a task of the app, which then has no jobs; may be repeated
    #[arg(long, value_name = "TASK", conflicts_with = "file")]
    pub(super) without: Vec<String>,

    /// How long to run the app
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "5")]
    pub(super) seconds: Duration,

    /// Multiply every execution time and hold by this factor first, such as 1.2
    #[arg(long, value_name = "FACTOR", value_parser = Ratio::parse, default_value = "1")]
    pub(super) scale: Ratio,

    /// Fail unless all executions may grow by so much, such as 20%
    #[arg(long, value_name = "MARGIN", value_parser = percent)]
    pub(super) fail_under: Option<f64>,

    /// Find levels that meet every deadline, and say what to change
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

/// What a job of a recorded thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Jobs {
    /// What lies between timers if these are periodic and other sleeps are not; else what lies between sleeps
    Auto,
    /// What lies between two sleeps
    Sleeps,
    /// What lies between two releases by a timer; other sleeps are part of the job
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

//! The command line of `punctual rta`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use punctual_analysis::time::Ratio;

use crate::args::seconds;

/// Bound the response time of every task, and say by how much deadlines are met
///
/// A task set is written by hand, in TOML or JSON (docs/analysis.md), or comes from an app: its declared model and the
/// profile of a run. Exits with 0 if every deadline is met, 1 if not, 2 if the input is wrong or a task has no bound.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual rta tasks.toml                              a task set written by hand
  punctual rta tasks.toml --scale 1.2 --fail-under 10% with C 20 % longer, at least 10 % are to be left
  punctual rta tasks.toml --assign                     finds levels
  punctual rta --model m.json --profile p.json         what an app declares, and a run of it has measured
  punctual rta -- ./my-app                             runs the app for 5 s to measure it")]
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

    /// CPUs of the global executor [default: as many as there are here, if the app is run]
    #[arg(long, value_name = "N")]
    pub(super) cpus: Option<u64>,

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

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').ok_or("write a percentage, such as 20%")?;
    let number: f64 = number.trim_end().parse().map_err(|_| "write a percentage, such as 20%")?;
    if number.is_finite() { Ok(number) } else { Err("write a percentage, such as 20%".into()) }
}

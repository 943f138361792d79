//! The command line of `punctual check`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use punctual_analysis::time::Nanos;

use crate::output::Json;
use crate::parse::{Deadline, duration, nonzero};

/// Answer whether an app is on time here, by how much, and if not, why
///
/// Runs an app, examines the machine while it runs, and compares the declared, measured and proven
/// times of every task. Any other real-time program is recorded instead, which needs root. Without
/// a command, a periodic probe answers whether this machine holds --period. docs/check-schema.json
/// describes the JSON.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual check                                   does this machine hold 1 kHz?
  punctual check --period 100us --deadline 50us    the same at 10 kHz
  punctual check -- ./my-app                       is this app on time here?
  sudo punctual check --deadline 1ms -- cyclictest -p 80
      any other program
  punctual check --trace t.dat --machine m.txt --deadline control=2ms
      a recording, and its machine")]
pub(crate) struct Check {
    /// Period of the probe
    #[arg(long, value_name = "TIME", value_parser = nonzero, default_value = "1ms", conflicts_with_all = ["command", "trace"])]
    pub(super) period: Nanos,

    /// Deadline from release to end: of the probe, of every real-time thread of a program, or of
    /// the task NAME; may be repeated [default: as declared; the period for the probe]
    #[arg(long = "deadline", value_name = "[NAME=]TIME")]
    pub(super) deadlines: Vec<Deadline>,

    /// Length of the run
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s", conflicts_with = "trace")]
    pub(super) duration: Duration,

    /// Check a recording made by `punctual trace record` instead of running anything
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(super) trace: Option<PathBuf>,

    /// Examine the settings that `punctual doctor --record` saved instead of this machine
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(super) machine: Option<PathBuf>,

    #[command(flatten)]
    pub(super) json: Json,

    /// Write the result as an HTML page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,

    /// The app or program, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

impl Check {
    /// Returns the deadline of a task, if the command line gives one.
    pub(super) fn deadline_of(&self, task: &str) -> Option<Nanos> {
        Deadline::find(&self.deadlines, |name| name == task)
    }
}

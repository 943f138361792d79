//! The command line of `punctual check`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use punctual_analysis::time::{Nanos, parse};

/// Answer whether an app is on time here, by how much, and if not, why
///
/// Runs an app, examines the machine while it runs, and compares the declared, measured and proven
/// times of every task. Any other real-time program is recorded instead, which needs root. Without
/// a command, a periodic probe answers whether this machine holds --period. Exits with 0 for yes, 1
/// for no, 2 if the answer is unknown or the command line is invalid.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual check                                   does this machine hold 1 kHz?
  punctual check --period 100us --deadline 50us    the same at 10 kHz
  punctual check -- ./my-app                       is this app on time here?
  sudo punctual check --deadline 1ms -- cyclictest -p 80
                                                   a program that is not of Punctual
  punctual check --trace t.dat --machine m.txt --deadline control=2ms
                                                   a recording, and the machine it is from")]
pub(crate) struct Check {
    /// Period of the probe
    #[arg(long, value_name = "TIME", value_parser = nonzero, default_value = "1ms", conflicts_with_all = ["command", "trace"])]
    pub(super) period: Nanos,

    /// Deadline from release to end: of the probe, of every real-time thread of a program, or of
    /// the task NAME; may be repeated [default: as declared; the period for the probe]
    #[arg(long = "deadline", value_name = "[NAME=]TIME", value_parser = deadline)]
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

    /// Write the result as JSON (format: docs/check-schema.json), to standard output instead of the
    /// text if no file is given
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(super) json: Option<PathBuf>,

    /// Write the result as an HTML page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,

    /// The app or program, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// A deadline from release to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deadline {
    /// The task; `None` applies to every task.
    pub(super) task: Option<String>,
    pub(super) ns: Nanos,
}

fn deadline(text: &str) -> Result<Deadline, String> {
    let (task, time) = match text.rsplit_once('=') {
        Some((task, time)) if !task.is_empty() => (Some(task.to_owned()), time),
        Some(_) => return Err(format!("`{text}` names no task; write NAME=TIME, such as control=2ms")),
        None => (None, text),
    };
    Ok(Deadline { task, ns: nonzero(time)? })
}

fn nonzero(text: &str) -> Result<Nanos, String> {
    match parse(text)? {
        0 => Err(format!("`{text}` is no time to be late after; write 1ns or more")),
        ns => Ok(ns),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    nonzero(text).map(Duration::from_nanos)
}

impl Check {
    /// Returns the deadline of a task, if the command line gives one. The last one applies.
    pub(super) fn deadline_of(&self, task: &str) -> Option<Nanos> {
        let named = |deadline: &&Deadline| deadline.task.as_deref() == Some(task);
        self.deadlines.iter().rev().find(named).map(|deadline| deadline.ns).or_else(|| self.deadline_of_all())
    }

    /// Returns the deadline of every task, if the command line gives one.
    pub(super) fn deadline_of_all(&self) -> Option<Nanos> {
        self.deadlines.iter().rev().find(|deadline| deadline.task.is_none()).map(|deadline| deadline.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_deadlines_with_and_without_a_task() {
        assert_eq!(deadline("500us"), Ok(Deadline { task: None, ns: 500_000 }));
        assert_eq!(deadline("a=b=2ms"), Ok(Deadline { task: Some("a=b".into()), ns: 2_000_000 }));
        for (text, part) in
            [("=1ms", "no task"), ("a=0s", "1ns or more"), ("5", "no unit"), ("a=", "no time")]
        {
            let error = deadline(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

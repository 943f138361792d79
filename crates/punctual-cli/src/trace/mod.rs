//! `punctual trace`: records, explains and watches the time of jobs.

mod alarm;
mod analysis;
pub(crate) mod args;
mod chains;
pub(crate) mod child;
mod chosen;
mod latency;
mod lines;
mod merge;
pub(crate) mod names;
mod outputs;
pub(crate) mod parse;
mod reading;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod signals;
pub(crate) mod text;
mod watch;
mod window;

use std::path::Path;
use std::process::ExitCode;

use punctual_trace::read;

use self::args::{Command, Trace};
pub(crate) use self::child::MARKS;
pub(crate) use self::merge::marker;
use crate::output::message;
use crate::status::{BAD_INPUT, FINDING as FAILED};

/// Failure of a command: the message and the exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    code: u8,
}

impl Failure {
    /// Creates a failure for an invalid command line.
    fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: BAD_INPUT }
    }
}

impl<T: std::fmt::Display> From<T> for Failure {
    fn from(error: T) -> Self {
        Self { message: error.to_string(), code: FAILED }
    }
}

/// Opens a recording; one that is missing or invalid is an invalid input.
fn open(path: &Path) -> Result<read::Trace, Failure> {
    read::Trace::open(path).map_err(|error| Failure::usage(error.to_string()))
}

pub(crate) fn run(arguments: &Trace) -> ExitCode {
    let result = match &arguments.command {
        Command::Record(arguments) => record::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Convert(arguments) => merge::convert(arguments),
        Command::Merge(arguments) => merge::merge(arguments),
        Command::Exchange(arguments) => merge::exchange(arguments),
        Command::Latency(arguments) => latency::run(arguments),
        Command::Watch(arguments) => watch::run(arguments),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(Failure { message, code }) => {
            message!("error: {message}");
            ExitCode::from(code)
        }
    }
}

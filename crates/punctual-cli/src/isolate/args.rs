//! The command line of `punctual isolate`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use punctual_isolate::cpus::Cpus;

/// Take CPUs from the rest of the system, for real-time threads, and give them back
///
/// Other threads, interrupts, deferred work and packets go elsewhere; everything is as it was when the CPU is given back, also
/// after a crash, by the next `punctual isolate` of any kind. Exits with 0 on success, 1 if something was refused or not given
/// back, 2 if the command line or the request is invalid; `run` exits as the command does.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual isolate plan --cpus 3                  every write, before it is made
  sudo punctual isolate run --cpus 3 -- ./my-app  takes CPU 3, runs the app there, gives it back
  sudo punctual isolate start --cpus 2-3          for services; `stop` gives them back
  punctual isolate boot --cpus 3                  boot parameters, and what they are good for beyond that")]
pub(crate) struct Isolate {
    #[command(subcommand)]
    pub(super) command: What,

    /// The tree in which this directory stands for /
    #[arg(long, value_name = "DIRECTORY", hide = true, global = true)]
    pub(super) root: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum What {
    /// Show every write before it is made
    Plan(Which),
    /// Take CPUs until `stop`
    Start(Which),
    /// Show what is taken, by whom, and what it consists of
    Status,
    /// Give back what `start` took
    Stop,
    /// Take CPUs, run a command on them, give them back, and say what came to them meanwhile
    Run {
        #[command(flatten)]
        which: Which,

        /// Command to run there
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Measure the first of the CPUs by the hourglass before and after it is taken, and give it back
    Verify {
        #[command(flatten)]
        which: Which,

        /// Seconds for each measurement
        #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
        seconds: u32,
    },
    /// Print boot parameters that isolate CPUs, and what they are good for
    Boot(Which),
}

#[derive(Debug, Args)]
pub(super) struct Which {
    /// CPUs to take, such as 3 or 2-3
    #[arg(long, value_name = "LIST", value_parser = Cpus::checked)]
    pub(super) cpus: Cpus,

    /// Switch off other threads of the same cores
    #[arg(long)]
    pub(super) park: bool,
}

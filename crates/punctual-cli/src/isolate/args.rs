//! The command line of `punctual isolate`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use punctual_isolate::cpus::Cpus;

/// Take CPUs from the rest of the system for real-time threads, and give them back
///
/// Moves other threads, interrupts, deferred work and packet processing elsewhere, and restores
/// everything when the CPUs are given back. After a crash, the next `punctual isolate` of any kind
/// does that. Exits with 0 on success, 1 if something was refused or could not be restored, 2 if
/// the command line or the request is invalid; `run` exits with the status of its command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual isolate plan --cpus 3                  show every write without making it
  sudo punctual isolate run --cpus 3 -- ./my-app  take CPU 3, run the app there, give it back
  sudo punctual isolate start --cpus 2-3          take CPUs 2 and 3, for services; `stop` gives them back
  sudo punctual isolate run --offline --cpu 3 -- my-app.bare
                                                  run a program there without Linux (docs/book/src/guides/amp.md)
  sudo punctual isolate run --offline --cpu 3 -- my-app.bare ./my-app
                                                  run a program there and another one on Linux, which share memory
  punctual isolate boot --cpus 3                  show boot parameters, and what they add to that")]
pub(crate) struct Isolate {
    #[command(subcommand)]
    pub(super) command: What,

    /// The tree in which this directory stands for /
    #[arg(long, value_name = "DIRECTORY", hide = true, global = true)]
    pub(super) root: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum What {
    /// Show every write, without making it
    Plan(CpuSelection),
    /// Take CPUs until `stop`
    Start(CpuSelection),
    /// Show what is taken, by whom, and how
    Status,
    /// Give back what `start` took
    Stop,
    /// Take CPUs, run a command on them, give them back, and report what disturbed them
    Run {
        #[command(flatten)]
        which: CpuSelection,

        /// Only count disturbances of the command, without recording, which costs each interruption
        /// some 100 ns
        #[arg(long, conflicts_with = "offline")]
        no_record: bool,

        /// Run a program without Linux on one CPU, which Linux gives up meanwhile: 64-bit ARM, with
        /// the module punctual_cpu
        #[arg(long, conflicts_with = "park")]
        offline: bool,

        /// With --offline: ms without a sign of life of Linux after which the program goes to its
        /// safe state; 0 is never
        #[arg(long, value_name = "MS", default_value_t = 1000, requires = "offline")]
        heartbeat: u32,

        /// With --offline: ms that the program has to end when it is asked to
        #[arg(long, value_name = "MS", default_value_t = 1000, requires = "offline",
            value_parser = clap::value_parser!(u32).range(10..=20_000))]
        grace: u32,

        /// Command to run there
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Run the hourglass on the first CPU before and after taking it, and give it back
    Verify {
        #[command(flatten)]
        which: CpuSelection,

        /// Seconds per measurement
        #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
        seconds: u32,
    },
    /// Print boot parameters that isolate CPUs, with the purpose of each
    Boot(CpuSelection),
}

#[derive(Debug, Args)]
pub(super) struct CpuSelection {
    /// CPUs to take, such as 3 or 2-3
    #[arg(long, visible_alias = "cpu", value_name = "LIST", value_parser = Cpus::checked)]
    pub(super) cpus: Cpus,

    /// Take the other hardware threads of the same cores offline
    #[arg(long)]
    pub(super) park: bool,
}

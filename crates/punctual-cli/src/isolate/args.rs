//! The command line of `punctual isolate`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use punctual_isolate::cpus::Cpus;

use crate::parse::{duration, time};

/// Take CPUs from the rest of the system for real-time threads, and give them back
///
/// Moves other threads, interrupts, deferred work and packet processing elsewhere, and restores
/// everything when the CPUs are given back. Other hardware threads of the same cores are taken
/// offline until then. After a crash, the next `punctual isolate` of any kind gives back what was
/// left.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual isolate plan --cpus 3                  show every write, make none
  sudo punctual isolate run --cpus 3 -- ./my-app  take CPU 3 for an app
  sudo punctual isolate start --cpus 2-3          take CPUs 2 and 3 until `stop`
  punctual isolate boot --cpus 3                  show boot parameters
  sudo punctual isolate run --offline --cpus 3 -- my-app.bare
      a program without Linux
  sudo punctual isolate run --offline --cpus 3 -- my-app.bare ./my-app
      and another on Linux that shares memory with it")]
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

        /// Run a program without Linux on one CPU, which Linux gives up for the run: 64-bit ARM,
        /// with the module punctual_cpu (docs/book/src/guides/amp.md)
        #[arg(long)]
        offline: bool,

        /// With --offline: time without a heartbeat of Linux after which the program goes to its
        /// safe state; 0s is never
        #[arg(long, value_name = "TIME", default_value = "1s", requires = "offline", value_parser = time)]
        heartbeat: Duration,

        /// With --offline: time to end for a program that is asked to, from 10ms to 20s
        #[arg(long, value_name = "TIME", default_value = "1s", requires = "offline", value_parser = grace)]
        grace: Duration,

        /// Command to run there
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Run the hourglass on the first CPU before and after taking it, and give it back
    Verify {
        #[command(flatten)]
        which: CpuSelection,

        /// Length of each measurement
        #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
        duration: Duration,
    },
    /// Print boot parameters that isolate CPUs, with the purpose of each
    Boot(CpuSelection),
}

#[derive(Debug, Args)]
pub(super) struct CpuSelection {
    /// CPUs to take, such as 3 or 2-3
    #[arg(long, value_name = "LIST", value_parser = Cpus::checked)]
    pub(super) cpus: Cpus,
}

fn grace(text: &str) -> Result<Duration, String> {
    let limits = Duration::from_millis(10)..=Duration::from_secs(20);
    time(text).and_then(|time| match limits.contains(&time) {
        true => Ok(time),
        false => Err("give a time from 10ms to 20s".into()),
    })
}

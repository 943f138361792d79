//! The command line of `punctual doctor`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use punctual_isolate::cpus::Cpus;

use crate::output::Json;

/// Find the causes of late real-time threads on this machine, worst first
///
/// Each finding states why it matters, what it costs where that is known, which command fixes it,
/// and whether the fix survives a reboot. docs/doctor-schema.json describes the JSON.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual doctor                        the isolated CPUs, or that of an app
  punctual doctor --cpus 2-3             these CPUs
  punctual doctor -- ./my-app            the CPUs, priorities, devices of an app
  sudo punctual doctor --fix             fix what can be undone, after asking
  sudo punctual doctor --undo            undo it
  punctual doctor --record machine.txt   save the examined data for others
  punctual doctor --machine machine.txt  examine such a file")]
pub(crate) struct Doctor {
    /// CPUs that real-time threads run on, such as 2-3
    #[arg(long, value_name = "LIST", value_parser = Cpus::checked, conflicts_with = "command")]
    pub(super) cpus: Option<Cpus>,

    #[command(flatten)]
    pub(super) json: Json,

    /// Also list every check with its status and value
    #[arg(long, conflicts_with_all = ["json", "undo"])]
    pub(super) all: bool,

    /// Make the changes that can be undone, asking on standard input before each
    #[arg(long, conflicts_with = "json")]
    pub(super) fix: bool,

    /// Undo the changes made by --fix
    #[arg(long, conflicts_with_all = ["json", "fix", "cpus", "record", "machine", "command"])]
    pub(super) undo: bool,

    /// Save the examined files and settings to a file
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Examine a file saved by --record instead of this machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fix", "record", "command"])]
    pub(super) machine: Option<PathBuf>,

    /// The tree in which this directory stands for /
    #[arg(long, value_name = "DIRECTORY", hide = true, conflicts_with_all = ["machine", "command"])]
    pub(super) root: Option<PathBuf>,

    /// Punctual app that the machine has to be fit for; runs it for a second
    #[arg(last = true, value_name = "APP")]
    pub(super) command: Vec<OsString>,
}

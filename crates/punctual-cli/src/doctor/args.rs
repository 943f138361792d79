//! The command line of `punctual doctor`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use punctual_isolate::cpus::Cpus;

/// Find what on this machine stands between a real-time thread and its deadline, worst first
///
/// For each finding it says why it matters, how much time it costs as far as that is known, which command removes it, and
/// whether that survives a reboot. Exits with 0 if the machine is fit, 1 if there are findings, 2 if the command line is
/// invalid or nothing could be examined.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual doctor                           the CPUs that are isolated, or else the one that an app would take
  punctual doctor --cpus 2-3                these CPUs
  punctual doctor -- ./my-app               the CPUs, priorities and devices of this app of Punctual
  sudo punctual doctor --fix                changes what can be changed back, after asking
  sudo punctual doctor --undo               changes it back
  punctual doctor --record machine.txt      what was read, to be sent to somebody
  punctual doctor --machine machine.txt     examines what somebody has sent")]
pub(crate) struct Doctor {
    /// CPUs that real-time threads run on, such as 2-3
    #[arg(long, value_name = "LIST", value_parser = Cpus::checked, conflicts_with = "command")]
    pub(super) cpus: Option<Cpus>,

    /// Print the report as JSON (format: docs/doctor-schema.json)
    #[arg(long, conflicts_with_all = ["fix", "undo"])]
    pub(super) json: bool,

    /// Make the changes that can be undone, asking for each
    #[arg(long)]
    pub(super) fix: bool,

    /// With --fix: make them without asking
    #[arg(long, requires = "fix")]
    pub(super) yes: bool,

    /// Undo what --fix has changed
    #[arg(long, conflicts_with_all = ["fix", "cpus", "record", "machine", "command"])]
    pub(super) undo: bool,

    /// Keep what was read in a file
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Examine such a file instead of this machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fix", "record", "command"])]
    pub(super) machine: Option<PathBuf>,

    /// The tree in which this directory stands for /
    #[arg(long, value_name = "DIRECTORY", hide = true, conflicts_with_all = ["machine", "command"])]
    pub(super) root: Option<PathBuf>,

    /// App of Punctual that the machine is to be fit for; it is run for a second
    #[arg(last = true, value_name = "APP")]
    pub(super) command: Vec<OsString>,
}

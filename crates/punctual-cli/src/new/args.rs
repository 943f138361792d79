//! The command line of `punctual new`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Make a crate to start from: an app with a test in virtual time, a systemd unit and a README
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual new my-controller                     one control loop
  punctual new my-gimbal --template gimbal       two axes that follow setpoints
  punctual new my-app --punctual ~/punctual      with the library of a working copy")]
pub(crate) struct New {
    /// The directory to be made; its last part is the crate's name
    pub(crate) path: PathBuf,

    /// What to start from
    #[arg(long, value_name = "NAME", default_value = "plain")]
    pub(crate) template: Template,

    /// The library in this working copy, instead of the released one
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) punctual: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// A control loop at 1 kHz, and an alarm
    Plain,
    /// A controller of two simulated axes, steered from the standard input
    Gimbal,
}

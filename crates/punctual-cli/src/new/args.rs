//! The command line of `punctual new`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::board::Board;

/// Make a crate to start from: an app with two tests in virtual time, a systemd unit and a README
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual new my-controller                     one control loop
  punctual new my-gimbal --template gimbal       two axes that follow setpoints
  punctual new my-node --template ros2           a node of ROS 2
  punctual new my-board --template bare --board raspi3b
  punctual new my-app --path ~/punctual          with the library of another checkout")]
pub(crate) struct New {
    /// The directory to create; its last component names the crate
    #[arg(value_name = "PATH")]
    pub(crate) directory: PathBuf,

    /// What to start from
    #[arg(long, value_name = "NAME", default_value = "plain")]
    pub(crate) template: Template,

    /// The board of the template `bare` [default: raspi4b]
    #[arg(long, value_name = "BOARD", value_parser = PossibleValuesParser::new(Board::all().map(Board::name)))]
    pub(crate) board: Option<String>,

    /// The checkout of Punctual that the crate depends on [default: the one this command was built
    /// from; if it was installed from a registry, the released version]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// A control loop at 1 kHz, and an alarm
    Plain,
    /// A controller of two simulated axes, steered from the standard input
    Gimbal,
    /// A control loop that is a node of ROS 2
    Ros2,
    /// A task on a board without an operating system
    Bare,
}

//! The command line of `punctual new`.

use std::path::PathBuf;

use clap::Args;

use super::Template;

/// Make a crate to start from: an app with two tests in virtual time, a systemd unit and a README
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual new my-controller                one control loop
  punctual new my-gimbal --template gimbal  two axes that follow setpoints
  punctual new my-node --template ros2      a control loop with topics for ROS 2
  punctual new my-pi --template raspi4b     a board without operating system
  punctual new my-app --path ~/punctual     with the library of another checkout")]
pub(crate) struct New {
    /// The directory to create; its last component names the crate
    #[arg(value_name = "PATH")]
    pub(crate) directory: PathBuf,

    /// What to start from: an app for Linux, or a board without operating system
    #[arg(long, value_name = "NAME", default_value = "plain", value_parser = Template::parser())]
    pub(crate) template: Template,

    /// The checkout of Punctual that the crate depends on [default: the one this command was built
    /// from; if it was installed from a registry, the released version]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) path: Option<PathBuf>,
}

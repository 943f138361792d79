//! The command line of `punctual new`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
    #[arg(long, value_name = "BOARD")]
    pub(crate) board: Option<Board>,

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

/// The boards of `punctual-bare`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "kebab-case")]
pub(crate) enum Board {
    /// Raspberry Pi 2B
    Raspi2b,
    /// Raspberry Pi 3B
    Raspi3b,
    /// Raspberry Pi 4B
    #[default]
    Raspi4b,
    /// QEMU's virtual board with a Cortex-A7
    VirtA7,
    /// QEMU's virtual board with a Cortex-A72
    VirtA72,
}

impl Board {
    /// Returns the feature of `punctual-bare`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Raspi2b => "raspi2b",
            Self::Raspi3b => "raspi3b",
            Self::Raspi4b => "raspi4b",
            Self::VirtA7 => "virt-a7",
            Self::VirtA72 => "virt-a72",
        }
    }

    /// Returns the compiler's target.
    pub(crate) const fn target(self) -> &'static str {
        match self {
            Self::Raspi2b | Self::VirtA7 => "armv7a-none-eabihf",
            Self::Raspi3b | Self::Raspi4b | Self::VirtA72 => "aarch64-unknown-none",
        }
    }

    /// Returns the QEMU command line for it.
    pub(crate) const fn runner(self) -> &'static str {
        match self {
            Self::Raspi2b => "qemu-system-arm -machine raspi2b",
            Self::Raspi3b => "qemu-system-aarch64 -machine raspi3b",
            Self::Raspi4b => "qemu-system-aarch64 -machine raspi4b",
            Self::VirtA7 => "qemu-system-arm -machine virt -cpu cortex-a7",
            Self::VirtA72 => "qemu-system-aarch64 -machine virt -cpu cortex-a72",
        }
    }
}

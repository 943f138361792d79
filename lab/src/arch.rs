//! The processors of guests, and their differences.

use crate::kernels::debs::{self, Debs};
use crate::tools;

/// The processor of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    /// The host's.
    Amd64,
    /// 64-bit ARM, on a host with another processor.
    Arm64,
}

impl Arch {
    /// Returns the name in Debian.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// Returns the output of `uname -m`.
    pub(crate) fn uname(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// Returns the emulator.
    pub(crate) fn qemu(self) -> &'static str {
        match self {
            Self::Amd64 => tools::QEMU,
            Self::Arm64 => "qemu-system-aarch64",
        }
    }

    /// Returns the emulator's options for machine and processor.
    pub(crate) fn machine(self) -> [&'static str; 4] {
        match self {
            Self::Amd64 => ["-M", "q35", "-cpu", "max"],
            // The processor of a Raspberry Pi 4.
            Self::Arm64 => ["-M", "virt,gic-version=3", "-cpu", "cortex-a72"],
        }
    }

    /// Returns the options for another machine: on ARM with an older interrupt controller and with
    /// EL2, so the firmware is called by SMC and starts programs at EL2.
    pub(crate) fn other_machine(self) -> [&'static str; 4] {
        match self {
            Self::Amd64 => self.machine(),
            Self::Arm64 => ["-M", "virt,gic-version=2,virtualization=on", "-cpu", "cortex-a72"],
        }
    }

    /// Returns the options for devices that programs drive from user space: a PCI device for this
    /// purpose, and a parallel port whose printer discards its input.
    pub(crate) fn devices(self) -> &'static [&'static str] {
        match self {
            Self::Amd64 => &[
                "-device",
                "edu",
                "-chardev",
                "null,id=printer",
                "-device",
                "isa-parallel,chardev=printer,iobase=0x378,irq=7",
            ],
            Self::Arm64 => &[],
        }
    }

    /// Returns the kernel parameters for that machine.
    pub(crate) fn parameters(self) -> &'static str {
        match self {
            Self::Amd64 => "console=ttyS0 tsc=reliable no_timer_check random.trust_cpu=on",
            Self::Arm64 => "console=ttyAMA0",
        }
    }

    /// Returns busybox and the libraries of Rust programs, if they are not the host's.
    pub(crate) fn userland(self) -> Option<Debs> {
        match self {
            Self::Amd64 => None,
            Self::Arm64 => Some(debs::ARM64),
        }
    }
}

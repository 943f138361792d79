//! The processors that a guest may have, and what differs between them.

use crate::kernels::debs::{self, Debs};
use crate::tools;

/// The processor of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    /// The host's.
    Amd64,
    /// 64-bit ARM, on a host that is not.
    Arm64,
}

impl Arch {
    /// Its name in Debian.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The output of `uname -m` there.
    pub(crate) fn uname(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// The emulator.
    pub(crate) fn qemu(self) -> &'static str {
        match self {
            Self::Amd64 => tools::QEMU,
            Self::Arm64 => "qemu-system-aarch64",
        }
    }

    /// The emulator's options for machine and processor.
    pub(crate) fn machine(self) -> [&'static str; 4] {
        match self {
            Self::Amd64 => ["-M", "q35", "-cpu", "max"],
            // The processor of a Raspberry Pi 4.
            Self::Arm64 => ["-M", "virt,gic-version=3", "-cpu", "cortex-a72"],
        }
    }

    /// Another one: on ARM with an older interrupt controller and an exception level for hypervisors, so that the firmware is called by
    /// SMC and enters programs there.
    pub(crate) fn other_machine(self) -> [&'static str; 4] {
        match self {
            Self::Amd64 => self.machine(),
            Self::Arm64 => ["-M", "virt,gic-version=2,virtualization=on", "-cpu", "cortex-a72"],
        }
    }

    /// Its options for devices that programs drive from user space: a PCI device made for that, and a parallel port whose printer throws
    /// everything away.
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

    /// Kernel parameters for that machine.
    pub(crate) fn parameters(self) -> &'static str {
        match self {
            Self::Amd64 => "console=ttyS0 tsc=reliable no_timer_check random.trust_cpu=on",
            Self::Arm64 => "console=ttyAMA0",
        }
    }

    /// Busybox and the libraries of Rust programs, if they are not the host's.
    pub(crate) fn userland(self) -> Option<Debs> {
        match self {
            Self::Amd64 => None,
            Self::Arm64 => Some(debs::ARM64),
        }
    }
}

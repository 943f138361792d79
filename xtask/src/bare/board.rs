//! The boards, as cargo and QEMU know them.

use std::fmt;

use clap::ValueEnum;

/// A board. Its name is also the name of a feature of `punctual-bare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Board {
    /// Raspberry Pi 2B: BCM2836, Cortex-A7
    Raspi2b,
    /// Raspberry Pi 3B: BCM2837, Cortex-A53
    Raspi3b,
    /// Raspberry Pi 4B: BCM2711, Cortex-A72
    Raspi4b,
    /// QEMU's `virt` with a Cortex-A7
    VirtA7,
    /// QEMU's `virt` with a Cortex-A72
    VirtA72,
}

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Architecture {
    /// ARMv7-A, 32 bits.
    Armv7,
    /// ARMv8-A, 64 bits.
    Aarch64,
}

impl Board {
    /// Returns the name on the command line and of the feature.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raspi2b => "raspi2b",
            Self::Raspi3b => "raspi3b",
            Self::Raspi4b => "raspi4b",
            Self::VirtA7 => "virt-a7",
            Self::VirtA72 => "virt-a72",
        }
    }

    /// Returns `punctual_bare::board::NAME`.
    pub(super) fn full_name(self) -> &'static str {
        match self {
            Self::Raspi2b => "Raspberry Pi 2B",
            Self::Raspi3b => "Raspberry Pi 3B",
            Self::Raspi4b => "Raspberry Pi 4B",
            Self::VirtA7 => "QEMU virt, Cortex-A7",
            Self::VirtA72 => "QEMU virt, Cortex-A72",
        }
    }

    pub(super) fn architecture(self) -> Architecture {
        match self {
            Self::Raspi2b | Self::VirtA7 => Architecture::Armv7,
            Self::Raspi3b | Self::Raspi4b | Self::VirtA72 => Architecture::Aarch64,
        }
    }

    /// Returns the compiler's target.
    pub(super) fn target(self) -> &'static str {
        match self.architecture() {
            Architecture::Armv7 => "armv7a-none-eabihf",
            Architecture::Aarch64 => "aarch64-unknown-none",
        }
    }

    /// Returns the emulator.
    pub(super) fn emulator(self) -> &'static str {
        match self.architecture() {
            Architecture::Armv7 => "qemu-system-arm",
            Architecture::Aarch64 => "qemu-system-aarch64",
        }
    }

    /// Returns the emulator's machine.
    pub(super) fn machine(self) -> &'static str {
        match self {
            Self::Raspi2b => "raspi2b",
            Self::Raspi3b => "raspi3b",
            Self::Raspi4b => "raspi4b",
            Self::VirtA7 | Self::VirtA72 => "virt",
        }
    }

    /// Returns the emulator's CPU if the machine does not determine it.
    pub(super) fn cpu(self) -> Option<&'static str> {
        match self {
            Self::VirtA7 => Some("cortex-a7"),
            Self::VirtA72 => Some("cortex-a72"),
            Self::Raspi2b | Self::Raspi3b | Self::Raspi4b => None,
        }
    }

    /// Returns whether the boot loader is tested on the board: once for each instruction set.
    pub(super) fn loads(self) -> bool {
        matches!(self, Self::VirtA7 | Self::VirtA72)
    }

    /// Returns whether QEMU loads and enters a raw image as the firmware does: at its link address,
    /// on core 0, at EL2.
    ///
    /// For the Raspberry Pi 2, QEMU's load address differs from the firmware's; QEMU's own boards
    /// have no firmware.
    pub(super) fn boots_image(self) -> bool {
        matches!(self, Self::Raspi3b | Self::Raspi4b)
    }
}

impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_same_names_everywhere() {
        for board in Board::value_variants() {
            assert_eq!(board.to_possible_value().unwrap().get_name(), board.name());
            let crate_source = crate::cargo::root().join("bare/punctual-bare");
            let manifest = std::fs::read_to_string(crate_source.join("Cargo.toml")).unwrap();
            assert!(manifest.contains(&format!("\n{} = []\n", board.name())), "a feature for {board}");
            let source = std::fs::read_to_string(crate_source.join("src/board.rs")).unwrap();
            assert!(source.contains(&format!("\"{}\"", board.full_name())), "{board}");
        }
    }
}

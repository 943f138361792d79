//! `cargo xtask bare image`: the files on an SD card from which the firmware of a Raspberry Pi
//! boots.

use std::fs;
use std::path::{Path, PathBuf};

use super::board::Board;
use super::elf::Elf;
use super::programs::{Place, Program};
use super::toolchain;
use crate::Result;

/// The files that the firmware reads, and the required content of its `config.txt`.
pub(super) struct Firmware {
    /// The name of the kernel.
    kernel: &'static str,
    /// The address of loading and entry.
    address: u64,
    settings: &'static str,
}

/// Returns the firmware of a board; `None` for boards that exist only in QEMU.
fn firmware(board: Board) -> Option<Firmware> {
    let (kernel, address, settings) = match board {
        Board::Raspi2b => ("kernel7.img", 0x8000, ""),
        // Otherwise the PL011 is connected to Bluetooth.
        Board::Raspi3b => ("kernel8.img", 0x8_0000, "arm_64bit=1\ndtoverlay=disable-bt\n"),
        Board::Raspi4b => ("kernel8.img", 0x8_0000, "arm_64bit=1\ndtoverlay=disable-bt\nenable_gic=1\n"),
        Board::VirtA7 | Board::VirtA72 => return None,
    };
    Some(Firmware { kernel, address, settings })
}

/// Returns whether a board boots from a card.
pub(super) fn exists(board: Board) -> bool {
    firmware(board).is_some()
}

/// Builds a program without semihosting, which requires a debugger, and writes the files to
/// `directory`.
pub(super) fn write(board: Board, program: &str, directory: Option<&Path>) -> Result {
    let default = || toolchain::workspace().join("target/sd").join(board.to_string()).join(program);
    let directory = directory.map_or_else(default, PathBuf::from);
    let (firmware, _, elf) = make(board, program, &directory)?;
    println!("{}:", directory.display());
    println!("  {:<12} {} bytes, to {:#x}", firmware.kernel, elf.image.len(), firmware.address);
    println!("  config.txt");
    println!("{program}: {}", elf.sizes());
    println!(
        "Copy both to the first partition (FAT) of a card that also contains the firmware's {}.",
        match board {
            Board::Raspi4b => "start4.elf and fixup4.dat",
            _ => "bootcode.bin, start.elf and fixup.dat",
        }
    );
    Ok(())
}

/// Writes the files; also returns the executable from which they are made.
pub(super) fn make(board: Board, program: &str, directory: &Path) -> Result<(Firmware, PathBuf, Elf)> {
    let Some(firmware) = firmware(board) else {
        return Err(format!("{board} exists in QEMU only, and boots from no card").into());
    };
    let path = if program == "punctual-boot" {
        toolchain::build_loader(board)?
    } else {
        let program = Program::named(program)?;
        toolchain::build(board, &program.features(Place::Board), &program.name)?
    };
    let elf = Elf::read(&path)?;
    firmware.check(&elf)?;
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    write_to(&directory.join(firmware.kernel), &elf.image)?;
    write_to(&directory.join("config.txt"), firmware.config().as_bytes())?;
    Ok((firmware, path, elf))
}

impl Firmware {
    /// Requires the image to be linked at the firmware's load address.
    fn check(&self, elf: &Elf) -> Result {
        if elf.origin == self.address {
            return Ok(());
        }
        Err(format!(
            "linked to {:#x}, but the firmware loads {} to {:#x}",
            elf.origin, self.kernel, self.address
        )
        .into())
    }

    fn config(&self) -> String {
        let Self { kernel, address, settings } = self;
        format!(
            "# No operating system: the firmware loads the kernel and enters it.\nkernel={kernel}\nkernel_address={address:#x}\n\
             {settings}# The clock of the PL011, which the baud rate is made of.\ninit_uart_clock=48000000\n"
        )
    }
}

fn write_to(path: &Path, content: &[u8]) -> Result {
    Ok(fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_firmware_what_it_needs_to_know() {
        let config = firmware(Board::Raspi4b).unwrap().config();
        for line in [
            "kernel=kernel8.img",
            "kernel_address=0x80000",
            "arm_64bit=1",
            "dtoverlay=disable-bt",
            "enable_gic=1",
        ] {
            assert!(config.lines().any(|other| other == line), "{line} in\n{config}");
        }
        assert!(firmware(Board::Raspi2b).unwrap().config().contains("kernel_address=0x8000\n"));
        assert!(firmware(Board::VirtA7).is_none());
    }

    #[test]
    fn refuses_an_image_for_another_address() {
        let elf = Elf { origin: 0x8000, image: vec![], memory: 0, stacks: 0, functions: vec![] };
        assert!(firmware(Board::Raspi2b).unwrap().check(&elf).is_ok());
        let error = firmware(Board::Raspi3b).unwrap().check(&elf).unwrap_err().to_string();
        assert_eq!(error, "linked to 0x8000, but the firmware loads kernel8.img to 0x80000");
    }
}

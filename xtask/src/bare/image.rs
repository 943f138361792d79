//! `cargo xtask bare image`: the files on an SD card from which the firmware of a Raspberry Pi
//! boots.

use std::fs;
use std::path::{Path, PathBuf};

use super::board::{Board, Firmware};
use super::elf::Elf;
use super::programs::{Place, Program};
use super::toolchain;
use crate::Result;

/// Builds a program without semihosting, which requires a debugger, and writes the files to
/// `directory`.
pub(super) fn write(board: Board, program: &str, directory: Option<&Path>) -> Result {
    let default = || toolchain::workspace().join("target/sd").join(board.to_string()).join(program);
    let directory = directory.map_or_else(default, PathBuf::from);
    let (firmware, _, elf) = make(board, program, &directory)?;
    println!("{}:", directory.display());
    println!("  {:<12} {} bytes, to {:#x}", firmware.kernel, elf.image.len(), elf.origin);
    println!("  config.txt");
    println!("{program}: {}", elf.sizes());
    println!(
        "Copy both to the first partition (FAT) of a card that also contains these files of the firmware: {}.",
        firmware.files.join(", ")
    );
    println!("The directory `boot` of https://github.com/raspberrypi/firmware has these files.");
    Ok(())
}

/// Writes the files; also returns the executable from which they are made.
pub(super) fn make(
    board: Board,
    program: &str,
    directory: &Path,
) -> Result<(&'static Firmware, PathBuf, Elf)> {
    let Some(firmware) = board.firmware() else {
        return Err(format!("{board} exists in QEMU only, and boots from no card").into());
    };
    let path = if program == "punctual-boot" {
        toolchain::build_loader(board)?
    } else {
        let program = Program::named(program)?;
        program.check_runs_on(board, Place::Board)?;
        toolchain::build(board, Place::Board, &program)?
    };
    let elf = Elf::for_board(board, &path)?;
    check(board, firmware, &elf)?;
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    write_to(&directory.join(&firmware.kernel), &elf.image)?;
    write_to(&directory.join("config.txt"), config(board, firmware).as_bytes())?;
    Ok((firmware, path, elf))
}

/// Requires the image to be linked at the firmware's load address.
fn check(board: Board, firmware: &Firmware, elf: &Elf) -> Result {
    if elf.origin == board.origin {
        return Ok(());
    }
    let Firmware { kernel, .. } = firmware;
    Err(format!("linked to {:#x}, but the firmware loads {kernel} to {:#x}", elf.origin, board.origin).into())
}

/// Settings of every board, each with the reason in the line above.
const SETTINGS: &str = "\
# No dynamic clocks: the frequencies below apply from the start, and do not fall after a minute.
force_turbo=1
# The clock of the PL011, from which the baud rate is derived.
init_uart_clock=48000000
# At least 512 MiB belong to the ARM cores.
gpu_mem=64
";

/// Returns the content of `config.txt`, which pins what the start-up code and the drivers rely on.
fn config(board: Board, firmware: &Firmware) -> String {
    let settings: String = firmware.settings.iter().map(|setting| format!("{setting}\n")).collect();
    format!(
        "# No operating system: the firmware loads the kernel and enters it.\nkernel={}\nkernel_address={:#x}\n\
         {SETTINGS}{settings}",
        firmware.kernel, board.origin
    )
}

fn write_to(path: &Path, content: &[u8]) -> Result {
    Ok(fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> (Board, &'static Firmware) {
        let board: Board = name.parse().unwrap();
        (board, board.firmware().unwrap())
    }

    #[test]
    fn config_sets_what_the_board_requires() {
        let (board, firmware) = of("raspi4b");
        let config = config(board, firmware);
        for line in [
            "kernel=kernel8.img",
            "kernel_address=0x80000",
            "arm_64bit=1",
            "enable_gic=1",
            "force_turbo=1",
            "core_freq=500",
            "init_uart_clock=48000000",
        ] {
            assert!(config.lines().any(|other| other == line), "{line} in\n{config}");
        }
        let (board, firmware) = of("raspi2b");
        assert!(super::config(board, firmware).contains("kernel_address=0x8000\n"));
        assert!("virt-a7".parse::<Board>().unwrap().firmware().is_none());
    }

    /// A file that the card lacks keeps the board dark.
    #[test]
    fn the_book_gives_a_source_for_each_file_and_setting() {
        let page = crate::cargo::root().join("docs/book/src/guides/board-hardware.md");
        let page = fs::read_to_string(page).unwrap();
        for board in Board::all() {
            let Some(firmware) = board.firmware() else { continue };
            let config = config(*board, firmware);
            let settings = config.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
            for name in settings.filter(|name| !name.starts_with('#')) {
                assert!(page.contains(&format!("\n| `{name}` |")), "{board}: {name}");
            }
            for file in &firmware.files {
                let row = page.lines().find(|line| line.starts_with(&format!("| `{file}` |")));
                assert!(row.is_some_and(|row| row.contains("http")), "{board}: {file}");
            }
        }
    }

    #[test]
    fn the_book_separates_emulation_documentation_and_hardware() {
        let page = crate::cargo::root().join("docs/book/src/guides/board-hardware.md");
        let page = fs::read_to_string(page).unwrap();
        let head = "| claim | verified in QEMU | verified against documentation | verified on hardware |";
        let claims = page.split_once(head).expect("the page has the table of claims").1;
        let claims = claims.lines().skip(2).take_while(|line| line.starts_with('|'));
        assert!(claims.clone().count() >= 8);
        for claim in claims {
            assert_eq!(claim.matches(" | ").count(), 3, "{claim}");
        }
        for form in ["in interrupt context", "in a kernel thread", "by a task"] {
            assert!(page.contains(&format!("`lab test --only \"pulses answered {form}\"`")), "{form}");
        }
        assert!(page.contains("`bare run --board virt-a72 --counted latency_raw`"));
    }

    #[test]
    fn rejects_image_for_another_address() {
        let elf = Elf { origin: 0x8000, image: vec![], ..Elf::default() };
        let (board, firmware) = of("raspi2b");
        assert!(check(board, firmware, &elf).is_ok());
        let (board, firmware) = of("raspi3b");
        let error = check(board, firmware, &elf).unwrap_err().to_string();
        assert_eq!(error, "linked to 0x8000, but the firmware loads kernel8.img to 0x80000");
    }
}

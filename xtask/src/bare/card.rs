//! An SD card with `hello`, as the firmware of a Raspberry Pi reads it: checks its files, the
//! address of loading, and that the program runs there.

use std::fs;
use std::path::Path;

use super::board::Board;
use super::elf::Elf;
use super::test::{LOAD_LIMIT, greeting};
use super::{emulator, image};
use crate::Result;
use crate::scratch::Scratch;

/// The name of this check in the list of programs.
pub(super) const NAME: &str = "card";

/// The maximum size of the image of `hello`, in bytes.
const LIMIT: usize = 24 << 10;

/// Writes the files, and lets QEMU process them as the firmware does.
pub(super) fn check(board: Board) -> Result {
    let card = Scratch::new("bare-card")?;
    let (_, executable, _) = image::make(board, "hello", card.path())?;
    let config = fs::read_to_string(card.path().join("config.txt"))?;
    let kernel = card.path().join(setting(&config, "kernel")?);
    let address = setting(&config, "kernel_address")?;
    let digits = address.strip_prefix("0x").ok_or("the address is not hexadecimal")?;
    let address = u64::from_str_radix(digits, 16)?;
    let image = fs::read(&kernel)?;
    if image.len() > LIMIT {
        return Err(format!("the image of hello has {} bytes, more than {LIMIT}", image.len()).into());
    }

    // QEMU itself interprets the executable, in which errata are not yet worked around.
    let linked = Elf::read(&executable)?.image;
    let load = ["-kernel".to_owned(), executable.display().to_string()];
    let memory = emulator::loaded(board, &load, address, linked.len())?;
    compare(&memory, &linked, "as QEMU loads the executable")?;
    let load = firmware(board, &kernel, address);
    compare(&emulator::loaded(board, &load, address, image.len())?, &image, "when it is entered")?;
    emulator::prints(board, &load, &greeting(board), LOAD_LIMIT)
}

/// Returns the QEMU options that load and enter a kernel as the firmware does.
fn firmware(board: Board, kernel: &Path, address: u64) -> Vec<String> {
    let kernel = kernel.display();
    if board.boots_image {
        return vec!["-kernel".to_owned(), kernel.to_string()];
    }
    vec!["-device".to_owned(), format!("loader,file={kernel},addr={address:#x},force-raw=on,cpu-num=0")]
}

/// Returns the value of a setting in `config.txt`.
fn setting<'a>(config: &'a str, name: &str) -> Result<&'a str> {
    let value = config.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    Ok(value.ok_or_else(|| format!("config.txt does not set {name}"))?)
}

/// Requires memory to equal the image on the card.
fn compare(memory: &[u8], image: &[u8], when: &str) -> Result {
    match memory.iter().zip(image).position(|(one, other)| one != other) {
        None if memory.len() == image.len() => Ok(()),
        at => {
            let at = at.unwrap_or(memory.len().min(image.len()));
            Err(format!("{when}, memory differs from the image at its byte {at}").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_settings_by_whole_name() {
        let config = "kernel_address=0x8000\nkernel=kernel7.img\n";
        assert_eq!(setting(config, "kernel").unwrap(), "kernel7.img");
        assert_eq!(setting(config, "kernel_address").unwrap(), "0x8000");
        assert!(setting(config, "arm_64bit").is_err());
    }

    #[test]
    fn compares_every_byte() {
        assert!(compare(&[1, 2, 3], &[1, 2, 3], "now").is_ok());
        let error = compare(&[1, 9, 3], &[1, 2, 3], "now").unwrap_err().to_string();
        assert_eq!(error, "now, memory differs from the image at its byte 1");
        assert!(compare(&[1, 2], &[1, 2, 3], "now").is_err());
    }
}

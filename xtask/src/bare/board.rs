//! The boards: the table in `bare/punctual-bare/Cargo.toml`, as cargo and QEMU use it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::{Result, cargo, files};

/// A board in the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Board(&'static Entry);

/// The description of a board.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Entry {
    /// The name on the command line, and of a feature of `punctual-bare`.
    #[serde(skip)]
    pub(super) name: String,
    /// `punctual_bare::board::NAME`.
    #[serde(rename = "name")]
    pub(super) full_name: String,
    /// The compiler's target.
    pub(super) target: String,
    /// The address at which an image is loaded and entered.
    pub(super) origin: u64,
    /// The emulator's machine.
    pub(super) machine: String,
    /// The emulator's CPU if the machine does not determine it.
    pub(super) cpu: Option<String>,
    /// Whether QEMU loads and enters a raw image as the firmware does.
    #[serde(default, rename = "raw-image")]
    pub(super) boots_image: bool,
    has: Vec<String>,
    #[serde(default)]
    errata: Vec<String>,
    firmware: Option<Firmware>,
}

/// The files on an SD card, and the settings in `config.txt` that the board requires.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Firmware {
    pub(super) kernel: String,
    /// Files that the firmware itself consists of.
    pub(super) files: Vec<String>,
    pub(super) settings: Vec<String>,
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
    /// Returns all boards, those that exist only in QEMU first: programs that hardly differ between
    /// boards run on the first ones.
    ///
    /// # Panics
    /// If the table cannot be read, which a unit test prevents.
    pub(crate) fn all() -> &'static [Self] {
        static BOARDS: OnceLock<Vec<Board>> = OnceLock::new();
        BOARDS.get_or_init(|| {
            let entries: &'static [Entry] =
                read().unwrap_or_else(|error| panic!("the boards: {error}")).leak();
            entries.iter().map(Board).collect()
        })
    }

    pub(super) fn architecture(self) -> Architecture {
        if self.target.starts_with("aarch64") { Architecture::Aarch64 } else { Architecture::Armv7 }
    }

    /// Returns whether the board has something that a program needs.
    pub(super) fn has(self, need: &str) -> bool {
        self.has.iter().any(|has| has == need)
    }

    /// Returns whether the board's processor has an erratum that the image must work around.
    pub(super) fn has_erratum(self, name: &str) -> bool {
        self.errata.iter().any(|erratum| erratum == name)
    }

    /// Returns the emulator.
    pub(super) fn emulator(self) -> &'static str {
        match self.architecture() {
            Architecture::Armv7 => "qemu-system-arm",
            Architecture::Aarch64 => "qemu-system-aarch64",
        }
    }

    /// Returns the firmware that boots the board from a card, if it exists outside of QEMU.
    pub(super) fn firmware(self) -> Option<&'static Firmware> {
        self.0.firmware.as_ref()
    }

    /// Returns whether the board is the first of its instruction set: what depends on no other
    /// property runs only there.
    pub(super) fn is_first_of_its_architecture(self) -> bool {
        Self::all().iter().find(|other| other.architecture() == self.architecture()) == Some(&self)
    }
}

impl Deref for Board {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        self.0
    }
}

/// Reads the table.
fn read() -> Result<Vec<Entry>> {
    #[derive(Deserialize)]
    struct Manifest {
        package: Package,
    }
    #[derive(Deserialize)]
    struct Package {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        boards: BTreeMap<String, Entry>,
    }
    let path = cargo::root().join("bare/punctual-bare/Cargo.toml");
    let text = files::read(&path)?;
    let manifest: Manifest = toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let boards = manifest.package.metadata.boards.into_iter();
    let mut entries: Vec<Entry> = boards.map(|(name, entry)| Entry { name, ..entry }).collect();
    entries.sort_by_key(|entry| entry.firmware.is_some());
    Ok(entries)
}

impl FromStr for Board {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::all().iter().copied().find(|board| board.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::all().iter().map(|board| &*board.name).collect();
            format!("no such board; choose one of {}", names.join(", "))
        })
    }
}

impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_board_is_one_file_and_one_row() {
        let package = cargo::root().join("bare/punctual-bare");
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        let mut files = vec!["amp".to_owned(), "mod".to_owned()];
        for board in Board::all() {
            assert!(manifest.contains(&format!("\n{board} = ")), "a feature for {board}");
            let file = board.name.replace('-', "_");
            let source = fs::read_to_string(package.join("src/board").join(&file).with_extension("rs"));
            assert!(source.unwrap().contains(&format!("\"{}\"", board.full_name)), "{board}");
            files.push(file);
        }
        files.sort();
        let entries = fs::read_dir(package.join("src/board")).unwrap();
        let mut found: Vec<String> = entries
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        found.sort();
        assert_eq!(found, files);
    }

    /// A board's name in any other source would be another file to change for a new board.
    #[test]
    fn no_source_outside_of_the_table_selects_a_board() {
        let bare = cargo::root().join("bare");
        for directory in [bare, cargo::root().join("xtask/src/bare")] {
            for path in files::below(&directory, &["rs", "s"]).unwrap() {
                let source = files::read(&path).unwrap();
                for board in Board::all() {
                    let selector = format!("feature = \"{board}\"");
                    assert!(!source.contains(&selector), "{}: {selector}", path.display());
                }
            }
        }
    }

    #[test]
    fn rejects_unknown_board_with_the_known_ones() {
        assert_eq!(
            "raspi9".parse::<Board>().unwrap_err(),
            "no such board; choose one of virt-a7, virt-a72, raspi2b, raspi3b, raspi4b"
        );
        assert_eq!("raspi4b".parse::<Board>().unwrap().full_name, "Raspberry Pi 4B");
    }
}

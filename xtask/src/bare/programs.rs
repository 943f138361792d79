//! The programs for boards, and what each is expected to print.

use std::fs;

use clap::ValueEnum;

use super::board::Board;
use super::toolchain::workspace;
use crate::Result;
use crate::golden::Header;

/// A program in `programs/src/bin`.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) exit: i32,
    expected: String,
    /// The boards it does not run on.
    not_on: Vec<Board>,
}

impl Program {
    /// All of them, by name.
    pub(super) fn all() -> Result<Vec<Self>> {
        let package = workspace().join("programs");
        let mut programs = Vec::new();
        for entry in fs::read_dir(package.join("src/bin"))? {
            let path = entry?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let source = fs::read_to_string(&path)?;
            let expected = package.join("expected").join(&name).with_extension("txt");
            let program = Self {
                exit: Header::parse(&source)?.exit,
                expected: fs::read_to_string(&expected)
                    .map_err(|error| format!("{}: {error}", expected.display()))?,
                not_on: not_on(&source).map_err(|error| format!("{name}: {error}"))?,
                name,
            };
            programs.push(program);
        }
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(programs)
    }

    pub(super) fn runs_on(&self, board: Board) -> bool {
        !self.not_on.contains(&board)
    }

    /// What is printed on a board, as [`comparable`] has it.
    pub(super) fn expected(&self, board: Board) -> String {
        self.expected.replace("{board}", board.full_name())
    }
}

/// The boards that `//! not-on: <board>, <board>: <reason>` in the leading comment names.
fn not_on(source: &str) -> Result<Vec<Board>> {
    let mut boards = Vec::new();
    for line in source.lines().map_while(|line| line.strip_prefix("//!")) {
        let Some(rest) = line.trim().strip_prefix("not-on:") else { continue };
        let (names, reason) = rest.split_once(':').unwrap_or((rest, ""));
        if reason.trim().is_empty() {
            return Err("`not-on:` needs a reason".into());
        }
        for name in names.split(',') {
            boards.push(Board::from_str(name.trim(), false)?);
        }
    }
    Ok(boards)
}

/// What a program has printed, without what differs between boards and compilers: addresses, registers, how often a function
/// calls itself, and return addresses in functions that the expected output does not name.
pub(super) fn comparable(printed: &str, expected: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut in_registers = false;
    let named: Vec<&str> =
        expected.lines().filter_map(|line| line.split_once(" in ")).map(|(_, name)| name).collect();
    for line in printed.lines() {
        in_registers = line == "  registers:" || in_registers && line.starts_with("    ");
        let frame = line.strip_prefix("    0x");
        let unnamed = |frame: &str| !named.iter().any(|name| frame.ends_with(&format!(" in {name}")));
        if in_registers || frame.is_some_and(unnamed) || line.starts_with("    ... and again") {
            continue;
        }
        let line = without_addresses(line);
        if frame.is_none() || lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The line with `0x…` for every hexadecimal number.
fn without_addresses(line: &str) -> String {
    let mut pieces = line.split("0x");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text.push_str("0x…");
        text.push_str(piece.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_what_does_not_depend_on_the_compiler() {
        let printed = "deep\r\npunctual: data abort\r\n  accessing 0x12ab\r\n  registers:\r\n    r0 0x1\r\n    r1 0x2\r\n  \
                       return addresses:\r\n    0x00008000 in core::fmt::write\r\n    0x00009000 in faults::deep\r\n    \
                       0x00009010 in faults::deep\r\n    ... and again, 7 times\r\n";
        let expected =
            "deep\npunctual: data abort\n  accessing 0x…\n  return addresses:\n    0x… in faults::deep\n";
        assert_eq!(comparable(printed, expected), expected);
        let without = printed.replace("faults::deep", "faults::other");
        assert_ne!(comparable(&without, expected), expected);
    }

    #[test]
    fn reads_where_a_program_does_not_run() {
        let source = "//! Blinks.\n//! not-on: virt-a7, virt-a72: there is no such pin\n";
        assert_eq!(not_on(source).unwrap(), [Board::VirtA7, Board::VirtA72]);
        assert!(not_on("//! not-on: virt-a7\n").is_err());
        assert!(not_on("//! not-on: arduino: it is too small\n").is_err());
    }
}

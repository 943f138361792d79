//! The programs for boards, and the expected output of each.
//!
//! The leading comment of a program declares its special properties:
//!
//! ```text
//! //! exit: 101                     ends with this code instead of 0
//! //! needs: virt, gic: <reason>    runs only on boards that have one of these
//! //! needs-in-qemu: virt: <reason> further needs of a run in QEMU
//! //! sample: one board             runs on the other boards only with --thorough; also `one board
//! //!                               per instruction set`
//! //! allocates: <what>             is built with an allocator
//! //! virtual-time: <what>          is built with virtual time
//! //! emulator: -device <device>    requires these options of QEMU
//! //! plain: <reason>               is built without apps and threads
//! //! unmonitored: <reason>         is built without monitoring
//! //! json: punctual-bench          prints JSON as `punctual bench --json`; rows and rules are compared
//! ```
//!
//! `input/` contains the input of a program. In an expected output, a line that starts with the
//! name of a board and a colon applies to that board, and `{at most N}` stands for a number.
//! Addresses and registers are ignored, and of a backtrace only the functions that the expected
//! output names are compared.

use std::fs;
use std::path::Path;

use super::board::Board;
use super::examples;
use super::toolchain::workspace;
use crate::golden::{Header, directives};
use crate::{Result, files};

/// The property of a Raspberry Pi in the table of boards: its drivers.
pub(super) const RASPBERRY_PI: &str = "raspberry-pi";

/// The environment of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// QEMU, which the program notifies of its end.
    Emulator,
    /// A board without a debugger.
    Board,
}

/// A program in `programs/src/bin`, or an example of `punctual`.
pub(super) struct Program {
    pub(super) name: String,
    /// True for an example of `punctual`.
    pub(super) is_example: bool,
    pub(super) exit: i32,
    expected: String,
    /// True for a program that prints a run of the benchmark instead of the expected output.
    pub(super) is_benchmark: bool,
    /// Its input.
    pub(super) input: Option<String>,
    /// Further options for QEMU.
    pub(super) emulator: Vec<String>,
    /// True for a program with neither an app nor threads.
    is_plain: bool,
    /// True for a program whose tasks are measured.
    monitored: bool,
    /// True for a program that needs an allocator or virtual time.
    allocates: bool,
    needs: Option<Needs>,
    /// Further needs in the emulator.
    needs_in_qemu: Option<Needs>,
    sample: Sample,
}

/// Properties of a board that a program requires.
#[derive(Debug, PartialEq, Eq)]
struct Needs {
    /// The board has one of these, as in the table of boards.
    any: Vec<String>,
    reason: String,
}

/// The boards of a run that is not thorough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sample {
    All,
    One,
    OnePerArchitecture,
}

impl Program {
    /// Returns all programs, by name.
    pub(super) fn all() -> Result<Vec<Self>> {
        let package = workspace().join("programs");
        let mut programs = Vec::new();
        for entry in fs::read_dir(package.join("src/bin"))? {
            let path = entry?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let source = fs::read_to_string(&path)?;
            let file = |directory| package.join(directory).join(&name).with_extension("txt");
            let program = Self::parse(name.clone(), &source, &file("expected"), &file("input"));
            programs.push(program.map_err(|error| format!("{name}: {error}"))?);
        }
        for example in examples::all()? {
            programs.push(Self {
                name: example.name,
                is_example: true,
                exit: example.header.exit,
                expected: files::read(&example.expected)?,
                is_benchmark: false,
                input: None,
                // One for each partition.
                emulator: ["-smp", "4"].map(str::to_owned).into(),
                is_plain: false,
                monitored: true,
                allocates: true,
                needs: None,
                needs_in_qemu: None,
                sample: Sample::OnePerArchitecture,
            });
        }
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(programs)
    }

    /// Reads the leading comment of a program.
    fn parse(name: String, source: &str, expected: &Path, input: &Path) -> Result<Self> {
        let is_benchmark = directives(source, "json").next().is_some();
        let options = directives(source, "emulator").flat_map(str::split_whitespace).map(str::to_owned);
        Ok(Self {
            name,
            is_example: false,
            is_benchmark,
            input: input.exists().then(|| files::read(input)).transpose()?,
            emulator: options.collect(),
            is_plain: directives(source, "plain").next().is_some(),
            monitored: directives(source, "unmonitored").next().is_none(),
            allocates: directives(source, "allocates")
                .chain(directives(source, "virtual-time"))
                .next()
                .is_some(),
            exit: Header::parse(source)?.exit,
            expected: if is_benchmark { String::new() } else { files::read(expected)? },
            needs: needs(source, "needs")?,
            needs_in_qemu: needs(source, "needs-in-qemu")?,
            sample: sample(source)?,
        })
    }

    /// Returns the program of this name.
    pub(super) fn named(name: &str) -> Result<Self> {
        let found = Self::all()?.into_iter().find(|program| program.name == name);
        let Some(program) = found else {
            let excluded = examples::excluded()?;
            let row = excluded.iter().find(|row| row.examples.iter().any(|example| example == name));
            return Err(row.map_or_else(
                || format!("no program is named `{name}`").into(),
                |row| format!("the example `{name}` does not run on boards: it needs {}", row.needs).into(),
            ));
        };
        Ok(program)
    }

    /// Returns the features of its package with which it is built.
    pub(super) fn features(&self, board: Board, place: Place) -> String {
        let mut features = vec![format!("punctual-bare/{board}")];
        let mut add = |wanted: bool, name: &str| features.extend(wanted.then(|| name.to_owned()));
        add(place == Place::Emulator, "semihosting");
        if self.is_example {
            add(board.has(RASPBERRY_PI), "programs/raspberry-pi");
        } else if !self.is_plain {
            add(true, "app");
            add(self.monitored, "monitoring");
            // Both, even for a program that needs only one: a different set of features requires
            // another build.
            add(self.allocates, "alloc,virtual-time");
            add(board.has(RASPBERRY_PI), "raspberry-pi");
        }
        features.join(",")
    }

    /// Returns whether the program can run on a board.
    ///
    /// # Errors
    /// Returns the reason if not.
    pub(super) fn check_runs_on(&self, board: Board, place: Place) -> Result {
        let in_qemu = self.needs_in_qemu.as_ref().filter(|_| place == Place::Emulator);
        let missing = |needs: &&Needs| !needs.any.iter().any(|need| board.has(need));
        self.needs.iter().chain(in_qemu).find(missing).map_or(Ok(()), |Needs { any, reason }| {
            let any = any.join(" or ");
            Err(format!("{} does not run on {board}, which has no {any}: {reason}", self.name).into())
        })
    }

    /// Returns whether a test runs the program on a board.
    pub(super) fn is_tested_on(&self, board: Board, thorough: bool) -> bool {
        let mut boards =
            Board::all().iter().copied().filter(|&board| self.check_runs_on(board, Place::Emulator).is_ok());
        let first = match self.sample {
            Sample::All => return boards.any(|other| other == board),
            _ if thorough => return boards.any(|other| other == board),
            Sample::One => boards.next(),
            Sample::OnePerArchitecture => boards.find(|other| other.architecture() == board.architecture()),
        };
        first == Some(board)
    }

    /// Returns the expected output on a board, in the form of [`comparable`]; that of an example is
    /// exact.
    ///
    /// A line that begins with the name of a board and a colon is printed only on that board.
    pub(super) fn expected(&self, board: Board) -> String {
        if self.is_example {
            return self.expected.clone();
        }
        let mut expected = String::new();
        for line in self.expected.lines() {
            let only = Board::all()
                .iter()
                .find_map(|only| Some((*only, line.strip_prefix(&*only.name)?.strip_prefix(": ")?)));
            let line = match only {
                Some((only, _)) if only != board => continue,
                Some((_, rest)) => rest,
                None => line,
            };
            expected.push_str(&without_addresses(line));
            expected.push('\n');
        }
        expected.replace("{board}", &board.full_name)
    }
}

/// Returns the needs in `//! <key>: <need>, <need>: <reason>`. A board must have one of them.
fn needs(source: &str, key: &str) -> Result<Option<Needs>> {
    let Some(line) = directives(source, key).next() else { return Ok(None) };
    let (names, reason) = line.split_once(':').unwrap_or((line, ""));
    let (any, reason) = (names.split(',').map(|name| name.trim().to_owned()).collect(), reason.trim());
    let needs = Needs { any, reason: reason.to_owned() };
    if needs.reason.is_empty() {
        return Err(format!("`{key}:` needs a reason").into());
    }
    if let Some(unknown) = needs.any.iter().find(|need| !Board::all().iter().any(|board| board.has(need))) {
        return Err(format!("`{key}:` names `{unknown}`, which no board has").into());
    }
    Ok(Some(needs))
}

/// Returns the boards in `//! sample: <boards>`.
fn sample(source: &str) -> Result<Sample> {
    match directives(source, "sample").next() {
        None => Ok(Sample::All),
        Some("one board") => Ok(Sample::One),
        Some("one board per instruction set") => Ok(Sample::OnePerArchitecture),
        Some(other) => {
            Err(format!("`sample: {other}`: the samples are `one board` and `one board per instruction set`")
                .into())
        }
    }
}

/// Returns the output of a program without the parts that differ between boards and compilers:
/// addresses, registers, the number of recursive calls, return addresses in functions that the
/// expected output does not name, and the times in the table of a report with its alignment.
pub(super) fn comparable(printed: &str, expected: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let (mut in_registers, mut in_table) = (false, false);
    let named: Vec<&str> =
        expected.lines().filter_map(|line| line.split_once(" in ")).map(|(_, name)| name).collect();
    let is_rule = |line: &str| line.starts_with('─');
    let mut rest = printed.lines().peekable();
    while let Some(line) = rest.next() {
        in_registers = line == "  registers:" || in_registers && line.starts_with("    ");
        let frame = line.strip_prefix("    0x");
        let unnamed = |frame: &str| !named.iter().any(|name| frame.ends_with(&format!(" in {name}")));
        if in_registers || frame.is_some_and(unnamed) || line.starts_with("    ... and again") {
            continue;
        }
        in_table = is_rule(line) || in_table && !line.is_empty();
        let is_head = rest.peek().is_some_and(|next| is_rule(next));
        let line = match in_table || is_head {
            true if is_rule(line) => "─".to_owned(),
            true => without_times(line),
            false => without_addresses(line),
        };
        if frame.is_none() || lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Returns the expected output with each `{at most N}` replaced by the printed number if that is at
/// most N.
pub(super) fn with_measured(expected: &str, printed: &str) -> String {
    let mut printed = printed.lines();
    let line = |line: &str| {
        fill_in(line, printed.next().unwrap_or_default()).unwrap_or_else(|| line.to_owned()) + "\n"
    };
    expected.lines().map(line).collect()
}

fn fill_in(expected: &str, printed: &str) -> Option<String> {
    let (before, rest) = expected.split_once("{at most ")?;
    let (limit, after) = rest.split_once('}')?;
    let number = printed.strip_prefix(before)?.split(|c: char| !c.is_ascii_digit()).next()?;
    let within = number.parse::<u64>().ok()? <= limit.parse().ok()?;
    within.then(|| format!("{before}{number}{after}"))
}

/// Returns the row of a table with `…` for every time, and without its alignment.
fn without_times(line: &str) -> String {
    let mut cells: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        let is_time = ["ns", "µs", "ms", "s"].contains(&word)
            && cells.last().is_some_and(|number| number.parse::<f64>().is_ok());
        if is_time {
            cells.pop();
        }
        cells.push(if is_time { "…" } else { word });
    }
    cells.join(" ")
}

/// Returns the line with `0x…` for every hexadecimal number. The function is idempotent.
fn without_addresses(line: &str) -> String {
    let mut pieces = line.split("0x");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text.push_str("0x…");
        let rest = piece.strip_prefix('…');
        text.push_str(rest.unwrap_or(piece.trim_start_matches(|c: char| c.is_ascii_hexdigit())));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(source: &str) -> Result<Program> {
        let nowhere = Path::new("/nonexistent");
        Program::parse("a".to_owned(), &format!("//! json: a test\n{source}"), nowhere, nowhere)
    }

    fn board(name: &str) -> Board {
        name.parse().unwrap()
    }

    #[test]
    fn every_program_runs_on_some_board() {
        for program in Program::all().unwrap() {
            let tested = |thorough| Board::all().iter().any(|&board| program.is_tested_on(board, thorough));
            assert!(tested(false) && tested(true), "{}", program.name);
        }
    }

    #[test]
    fn runs_only_on_boards_with_one_of_the_needs() {
        let program = program("//! needs: virt, bcm2836-interrupts: it raises them by hand\n").unwrap();
        for name in ["virt-a7", "virt-a72", "raspi2b", "raspi3b"] {
            assert!(program.check_runs_on(board(name), Place::Board).is_ok(), "{name}");
        }
        let error = program.check_runs_on(board("raspi4b"), Place::Board).unwrap_err().to_string();
        assert_eq!(
            error,
            "a does not run on raspi4b, which has no virt or bcm2836-interrupts: it raises them by hand"
        );
        assert!(!program.is_tested_on(board("raspi4b"), true));
    }

    #[test]
    fn an_image_needs_less_than_a_run_in_qemu() {
        let program = program("//! needs-in-qemu: virt: its pins have events\n").unwrap();
        assert!(program.check_runs_on(board("raspi4b"), Place::Board).is_ok());
        assert!(program.check_runs_on(board("raspi4b"), Place::Emulator).is_err());
        assert!(program.check_runs_on(board("virt-a7"), Place::Emulator).is_ok());
    }

    #[test]
    fn builds_examples_and_programs_with_the_drivers_of_the_board() {
        let features =
            |name: &str, on: &str| Program::named(name).unwrap().features(board(on), Place::Emulator);
        assert_eq!(features("report", "raspi2b"), "punctual-bare/raspi2b,semihosting,programs/raspberry-pi");
        assert_eq!(features("report", "virt-a7"), "punctual-bare/virt-a7,semihosting");
        assert!(features("app", "raspi4b").ends_with(",app,monitoring,raspberry-pi"));
        assert_eq!(features("hello", "raspi4b"), "punctual-bare/raspi4b,semihosting");
    }

    #[test]
    fn samples_the_first_boards_that_can_run_a_program() {
        let tested = |source: &str, thorough| -> Vec<&str> {
            let program = program(source).unwrap();
            let boards = Board::all().iter().filter(|&&board| program.is_tested_on(board, thorough));
            boards.map(|board| board.name.as_str()).collect()
        };
        assert_eq!(tested("", false).len(), Board::all().len());
        assert_eq!(tested("//! sample: one board\n", false), ["virt-a7"]);
        assert_eq!(tested("//! sample: one board\n", true).len(), Board::all().len());
        let per_set = "//! sample: one board per instruction set\n";
        assert_eq!(tested(per_set, false), ["virt-a7", "virt-a72"]);
        let pi = format!("{per_set}//! needs: raspberry-pi: it has pins\n");
        assert_eq!(tested(&pi, false), ["raspi2b", "raspi3b"]);
        assert_eq!(tested(&pi, true), ["raspi2b", "raspi3b", "raspi4b"]);
    }

    #[test]
    fn rejects_needs_without_reason_and_unknown_words() {
        assert!(program("//! needs: virt\n").is_err());
        assert!(program("//! needs: levitation: it floats\n").is_err());
        assert!(program("//! sample: two boards\n").is_err());
    }

    #[test]
    fn ignores_compiler_dependent_output() {
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
    fn removes_only_times_from_reports() {
        let printed = "after 1.00 s\n\ntask  jobs  J max\n───\nsample     20  1.24 µs  –  0\nns        3    8 ns  2\n\n5 ns\n";
        let expected = "after 1.00 s\n\ntask jobs J max\n─\nsample 20 … – 0\nns 3 … 2\n\n5 ns\n";
        assert_eq!(comparable(printed, expected), expected);
        assert_eq!(comparable(expected, expected), expected);
    }

    #[test]
    fn leaves_out_addresses_once() {
        assert_eq!(without_addresses("at 0x12ab, 0xF"), "at 0x…, 0x…");
        assert_eq!(without_addresses("at 0x…, 0x…"), "at 0x…, 0x…");
        assert_eq!(without_addresses("none"), "none");
    }

    #[test]
    fn lets_numbers_be_smaller_than_expected_but_not_larger() {
        let expected = "lock: {at most 50} instructions\nend\n";
        assert_eq!(with_measured(expected, "lock: 7 instructions\nend\n"), "lock: 7 instructions\nend\n");
        for wrong in ["lock: 51 instructions\nend\n", "lock: instructions\n", ""] {
            assert_eq!(with_measured(expected, wrong), expected);
        }
    }
}

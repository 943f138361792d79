//! The programs for boards, and the expected output of each.

use std::fs;

use clap::ValueEnum;

use super::board::Board;
use super::toolchain::workspace;
use crate::golden::Header;
use crate::{Result, cargo};

/// The environment of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// QEMU, which the program notifies of its end.
    Emulator,
    /// A board without a debugger.
    Board,
}

/// A program in `programs/src/bin`.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) exit: i32,
    expected: String,
    /// Whether it prints a run of the benchmark instead of the expected output.
    pub(super) is_benchmark: bool,
    /// Its input.
    pub(super) input: Option<String>,
    /// Further options for QEMU.
    pub(super) emulator: Vec<String>,
    /// Whether its tasks are measured.
    monitored: bool,
    /// Whether it allocates.
    allocates: bool,
    /// Whether it runs in virtual time.
    virtual_time: bool,
    /// The boards it does not run on.
    not_on: Vec<Board>,
    /// The boards it runs on only if the time of the check does not matter.
    thorough: Vec<Board>,
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
            let golden = names(&source, "golden").next();
            let expected = match golden {
                Some(example) => cargo::root().join("crates/punctual/examples/expected").join(example),
                None => package.join("expected").join(&name),
            };
            let expected = expected.with_extension("txt");
            let input = package.join("input").join(&name).with_extension("txt");
            let is_benchmark = lines(&source, "json").next().is_some();
            let program = Self {
                is_benchmark,
                input: input.exists().then(|| fs::read_to_string(&input)).transpose()?,
                emulator: lines(&source, "emulator")
                    .flat_map(str::split_whitespace)
                    .map(str::to_owned)
                    .collect(),
                monitored: lines(&source, "unmonitored").next().is_none(),
                allocates: lines(&source, "allocates").next().is_some(),
                virtual_time: lines(&source, "virtual-time").next().is_some(),
                exit: Header::parse(&source)?.exit,
                expected: match is_benchmark {
                    true => String::new(),
                    false => fs::read_to_string(&expected)
                        .map_err(|error| format!("{}: {error}", expected.display()))?,
                },
                not_on: not_on(&source).map_err(|error| format!("{name}: {error}"))?,
                thorough: boards(names(&source, "thorough")).map_err(|error| format!("{name}: {error}"))?,
                name,
            };
            programs.push(program);
        }
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(programs)
    }

    /// Returns the program of this name.
    pub(super) fn named(name: &str) -> Result<Self> {
        let found = Self::all()?.into_iter().find(|program| program.name == name);
        found.ok_or_else(|| format!("no program is named `{name}`").into())
    }

    /// Returns the features of `programs` with which it is built, in addition to that of the board.
    pub(super) fn features(&self, place: Place) -> String {
        // Both, even for a program that needs only one: a different set of features requires
        // another build.
        let more = self.allocates || self.virtual_time;
        let features = [
            ("semihosting", place == Place::Emulator),
            ("monitoring", self.monitored),
            ("alloc", more),
            ("virtual-time", more),
        ];
        let wanted: Vec<&str> =
            features.iter().filter(|(_, wanted)| *wanted).map(|(name, _)| *name).collect();
        wanted.join(",")
    }

    pub(super) fn runs_on(&self, board: Board, thorough: bool) -> bool {
        !self.not_on.contains(&board) && (thorough || !self.thorough.contains(&board))
    }

    /// Returns the expected output on a board, in the form of [`comparable`].
    ///
    /// A line that begins with the name of a board and a colon is printed only on that board.
    pub(super) fn expected(&self, board: Board) -> String {
        let mut expected = String::new();
        for line in self.expected.lines() {
            let only = Board::value_variants()
                .iter()
                .find_map(|only| Some((*only, line.strip_prefix(only.name())?.strip_prefix(": ")?)));
            let line = match only {
                Some((only, _)) if only != board => continue,
                Some((_, rest)) => rest,
                None => line,
            };
            expected.push_str(&without_addresses(line));
            expected.push('\n');
        }
        expected.replace("{board}", board.full_name())
    }
}

/// Returns the lines `//! <key>: <text>` of the leading comment.
fn lines<'a>(source: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let comment = source.lines().map_while(|line| line.strip_prefix("//!"));
    comment.filter_map(move |line| line.trim().strip_prefix(key)?.strip_prefix(':'))
}

/// Returns the names in `//! <key>: <name>, <name>`.
fn names<'a>(source: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    lines(source, key).flat_map(|names| names.split(',')).map(str::trim)
}

/// Returns the boards of these names.
fn boards<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<Board>> {
    names.map(|name| Ok(Board::from_str(name, false)?)).collect()
}

/// Returns the boards in `//! not-on: <board>, <board>: <reason>`.
fn not_on(source: &str) -> Result<Vec<Board>> {
    let mut not_on = Vec::new();
    for line in lines(source, "not-on") {
        let (names, reason) = line.split_once(':').unwrap_or((line, ""));
        if reason.trim().is_empty() {
            return Err("`not-on:` needs a reason".into());
        }
        not_on.extend(boards(names.split(',').map(str::trim))?);
    }
    Ok(not_on)
}

/// Returns the output of a program without the parts that differ between boards and compilers:
/// addresses, registers, the number of recursive calls, return addresses in functions that the
/// expected output does not name, and times in the table of a report.
pub(super) fn comparable(printed: &str, expected: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let (mut in_registers, mut in_table) = (false, false);
    let named: Vec<&str> =
        expected.lines().filter_map(|line| line.split_once(" in ")).map(|(_, name)| name).collect();
    for line in printed.lines() {
        in_registers = line == "  registers:" || in_registers && line.starts_with("    ");
        let frame = line.strip_prefix("    0x");
        let unnamed = |frame: &str| !named.iter().any(|name| frame.ends_with(&format!(" in {name}")));
        if in_registers || frame.is_some_and(unnamed) || line.starts_with("    ... and again") {
            continue;
        }
        in_table = line.starts_with('─') || in_table && !line.is_empty();
        let line = if in_table { without_times(line) } else { without_addresses(line) };
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
    use std::path::{Path, PathBuf};

    use super::*;

    /// Each example runs on boards, or `docs/book/src/guides/boards.md` gives a reason for not
    /// running it.
    #[test]
    fn no_example_is_left_out_without_a_reason() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let sources = |directory: &str| -> Vec<(String, String)> {
            let entries = fs::read_dir(here.join(directory)).unwrap().map(|entry| entry.unwrap().path());
            let sources = entries.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
            let named = |path: PathBuf| {
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                (name, fs::read_to_string(path).unwrap())
            };
            sources.map(named).collect()
        };
        let mut examples: Vec<String> =
            sources("crates/punctual/examples").into_iter().map(|(name, _)| name).collect();
        examples.sort();
        let mut running: Vec<String> = Vec::new();
        for (name, source) in sources("bare/programs/src/bin") {
            for example in names(&source, "golden") {
                assert_eq!(name, example, "the program is named after its example");
                let path = format!("crates/punctual/examples/{example}.rs");
                let main = source.contains("programs::with_main!");
                assert!(main || source.contains(&path), "{name} is the example");
                running.push(name.clone());
            }
        }
        let page = fs::read_to_string(here.join("docs/book/src/guides/boards.md")).unwrap();
        let table = page.split_once("| examples | requirement |").expect("the page has the table").1;
        let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("| "));
        let mut accounted = running.clone();
        for row in rows {
            let (listed, reason) = row.split_once(" | ").expect("a row has two cells");
            assert!(!reason.trim_matches(['|', ' ']).is_empty(), "{listed}: why");
            accounted.extend(listed.split(", ").map(|name| name.trim_matches('`').to_owned()));
        }
        accounted.sort();
        assert_eq!(
            accounted, examples,
            "each example is a program, or in the table of docs/book/src/guides/boards.md"
        );
        let [run, all] = [running.len(), examples.len()];
        assert!(page.contains(&format!("compiles {run} of the {all} examples")), "{run} of {all}");
        assert!(page.contains(&format!("The other {} need services of Linux", all - run)));
    }

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
    fn leaves_out_times_of_a_report_and_nothing_else() {
        let printed = "after 1.00 s\n\ntask  jobs  J max\n───\nsample     20  1.24 µs  –  0\nns        3    8 ns  2\n\n5 ns\n";
        let expected = "after 1.00 s\n\ntask  jobs  J max\n───\nsample 20 … – 0\nns 3 … 2\n\n5 ns\n";
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

    #[test]
    fn reads_where_a_program_does_not_run() {
        let source = "//! Blinks.\n//! not-on: virt-a7, virt-a72: there is no such pin\n";
        assert_eq!(not_on(source).unwrap(), [Board::VirtA7, Board::VirtA72]);
        assert!(not_on("//! not-on: virt-a7\n").is_err());
        assert!(not_on("//! not-on: arduino: it is too small\n").is_err());
        let source = "//! golden: blink\n//! thorough: raspi2b, raspi3b\n\n//! golden: other\n";
        assert_eq!(names(source, "golden").collect::<Vec<_>>(), ["blink"]);
        assert_eq!(boards(names(source, "thorough")).unwrap(), [Board::Raspi2b, Board::Raspi3b]);
    }
}

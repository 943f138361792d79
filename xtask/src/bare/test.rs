//! `cargo xtask bare test`: runs the programs in QEMU, on counted time, and compares their output.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::board::Board;
use super::elf::Elf;
use super::emulator::Machine;
use super::programs::{Place, Program, comparable, with_measured};
use super::{benchmark, card, load, lrzsz, toolchain};
use crate::golden::diff;
use crate::process::{self, End};
use crate::{Result, cargo};

/// A run that takes longer hangs. Each takes a few seconds at most on an idle machine.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(240);

/// As [`TIME_LIMIT`], for the benchmark, which executes as many instructions as all programs
/// together.
const BENCHMARK_LIMIT: Duration = Duration::from_secs(1200);

/// A check that is not a program; its name is chosen like a program's.
struct Other {
    name: &'static str,
    /// Returns whether the check runs on a board, given whether the run is thorough.
    runs_on: fn(Board, bool) -> bool,
    check: fn(Board) -> Result,
}

const OTHERS: [Other; 4] = [
    // Once for each instruction set.
    Other {
        name: "punctual-boot",
        runs_on: |board, _| board.is_first_of_its_architecture(),
        check: load_and_run,
    },
    Other {
        name: lrzsz::NAME,
        runs_on: |board, thorough| board.is_first_of_its_architecture() || thorough,
        check: lrzsz::check,
    },
    Other {
        name: "template",
        runs_on: |board, thorough| board.is_first_of_its_architecture() || thorough,
        check: check_template,
    },
    Other { name: card::NAME, runs_on: |board, _| board.firmware().is_some(), check: card::check },
];

/// The name of the package of the check `template`.
const PACKAGE: &str = "my-board";

/// A loaded program that prints nothing for this long does not run.
pub(super) const LOAD_LIMIT: Duration = Duration::from_secs(60);

/// The selected programs and boards.
#[derive(Args)]
pub(crate) struct Options {
    /// Only on this board [default: on all]
    #[arg(long)]
    board: Vec<Board>,

    /// Also on boards on which a program hardly differs
    #[arg(long)]
    thorough: bool,

    /// List the programs and checks instead of running them
    #[arg(long)]
    list: bool,

    /// Programs to run [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

pub(super) fn run(options: &Options) -> Result {
    let mut programs = Program::all()?;
    if let Some(name) = options.names.iter().find(|&name| {
        OTHERS.iter().all(|other| other.name != *name) && programs.iter().all(|program| program.name != *name)
    }) {
        return Err(format!("no program is named `{name}`").into());
    }
    programs.retain(|program| options.names.is_empty() || options.names.contains(&program.name));
    if options.list {
        let others = OTHERS.iter().map(|other| other.name);
        programs
            .iter()
            .map(|program| program.name.as_str())
            .chain(others)
            .for_each(|name| println!("{name}"));
        return Ok(());
    }
    let boards = if options.board.is_empty() { Board::all() } else { &options.board[..] };

    if options.names.is_empty() {
        toolchain::lint()?;
        toolchain::test_drivers()?;
        toolchain::build_beside_linux()?;
    }
    let (mut runs, mut failures, mut has_missing_board) = (0, 0, false);
    let mut note = |board: Board, name: &str, check: &dyn Fn() -> Result| {
        runs += 1;
        print!("{board:9} {name:16} ");
        match check() {
            Ok(()) => println!("ok"),
            Err(error) => {
                failures += 1;
                println!("FAILED: {error}");
            }
        }
    };
    for &board in boards {
        if !Machine::exists(board)? {
            println!("\n*** {board}: SKIPPED, this QEMU does not have it; version 9 does. ***\n");
            has_missing_board = true;
            continue;
        }
        let mut on_board: Vec<&Program> =
            programs.iter().filter(|program| program.is_tested_on(board, options.thorough)).collect();
        on_board.sort_by_key(|program| (program.is_example, program.features(board, Place::Emulator)));
        for (program, elf) in build(board, &on_board)? {
            let machine = Machine::new(board, &elf)?;
            note(board, &program.name, &|| check(program, board, &machine));
        }
    }
    for other in &OTHERS {
        if !options.names.is_empty() && !options.names.iter().any(|name| name == other.name) {
            continue;
        }
        for &board in boards {
            if (other.runs_on)(board, options.thorough) && Machine::exists(board)? {
                note(board, other.name, &|| (other.check)(board));
            }
        }
    }
    match failures {
        0 if runs == 0 && !has_missing_board => {
            return Err("none of the named programs runs on the selected boards".into());
        }
        0 => println!("all as expected; runs: {runs}"),
        _ => return Err(format!("failed runs: {failures} of {runs}").into()),
    }
    Ok(())
}

/// Builds programs; programs with the same features are built together.
fn build<'a>(board: Board, programs: &[&'a Program]) -> Result<Vec<(&'a Program, PathBuf)>> {
    let mut built = Vec::new();
    let set = |program: &Program| (program.is_example, program.features(board, Place::Emulator));
    for same in programs.chunk_by(|one, other| set(one) == set(other)) {
        let elves = toolchain::build_all(board, Place::Emulator, same)?;
        built.extend(same.iter().copied().zip(elves));
    }
    Ok(built)
}

/// Sends `hello` to the boot loader, and waits for its greeting. Before that, the loader rejects
/// the image if it declares more bytes than there is room for, or if it is for another board.
fn load_and_run(board: Board) -> Result {
    let image = hello(board)?;
    let another = Board::all().iter().copied().find(|other| *other != board).ok_or("there is one board")?;
    let loader = Machine::new(board, &toolchain::build_loader(board)?)?;
    loader.with_line(|line| {
        let mut line = load::Serial::open(line)?;
        load::check_declaration(&image)?;
        if load::load(&mut line, board, &load::declaring(&image, u32::MAX)).is_ok() {
            return Err("the loader accepted an image that is too large".into());
        }
        line.wait_for("the image is too large for this board", LOAD_LIMIT)?;
        load::load(&mut line, another, &image)?;
        line.wait_for(&format!("the image is for {}", another.full_name), LOAD_LIMIT)?;
        load::load(&mut line, board, &image)?;
        line.wait_for("with the right CRC-32", LOAD_LIMIT)?;
        line.wait_for(&greeting(board), LOAD_LIMIT).map(drop)
    })
}

/// Returns the image of `hello` for a board.
pub(super) fn hello(board: Board) -> Result<Vec<u8>> {
    let hello = Program::named("hello")?;
    let hello = toolchain::build(board, Place::Board, &hello)?;
    Ok(Elf::for_board(board, &hello)?.image)
}

/// Returns the greeting of that program.
pub(super) fn greeting(board: Board) -> String {
    format!("Hello from {}", board.full_name)
}

/// Creates the package that `punctual new --template BOARD` writes, builds it with this checkout's
/// crates, and compares its output.
fn check_template(board: Board) -> Result {
    let package = create_package(board)?;
    let machine = Machine::new(board, &toolchain::build_package(board, &package, PACKAGE)?)?;
    let outcome = machine.run_counted(&[], None, TIME_LIMIT)?;
    let expected: String =
        (1..=3).map(|count| format!("Hello from {}: {count}\n", board.full_name)).collect();
    let printed = outcome.stdout.replace('\r', "");
    match outcome.end {
        End::Exited(0) if printed == expected => Ok(()),
        end => Err(format!("{end}, and printed:\n{printed}").into()),
    }
}

/// Runs `punctual new`; returns the directory of the package.
fn create_package(board: Board) -> Result<PathBuf> {
    // Outside of `bare`, because its cargo configuration would also apply to the package.
    let package = cargo::target_dir().join("bare-template").join(&board.name).join(PACKAGE);
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    fs::create_dir_all(package.parent().unwrap_or(&package))?;
    let mut new = cargo::command();
    new.args(["run", "--quiet", "--package", "punctual-cli", "--", "new"]);
    new.args(["--template", &board.name, "--path"]).arg(cargo::root()).arg(&package);
    process::succeed(&mut new)?;
    // The versions that this checkout uses, which have already been downloaded.
    fs::copy(toolchain::workspace().join("Cargo.lock"), package.join("Cargo.lock"))?;
    Ok(package)
}

fn check(program: &Program, board: Board, machine: &Machine) -> Result {
    let limit = if program.is_benchmark { BENCHMARK_LIMIT } else { TIME_LIMIT };
    let outcome = machine.run_counted(&program.emulator, program.input.as_deref(), limit)?;
    if program.is_benchmark {
        return benchmark::checked(&outcome).map(drop);
    }
    let expected = program.expected(board);
    let printed = if program.is_example {
        outcome.stdout.replace('\r', "")
    } else {
        comparable(&outcome.stdout, &expected)
    };
    let expected = with_measured(&expected, &printed);
    if let Some(difference) = diff(&expected, &printed) {
        let serial_output = outcome.stderr;
        return Err(
            format!("other output than expected ({}):\n{difference}{serial_output}", outcome.end).into()
        );
    }
    match outcome.end {
        End::Exited(code) if code == program.exit => Ok(()),
        end => Err(format!("{end} instead of exit code {}", program.exit).into()),
    }
}

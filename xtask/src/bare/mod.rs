//! `cargo xtask bare`, or `cargo xtask` in `bare/`: programs without an operating system, on boards
//! that QEMU emulates.

mod benchmark;
mod board;
mod card;
mod elf;
mod emulator;
mod errata;
mod examples;
mod image;
mod load;
mod lrzsz;
mod programs;
mod test;
mod toolchain;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::Result;
use board::Board;
use emulator::Machine;
use programs::{Place, Program};

/// The chosen command.
#[derive(Subcommand)]
pub(crate) enum Chore {
    /// Build a program for a board and run it in QEMU, with its UART as standard input and output
    Run {
        #[arg(long)]
        board: Board,
        /// On counted time instead of the host's: each instruction takes a nanosecond, and every
        /// run is the same
        #[arg(long)]
        counted: bool,
        /// Its name in programs/src/bin, or that of an example of `punctual`
        program: String,
    },
    /// Run a program in QEMU, halted at its first instruction, with gdb attached and its symbols
    /// loaded
    Debug {
        #[arg(long)]
        board: Board,
        /// Its name in programs/src/bin, or that of an example of `punctual`
        program: String,
        /// Commands for gdb, which ends after them
        #[arg(long = "command", value_name = "COMMAND")]
        commands: Vec<String>,
    },
    /// Write the files from which an SD card boots a program
    Image {
        #[arg(long)]
        board: Board,
        /// Its name in programs/src/bin, or that of an example of `punctual`
        program: String,
        /// Output directory [default: bare/target/sd/BOARD/PROGRAM]
        #[arg(long)]
        output: Option<PathBuf>,
    },
    /// Send a program to the boot loader of a board, and then show its output
    ///
    /// As a runner of cargo it sends the executable that cargo has built:
    /// CARGO_TARGET_AARCH64_UNKNOWN_NONE_RUNNER="cargo xtask load --serial /dev/ttyUSB0"
    Load {
        /// [default: the one that the boot loader reports]
        #[arg(long)]
        board: Option<Board>,
        /// The serial line, for example /dev/ttyUSB0
        #[arg(long)]
        serial: PathBuf,
        /// Its name in programs/src/bin, or the path of an executable, with a `/` in it
        program: String,
    },
    /// Build the programs for a CPU that Linux gave up, which `cargo xtask lab test --kernel
    /// rt-arm64` runs
    Amp,
    /// Run the benchmark of the kernel in QEMU, and write its result in the format of `punctual
    /// bench --json`
    Bench {
        #[arg(long)]
        board: Board,
        /// Output file
        #[arg(long)]
        json: PathBuf,
    },
    /// Run programs in QEMU and compare their output with the expected output
    Test(test::Options),
}

pub(crate) fn run(chore: &Chore) -> Result<ExitCode> {
    match chore {
        Chore::Run { board, counted, program } => {
            let (program, machine) = prepare(*board, program)?;
            eprintln!("{}: {}", program.name, machine.elf().sizes());
            machine.interact(&program.emulator, *counted)
        }
        Chore::Debug { board, program, commands } => {
            let (program, machine) = prepare(*board, program)?;
            machine.debug(&program.emulator, commands)
        }
        Chore::Image { board, program, output } => {
            image::write(*board, program, output.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Chore::Load { board, serial, program } => {
            let mut line = load::Serial::open(serial)?;
            let board = board.map_or_else(|| line.board(), Ok)?;
            let executable = if program.contains('/') {
                PathBuf::from(program)
            } else {
                let program = Program::named(program)?;
                program.check_runs_on(board, Place::Board)?;
                toolchain::build(board, Place::Board, &program)?
            };
            let elf = elf::Elf::for_board(board, &executable)?;
            eprintln!("{program}: {}", elf.sizes());
            load::load(&mut line, board, &elf.image)?;
            line.show().map(|()| ExitCode::SUCCESS)
        }
        Chore::Amp => toolchain::build_beside_linux().map(|()| ExitCode::SUCCESS),
        Chore::Bench { board, json } => benchmark::run(*board, json).map(|()| ExitCode::SUCCESS),
        Chore::Test(options) => test::run(options).map(|()| ExitCode::SUCCESS),
    }
}

/// Prepares a program for QEMU.
fn prepare(board: Board, name: &str) -> Result<(Program, Machine)> {
    let program = Program::named(name)?;
    program.check_runs_on(board, Place::Emulator)?;
    let elf = toolchain::build(board, Place::Emulator, &program)?;
    Ok((program, Machine::new(board, &elf)?))
}

//! `cargo xtask bare`, or `cargo xtask` in `bare/`: programs without an operating system, on boards that QEMU emulates.

mod board;
mod elf;
mod emulator;
mod programs;
mod test;
mod toolchain;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::Result;
use board::Board;

/// What to do.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build a program for a board and run it in QEMU, with its UART as standard input and output
    Run {
        #[arg(long)]
        board: Board,
        /// Its name in programs/src/bin
        program: String,
    },
    /// Run programs in QEMU and compare their output with the expected one
    Test(test::Options),
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    match &options.chore {
        Chore::Run { board, program } => {
            let elf = toolchain::build(*board, program)?;
            emulator::Machine::new(*board, &elf)?.interact()
        }
        Chore::Test(options) => test::run(options).map(|()| ExitCode::SUCCESS),
    }
}

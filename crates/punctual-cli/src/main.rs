//! `punctual`: what there is to do with a machine for real-time work, from the command line.
//!
//! A standard output that nobody reads any more, as under `| head`, ends it quietly. One that cannot be written to, as on a
//! full disk, is an error.
//!
//! Ends with 0 if all went well, 1 if a rule was not kept or a result could not be written, 2 if the command line makes no
//! sense, and 130 if a measurement was ended by Ctrl-C. `trace record` ends with the status of the command it started.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod bench;
mod display;
mod output;
mod trace;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use self::args::{Command, Punctual};

fn main() -> ExitCode {
    let command = match Punctual::try_parse() {
        Ok(Punctual { command }) => command,
        Err(message) => return output::settle(tell(&message)),
    };
    output::settle(match command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
    })
}

/// Prints what is wrong with the command line, or the help or version that was asked for, and gives the status to end with.
fn tell(message: &clap::Error) -> ExitCode {
    let printed = message.print().and_then(|()| io::stdout().flush());
    if !message.use_stderr() {
        output::note(printed);
    }
    u8::try_from(message.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

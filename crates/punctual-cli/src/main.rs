//! `punctual`: what there is to do with a machine for real-time work, from the command line.
//!
//! Ends with 0 if all went well, 1 if a rule was not kept or a result could not be written, 2 if the command line makes no
//! sense, and 130 if a measurement was ended by Ctrl-C. `trace record` ends with the status of the command it started.

mod args;
mod bench;
mod display;
mod output;
mod trace;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args::Punctual { command } = args::Punctual::parse();
    match command {
        args::Command::Bench(arguments) => bench::run(&arguments),
        args::Command::Trace(arguments) => trace::run(&arguments),
    }
}

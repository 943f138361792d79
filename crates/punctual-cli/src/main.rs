//! `punctual`: benchmarks a machine for real-time work, diagnoses it, isolates CPUs from the rest
//! of the system, watches and tunes running apps, bounds response times, and traces the time of
//! jobs.
//!
//! If the reader of standard output goes away, as under `| head`, the program ends quietly. Any
//! other failure to write, as on a full disk, is an error.
//!
//! `status` has the exit statuses.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod app;
mod args;
mod bench;
mod check;
mod display;
mod doctor;
mod isolate;
mod new;
mod output;
mod parameters;
mod parse;
mod recover;
mod replay;
mod rta;
mod shell;
mod status;
mod supervise;
mod top;
mod trace;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use self::args::{Command, Punctual};
use self::status::end;

fn main() -> ExitCode {
    // A parent that ignores SIGCHLD would discard the exit status of every child.
    punctual_process::signals::keep_exit_statuses();
    // A file truncated by RLIMIT_FSIZE is an error with a message. Only a sandbox refuses a
    // handler.
    let _ = punctual_process::signals::survive_file_size_limit();
    let command = match Punctual::try_parse() {
        Ok(Punctual { command }) => command,
        Err(message) => return output::settle(print_usage(&message)),
    };
    // Even if this run fails: the kernel continues to record for a killed recorder.
    let _names = punctual_trace::record::remove_leftovers();
    output::settle(match command {
        Command::Bench(arguments) => end(bench::run(&arguments)),
        Command::Check(arguments) => end(check::run(&arguments)),
        Command::Doctor(arguments) => end(doctor::run(&arguments)),
        Command::Get(arguments) => parameters::get(&arguments),
        Command::Isolate(arguments) => end(isolate::run(&arguments)),
        Command::New(arguments) => end(new::run(&arguments)),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Replay(arguments) => end(replay::run(&arguments)),
        Command::Rta(arguments) => end(rta::run(&arguments)),
        Command::Set(arguments) => parameters::set(&arguments),
        Command::Supervise(arguments) => end(supervise::run(&arguments)),
        Command::Top(arguments) => end(top::run(&arguments)),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments, &mut Punctual::command()),
        Command::Man(arguments) => end(shell::man(&arguments, Punctual::command())),
    })
}

/// Prints the usage error, help or version, and returns the exit status.
fn print_usage(message: &clap::Error) -> ExitCode {
    let printed = message.print().and_then(|()| io::stdout().flush());
    if !message.use_stderr() {
        output::note(printed);
    }
    u8::try_from(message.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

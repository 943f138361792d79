//! Programs on a PREEMPT_RT kernel, without the need for such a kernel on this machine: `cargo
//! xtask lab`.
//!
//! The kernel is Debian's, or built from Debian's source, and runs in QEMU without hardware
//! virtualization, so it requires neither privileges nor host modules, and works inside a virtual
//! machine. `docs/book/src/guides/lab.md` explains the meaning of its times.
//!
//! * `options` is the command line.
//! * `kernels` downloads or builds kernels and their modules, and caches them.
//! * `driver` runs a program on one machine: a guest in QEMU, or a board over ssh.
//! * `suite` runs the `cases` on every machine that they need, and reports the results.
//! * `figures` measures the cost of operations in instructions, and compares it with a file.
//! * `arch`, `tools`, `trouble` and `workdir` are common to all of them.

mod arch;
mod cases;
mod driver;
mod figures;
mod kernels;
mod options;
mod suite;
mod tools;
mod trouble;
mod workdir;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process;

use punctual_process::child::BoundedCommand;
use xtask_support::process::TOOL_LIMIT;

use clap::Parser;
use xtask_support::{Result, counted};

use driver::board::Board;
use driver::guest::{Ended, Guest, Stream};
use driver::machine::{Machine, Mode};
use driver::stage::Job;
pub use figures::PROGRAM;
pub use figures::command::FigureCheck;
use kernels::{Kernel, Purpose, modules};
use options::{Action, Arguments, Boot, Run};
use trouble::{Interrupt, Trouble};

/// The prefixes of host variables that are passed to the guest.
const PASSED_ON: [&str; 2] = ["PUNCTUAL_", "RUST_"];

/// Runs the command given by the words after `cargo xtask lab`, and returns the exit status.
///
/// For `run` it is that of the command; 124, 125 and 130 are the lab's own.
pub fn run(words: impl IntoIterator<Item = OsString>) -> i32 {
    let arguments = match Arguments::try_parse_from([OsString::from("lab")].into_iter().chain(words)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // The exit status reports it, even if this cannot be printed.
            let _ = error.print();
            return if error.use_stderr() { Trouble::OTHER } else { 0 };
        }
    };
    perform(arguments.action).unwrap_or_else(|error| {
        if !matches!(error.downcast_ref(), Some(Trouble::Unread)) {
            let _ = writeln!(io::stderr(), "lab: {error}");
        }
        Trouble::status(error.as_ref())
    })
}

fn perform(action: Action) -> Result<i32> {
    match action {
        Action::Run(Run { host: Some(host), boot, command, .. }) => run_on_board(&host, &boot, command),
        Action::Run(Run { host: None, boot: options, icount, command }) => {
            let machine = Machine { counted: icount, ..options.machine()? };
            let mode = if icount { Mode::Late } else { Mode::Share };
            boot(&options, machine, mode, command)
        }
        Action::Shell(options) => {
            if !io::stdin().is_terminal() {
                return Err(
                    "a shell needs a terminal; a script runs by `cargo xtask lab run -- sh -c …`".into()
                );
            }
            boot(&options, options.machine()?, Mode::Shell, Vec::new())
        }
        Action::Kernel { cached, name } => {
            let kernel = if cached {
                let absent = || format!("the kernel `{}` is not in the cache", name.name());
                Kernel::cached(name).ok_or_else(absent)?
            } else {
                Kernel::newest(name, &Interrupt::install()?)?
            };
            println!("{}", kernel.directory().display());
            Ok(0)
        }
        Action::Test(selection) => suite::run(&selection),
        Action::Figures(options) => figures::command::run(&options),
    }
}

/// Boots `machine` once and runs `command`, or a shell, depending on `mode`.
fn boot(options: &Boot, machine: Machine, mode: Mode, command: Vec<String>) -> Result<i32> {
    let results = results(options)?;
    tools::require([options.kernel.arch().qemu(), "setpriv", "busybox", "ldd"])?;
    let mut job = job(options, command)?;
    let interrupt = Interrupt::install()?;
    let kernel = Kernel::get(options.kernel, &interrupt)?;
    if !options.modules.is_empty() {
        job.modules = modules::get(&kernel, &interrupt)?;
        job.load.clone_from(&options.modules);
    }
    if machine.network {
        if kernel.modules(Purpose::Network).is_empty() {
            return Err(format!(
                "--network: {} has no driver for a network card in {}; `rt`, `stock` and `rt-arm64` have one, unless an \
                 earlier version of the lab fetched them: in that case delete that directory",
                kernel.package,
                kernel.directory().display()
            )
            .into());
        }
        job.network = true;
    }
    if let Some(userland) = kernel.arch.userland() {
        userland.get(&interrupt)?;
    }
    let guest = Guest {
        machine: machine.clone(),
        kernel: &kernel,
        mode,
        timeout: options.timeout,
        interrupt: &interrupt,
    };
    let bring_back = |from: &Path| bring_back(from, &results);
    let ended = guest.run(&job, &mut pass_on, &bring_back);
    if mode == Mode::Shell && ended.is_err() {
        // QEMU changes the terminal's settings, and was ended before it could restore them.
        let _ = process::Command::new("stty").arg("sane").status_within(TOOL_LIMIT);
    }
    let ended = ended?;
    conclude(&ended, &kernel, &machine);
    bring_back(&ended.results)?;
    Ok(ended.status)
}

/// Returns the job of running `command`, with its files and variables.
fn job(options: &Boot, command: Vec<String>) -> Result<Job> {
    let mut job = Job::new(command)?;
    job.programs.extend(options.with.iter().cloned());
    let passed_on = |name: &str| PASSED_ON.iter().any(|start| name.starts_with(start));
    for (name, value) in env::vars_os() {
        if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string())
            && passed_on(&name)
        {
            job.environment.insert(name, value);
        }
    }
    Ok(job)
}

/// Runs `command` on a real machine.
fn run_on_board(host: &str, options: &Boot, command: Vec<String>) -> Result<i32> {
    let results = results(options)?;
    let job = job(options, command)?;
    let interrupt = Interrupt::install()?;
    let board = Board::connect(host, &interrupt)?;
    board.stage(&job)?;
    let ended = board.run(&job, options.timeout.as_secs());
    // Also of a command that did not end.
    let fetched = board.fetch(&results);
    let status = ended?;
    eprintln!("lab: {host}, {}, {}, status {status}", board.system, counted(board.cpus as usize, "CPU"));
    announce(fetched?, &results);
    Ok(status)
}

/// Returns the directory for returned files; our own directory has only those of the last run. A
/// directory that is not writable is rejected at once, since a run may take hours.
fn results(options: &Boot) -> Result<PathBuf> {
    match &options.results {
        Some(directory) => {
            workdir::takes_files(directory).map_err(|error| format!("--results: {error}"))?;
            Ok(directory.clone())
        }
        None => {
            let directory = workdir::cache().join("results");
            match fs::remove_dir_all(&directory) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(workdir::at(&directory)(error).into())
                }
                _ => Ok(directory),
            }
        }
    }
}

fn bring_back(from: &Path, to: &Path) -> Result {
    announce(workdir::move_contents(from, to)?, to);
    Ok(())
}

fn announce(count: usize, to: &Path) {
    if count > 0 {
        eprintln!("lab: {} in {}", counted(count, "file"), to.display());
    }
}

/// Prints the command's output as it arrives.
fn pass_on(stream: Stream, bytes: &[u8]) -> Result {
    let passed = match stream {
        Stream::Stdout => io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()),
        Stream::Stderr => io::stderr().write_all(bytes),
    };
    match passed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Trouble::Unread.into()),
        Err(error) => Err(format!("cannot pass on what the command prints: {error}").into()),
        Ok(()) => Ok(()),
    }
}

/// Prints a summary of the run.
fn conclude(ended: &Ended, kernel: &Kernel, machine: &Machine) {
    if let Some(line) = ended.console.out_of_memory() {
        let memory = machine.memory;
        eprintln!(
            "lab: the guest ran out of its {memory} MB of memory (--memory): {line}\n{}",
            ended.console.tail()
        );
    }
    eprintln!(
        "lab: {}, {} CPU, command started after {:.1} s, status {}",
        kernel.package,
        machine.cpus,
        ended.boot.as_secs_f64(),
        ended.status
    );
}

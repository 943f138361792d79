//! `cargo xtask lab`: programs on a PREEMPT_RT kernel, which this machine need not have.
//!
//! The kernel is Debian's, or built of Debian's source, and runs in QEMU without any help of the processor, so it takes
//! neither privileges nor modules of the host, and works inside a virtual machine. `docs/lab.md` says what its times mean.
//!
//! [`options`] reads the words of the user. [`kernel`] has a kernel ready, taken from a [`package`] that [`apt`] gets,
//! with [`payload`], or made by [`build`]; [`modules`] adds some of our own; what is made is kept under its [`key`].
//! [`debs`] has programs of Debian's. [`stage`] packs what runs, with [`cpio`]; [`machine`] knows QEMU's options and
//! [`arch`] what depends on the processor; [`guest`] runs one machine and finds out by its [`console`] what went wrong.
//! [`board`] runs on a real machine instead. [`suite`] runs those of the [`cases`] that the [`selection`] has, on both,
//! and [`verdicts`] tells how they went. [`workdir`] and [`trouble`] see to it that nothing is left behind.

mod apt;
mod arch;
mod board;
mod build;
mod cases;
mod console;
mod cpio;
mod cross;
mod debs;
mod elf;
mod guest;
mod headers;
mod kernel;
mod key;
mod machine;
mod modules;
mod options;
mod package;
mod payload;
mod selection;
mod stage;
mod suite;
mod tools;
mod trouble;
mod verdicts;
mod workdir;

use std::env;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process;

use board::Board;
use guest::{Ended, Guest, Stream};
use kernel::Kernel;
use machine::Mode;
use options::{Options, USAGE};
use package::Flavour;
use stage::Job;
use trouble::{Interrupt, Trouble};

use crate::Result;

/// Variables of the host that go to the guest begin with one of these.
const PASSED_ON: [&str; 2] = ["PUNCTUAL_", "RUST_"];

pub(crate) fn run(arguments: &[String]) -> Result {
    match dispatch(arguments) {
        Ok(0) => Ok(()),
        Ok(status) => process::exit(status),
        Err(error) => {
            eprintln!("lab: {error}");
            process::exit(Trouble::status(error.as_ref()))
        }
    }
}

/// Does what the words say; returns the status to exit with.
fn dispatch(arguments: &[String]) -> Result<i32> {
    let (chore, rest) = arguments.split_first().ok_or(USAGE)?;
    match chore.as_str() {
        "run" => {
            let options = Options::parse(rest)?;
            if options.command.is_empty() {
                return Err(format!("there is no command to run\n{USAGE}").into());
            }
            if let Some(host) = &options.host {
                return run_on_board(host, &options);
            }
            let mode = if options.machine.counted { Mode::Late } else { Mode::Share };
            boot(&options, mode)
        }
        "shell" => {
            let options = Options::parse(rest)?;
            if !options.command.is_empty() || options.machine.counted || options.host.is_some() {
                return Err("a shell takes neither a command nor --icount nor --host; `lab run` does".into());
            }
            if !io::stdin().is_terminal() {
                return Err(
                    "a shell needs a terminal; a script runs by `cargo xtask lab run -- sh -c …`".into()
                );
            }
            boot(&options, Mode::Shell)
        }
        "kernel" => {
            let kernel = match rest {
                [name] => Kernel::newest(Flavour::named(name)?, &Interrupt::install()?)?,
                [flag, name] if flag == "--cached" => {
                    let absent = || format!("the kernel `{name}` is not in the cache");
                    Kernel::cached(Flavour::named(name)?).ok_or_else(absent)?
                }
                _ => return Err(format!("`kernel` takes one name\n{USAGE}").into()),
            };
            println!("{}", kernel.directory().display());
            Ok(0)
        }
        "test" => suite::run(rest),
        "--help" | "help" => {
            println!("{USAGE}");
            Ok(0)
        }
        _ => Err(format!("unknown word `{chore}`\n{USAGE}").into()),
    }
}

/// Boots once and runs the command that `options` has, or a prompt if `mode` is one.
fn boot(options: &Options, mode: Mode) -> Result<i32> {
    tools::require([options.flavour.arch().qemu(), "setpriv", "busybox", "ldd"])?;
    let mut job = job(options)?;
    let interrupt = Interrupt::install()?;
    let kernel = Kernel::get(options.flavour, &interrupt)?;
    if !options.modules.is_empty() {
        job.modules = modules::get(&kernel, &interrupt)?;
        job.load.clone_from(&options.modules);
    }
    if let Some(userland) = kernel.arch.userland() {
        userland.get(&interrupt)?;
    }
    let guest = Guest {
        machine: options.machine.clone(),
        kernel: &kernel,
        mode,
        timeout: options.timeout,
        interrupt: &interrupt,
    };
    let results = results(options)?;
    let bring_back = |from: &Path| bring_back(from, &results);
    let ended = guest.run(&job, &mut pass_on, &bring_back);
    if mode == Mode::Shell && ended.is_err() {
        // QEMU takes the terminal as it needs it, and was ended before it could give it back.
        let _ = process::Command::new("stty").arg("sane").status();
    }
    let ended = ended?;
    conclude(&ended, &kernel, options);
    bring_back(&ended.results)?;
    Ok(ended.status)
}

/// The command of `options`, with the files and variables that go along.
fn job(options: &Options) -> Result<Job> {
    let mut job = Job::new(options.command.clone())?;
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

/// Runs the command that `options` has on a real machine.
fn run_on_board(host: &str, options: &Options) -> Result<i32> {
    let job = job(options)?;
    let interrupt = Interrupt::install()?;
    let board = Board::connect(host, &interrupt)?;
    board.stage(&job)?;
    let results = results(options)?;
    let ended = board.run(&job, options.timeout.as_secs());
    // Also of a command that did not end.
    let fetched = board.fetch(&results);
    let status = ended?;
    eprintln!("lab: {host}, {}, {} CPUs, status {status}", board.system, board.cpus);
    announce(fetched?, &results);
    Ok(status)
}

/// Where files that come back go; our own directory has those of the last run only.
fn results(options: &Options) -> Result<PathBuf> {
    match &options.results {
        Some(directory) => Ok(directory.clone()),
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
    match count {
        0 => {}
        1 => eprintln!("lab: 1 file in {}", to.display()),
        count => eprintln!("lab: {count} files in {}", to.display()),
    }
}

/// Prints what the command prints, as it comes.
fn pass_on(stream: Stream, bytes: &[u8]) {
    // Nobody may be listening any more; the command runs on all the same.
    let _ = match stream {
        Stream::Stdout => io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()),
        Stream::Stderr => io::stderr().write_all(bytes),
    };
}

/// Says what the user would otherwise not know.
fn conclude(ended: &Ended, kernel: &Kernel, options: &Options) {
    if let Some(line) = ended.console.out_of_memory() {
        let memory = options.machine.memory;
        eprintln!(
            "lab: the guest ran out of its {memory} MB of memory (--memory): {line}\n{}",
            ended.console.tail()
        );
    }
    eprintln!(
        "lab: {}, {} CPU, command started after {:.1} s, status {}",
        kernel.package,
        options.machine.cpus,
        ended.boot.as_secs_f64(),
        ended.status
    );
}

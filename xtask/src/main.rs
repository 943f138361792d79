//! The chores of the workspace: `cargo xtask help` lists them.
//!
//! Each subcommand is a module with a `run` function. The other modules serve several of them: [`cargo`] builds,
//! [`process`] runs what was built, [`golden`], [`header`] and [`diff`] hold an example to its expected output, and
//! [`variants`] makes more programs of the same examples.

mod book;
mod bpf;
mod cargo;
mod ci;
mod confined;
mod diff;
mod examples;
mod fuzz;
mod golden;
mod header;
mod lab;
mod lane;
mod loom;
mod mutants;
mod process;
mod sanitize;
mod scratch;
mod seeds;
mod stress;
mod unprivileged;
mod variants;

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

/// What a chore returns; the error is a message for the person who typed the command.
type Result<T = (), E = Box<dyn Error>> = std::result::Result<T, E>;

/// One subcommand.
struct Chore {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result,
}

const CHORES: &[Chore] = &[
    Chore {
        name: "examples",
        usage: "examples [--bless] [NAME..]",
        about: "run the examples on both ports and all executors and compare their output with the expected files",
        run: examples::run,
    },
    Chore {
        name: "loom",
        usage: "loom [--package NAME].. [--seed NAME]..",
        about: "model-check the protocols, and check that the models catch every seeded bug",
        run: loom::run,
    },
    Chore {
        name: "mutants",
        usage: "mutants [--list] [--package NAME].. [--file SRC].. [..]",
        about: "put small bugs into the protocols one by one, and list those that no model or test notices",
        run: mutants::run,
    },
    Chore {
        name: "sanitize",
        usage: "sanitize [address|thread]..",
        about: "run the runtime's tests under AddressSanitizer and ThreadSanitizer",
        run: sanitize::run,
    },
    Chore {
        name: "fuzz",
        usage: "fuzz [apps|traces [--seconds N] [..]]",
        about: "run apps that are made up at random, and fuzz the readers of traces, each for 60 s unless told otherwise",
        run: fuzz::run,
    },
    Chore {
        name: "stress",
        usage: "stress [--seconds N]",
        about: "stress each kind of executor on real threads in a release build, 20 s unless told otherwise",
        run: stress::run,
    },
    Chore {
        name: "lab",
        usage: "lab run|shell|test [..]",
        about: "programs on Debian's PREEMPT_RT kernel, in QEMU; `cargo xtask lab help` says more",
        run: lab::run,
    },
    Chore {
        name: "unprivileged",
        usage: "unprivileged",
        about: "as root: run tests and examples again as a user without privileges",
        run: unprivileged::run,
    },
    Chore {
        name: "book",
        usage: "book [--check|--install]",
        about: "check that the tutorial and the README show what is tested, and build the book into target/book by mdBook",
        run: book::run,
    },
    Chore {
        name: "bpf",
        usage: "bpf [--check]",
        about: "with clang: build the BPF object of punctual-trace, or check that the committed one is what its source gives",
        run: bpf::run,
    },
    Chore { name: "ci", usage: "ci", about: "everything that is checked before a merge", run: ci::run },
    Chore { name: "help", usage: "help", about: "print this list", run: help },
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_else(|| "help".to_owned());
    let arguments: Vec<String> = words.collect();

    let outcome = match CHORES.iter().find(|chore| chore.name == name) {
        Some(chore) => (chore.run)(&arguments),
        None => Err("no such chore; `cargo xtask help` lists them".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The status says it too, whether or not this can be read.
            let _ = writeln!(std::io::stderr(), "xtask {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn help(_: &[String]) -> Result {
    println!("Usage: cargo xtask <chore>\n");
    let width = CHORES.iter().map(|chore| chore.usage.len()).max().unwrap_or(0);
    for chore in CHORES {
        println!("  {:width$}  {}", chore.usage, chore.about);
    }
    Ok(())
}

/// Refuses arguments on behalf of a chore that takes none.
fn no_arguments(arguments: &[String]) -> Result {
    match arguments.first() {
        None => Ok(()),
        Some(word) => Err(format!("unexpected argument `{word}`").into()),
    }
}

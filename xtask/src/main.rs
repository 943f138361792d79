//! The development commands of the workspace: `cargo xtask help` lists them.
//!
//! Each subcommand is a module with a `run` function, and the enums below are the table of them.
//! The other modules are shared: [`working_copy`] copies packages, [`confined`] runs tests of code
//! that contains a bug, and [`variants`] derives further programs from the examples.

mod bare;
mod benchmarks;
mod book;
mod bpf;
mod confined;
mod examples;
mod fuzz;
mod instructions;
mod loom;
mod mutants;
mod nightly;
mod pycpa;
mod release;
mod sample;
mod sanitize;
mod seeds;
mod slowdowns;
mod test;
mod traces;
mod transports;
mod unprivileged;
mod variants;
mod working_copy;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask_support::{Result, cargo, files, golden, process, scratch};

/// The development commands of the workspace.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run all tests of the workspace and count the results; or run tests in another environment
    Test {
        #[command(subcommand)]
        environment: Option<Environment>,
    },
    /// Compare outputs and figures with the committed ones or with those of other tools
    #[command(subcommand)]
    Check(Check),
    /// Replace committed outputs and figures by the current ones
    #[command(subcommand)]
    Bless(Bless),
    /// Model-check the protocols, and check that the tests catch every seeded bug
    Loom(loom::Options),
    /// Insert small bugs into the protocols one by one, and list those that no model or test
    /// detects
    Mutants(mutants::Options),
    /// Run programs and readers with random inputs; without a target, all readers and apps for a
    /// minute each
    Fuzz {
        #[command(subcommand)]
        target: Option<fuzz::Target>,
    },
    /// Run programs on a PREEMPT_RT kernel in QEMU; see `cargo xtask lab help`
    #[command(disable_help_flag = true)]
    Lab {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<OsString>,
    },
    /// Build and run programs without an operating system; in `bare/`, `cargo xtask` alone does
    #[command(subcommand)]
    Bare(bare::Chore),
    /// Run the checks that take too long for a merge, part by part
    Nightly(nightly::Options),
}

#[derive(Subcommand)]
enum Environment {
    /// Unit tests under Miri
    Miri,
    /// The runtime's tests under AddressSanitizer and ThreadSanitizer
    Sanitize(sanitize::Options),
    /// The crates of extras/ (ROS 1, ROS 2, Zenoh, EtherCAT) with their peers, and their lints
    Transports(transports::Options),
    /// As root: tests and examples again as a user without privileges; up to three failed test
    /// executables run once more
    Unprivileged,
}

#[derive(Subcommand)]
enum Check {
    /// The book and the README show tested code; builds the book into target/book with mdBook
    Book,
    /// With clang: the BPF object of punctual-trace matches its source
    Bpf,
    /// The examples print the expected lines on both ports and all executors
    Examples(examples::Options),
    /// With valgrind: spawning and locking take the recorded numbers of instructions
    Instructions(instructions::Options),
    /// The response-time analysis agrees with pyCPA (requires Python 3, and git unless --path is
    /// given)
    Pycpa(pycpa::Options),
    /// With trace-cmd and babeltrace2: recordings published by others are read as those tools do
    Recordings(traces::Options),
    /// Every crate can be published, and used from a registry: manifests, documentation, oldest
    /// compiler, interface, installation and templates
    Release(release::Options),
    /// The figures of the lab show slow-downs that are inserted into the runtime one by one
    Slowdowns(slowdowns::Options),
}

#[derive(Subcommand)]
enum Bless {
    /// Run `punctual bench` at least 20 times and generate BENCHMARKS.md
    Benchmarks(benchmarks::Options),
    /// With clang: build the BPF object of punctual-trace
    Bpf,
    /// Make the output of the examples the expected output, then check them
    Examples(examples::Options),
    /// With valgrind: record the instructions of spawning and locking
    Instructions,
    /// With valgrind and addr2line: write the instructions of a period, by part, into the book
    Period,
}

impl Chore {
    fn run(&self) -> Result<ExitCode> {
        match self {
            Self::Test { environment: None } => test::run(),
            Self::Test { environment: Some(environment) } => match environment {
                Environment::Miri => sanitize::miri(),
                Environment::Sanitize(options) => sanitize::run(options),
                Environment::Transports(options) => transports::run(options),
                Environment::Unprivileged => unprivileged::run(),
            },
            Self::Check(check) => match check {
                Check::Book => book::run(),
                Check::Bpf => bpf::check(),
                Check::Examples(options) => examples::run(options, false),
                Check::Instructions(options) => instructions::check(options),
                Check::Pycpa(options) => pycpa::run(options),
                Check::Recordings(options) => traces::run(options),
                Check::Release(options) => release::run(options),
                Check::Slowdowns(options) => slowdowns::run(options),
            },
            Self::Bless(bless) => match bless {
                Bless::Benchmarks(options) => benchmarks::run(options),
                Bless::Bpf => bpf::bless(),
                Bless::Examples(options) => examples::run(options, true),
                Bless::Instructions => instructions::run(true),
                Bless::Period => instructions::period::bless(),
            },
            Self::Loom(options) => loom::run(options),
            Self::Mutants(options) => mutants::run(options),
            Self::Fuzz { target } => fuzz::run(target.as_ref()),
            // The exit status may be that of the program that it has run.
            Self::Lab { words } => {
                let status = lab::run(words.iter().cloned());
                return Ok(u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from));
            }
            Self::Bare(chore) => return bare::run(chore),
            Self::Nightly(options) => nightly::run(options),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

fn main() -> ExitCode {
    match Arguments::parse().chore.run() {
        Ok(code) => code,
        Err(error) => {
            // The exit status reports the failure even if this message cannot be written.
            let _ = writeln!(std::io::stderr(), "xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Panics unless `cargo xtask` accepts these words.
    pub(crate) fn accepts(words: &[&str]) {
        let parsed = Arguments::try_parse_from(["xtask"].iter().chain(words));
        assert!(
            parsed.is_ok(),
            "{words:?}: {}",
            parsed.err().map(|error| error.to_string()).unwrap_or_default()
        );
    }

    /// Commands that run a part of a check, each with a filter that matches nothing, and its error.
    const FILTERED: [(&str, &str, &str); 14] = [
        ("bare test", "typo", "no program is named `typo`"),
        ("bless examples", "typo", "no example is named `typo`"),
        ("check examples", "typo", "no example is named `typo`"),
        ("check slowdowns", "--seed typo", "no seed is named `typo`"),
        ("fuzz machines", "typo", "there is no fuzz target `typo`"),
        ("fuzz models", "typo", "there is no fuzz target `typo`"),
        ("fuzz traces", "typo", "there is no fuzz target `typo`"),
        ("lab test", "--only typo", "the lab ends with status 125"),
        ("loom", "--seed typo", "no seed is named `typo`"),
        ("loom", "--package typo", "typo: it is none of"),
        ("mutants", "--file typo.rs", "--file typo.rs: it has no mutations"),
        ("mutants --logic", "--file typo.rs", "--file typo.rs: no source has this name"),
        ("nightly", "typo", "the parts are"),
        ("test sanitize", "--test typo", "no test executable is named `typo`"),
    ];

    /// Runs a command line of `cargo xtask`.
    fn run(words: &str) -> Result<(), String> {
        if let Some(words) = words.strip_prefix("lab ") {
            return match lab::run(words.split_whitespace().map(OsString::from)) {
                0 => Ok(()),
                status => Err(format!("the lab ends with status {status}")),
            };
        }
        let parsed = Arguments::try_parse_from(["xtask"].into_iter().chain(words.split_whitespace()));
        let run = parsed.map_err(Into::into).and_then(|arguments| arguments.chore.run());
        run.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn filters_that_match_nothing_fail() {
        for (command, filter, error) in FILTERED {
            let printed = run(&format!("{command} {filter}")).expect_err(command);
            assert!(printed.contains(error), "{command} {filter}: {printed}");
        }
    }

    #[test]
    fn commands_with_filters_have_lists() {
        // Cargo-mutants, which need not be installed, lists the mutations of logic.
        for (command, ..) in FILTERED.iter().filter(|(command, ..)| *command != "mutants --logic") {
            assert_eq!(run(&format!("{command} --list")), Ok(()), "{command}");
        }
    }

    /// A command that takes names has to be in the table above. Other lists are no filters.
    #[test]
    fn commands_with_filters_are_known() {
        const NO_FILTERS: [&str; 2] = ["bare debug", "fuzz apps"];
        let mut open = vec![(String::new(), Arguments::command())];
        while let Some((path, command)) = open.pop() {
            let takes_names = command.get_arguments().any(|argument| {
                !argument.is_last_set() && matches!(argument.get_action(), clap::ArgAction::Append)
            });
            let path = path.trim().to_owned();
            if takes_names && path != "lab" && !NO_FILTERS.contains(&path.as_str()) {
                assert!(FILTERED.iter().any(|(known, ..)| *known == path), "{path} takes names");
            }
            open.extend(
                command
                    .get_subcommands()
                    .map(|inner| (format!("{path} {}", inner.get_name()), inner.clone())),
            );
        }
    }
}

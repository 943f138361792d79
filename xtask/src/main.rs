//! The development commands of the workspace: `cargo xtask help` lists them.
//!
//! Each subcommand is a module with a `run` function. The other modules are shared:
//! [`working_copy`] copies packages, [`confined`] runs tests of code that contains a bug, and
//! [`variants`] derives further programs from the examples.

mod bare;
mod benchmarks;
mod book;
mod bpf;
mod confined;
mod examples;
mod fuzz;
mod instructions;
mod loom;
mod miri;
mod mutants;
mod nightly;
mod release;
mod rta;
mod sample;
mod sanitize;
mod schedules;
mod seeds;
mod slowdowns;
mod stress;
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
use xtask_support::{Result, cargo, golden, process, scratch};

/// The development commands of the workspace.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run the examples on both ports and all executors, and compare their output with the expected
    /// files
    Examples(examples::Options),
    /// Model-check the protocols, and check that the models catch every seeded bug
    Loom(loom::Options),
    /// Insert small bugs into the protocols one by one, and list those that no model or test
    /// detects
    Mutants(mutants::Options),
    /// Run the runtime's tests under AddressSanitizer and ThreadSanitizer
    Sanitize(sanitize::Options),
    /// Run unit tests under Miri
    Miri,
    /// Fuzz the readers of traces, then run random apps, for a minute each
    Fuzz(fuzz::Options),
    /// Compare the response-time analysis with the executor and with another analysis, and seed
    /// bugs in it
    Rta(rta::Options),
    /// With trace-cmd: fetch recordings published by others, and compare the number of events read
    /// from each
    Traces(traces::Options),
    /// Lint and test the crates of extras/: ROS 1, ROS 2 and Zenoh, with real peers
    Transports,
    /// Stress each kind of executor on real threads, in a release build
    Stress(stress::Options),
    /// Run random programs on the simulated kernel of punctual-kernel, and compare with the model
    Schedules(schedules::Options),
    /// Run programs on a PREEMPT_RT kernel in QEMU; see `cargo xtask lab help`
    #[command(disable_help_flag = true)]
    Lab {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<OsString>,
    },
    /// With valgrind: count the instructions of spawning and locking, and compare them with the
    /// recorded counts
    Instructions(instructions::Options),
    /// Run `punctual bench` at least 20 times and generate BENCHMARKS.md
    Benchmarks(benchmarks::Options),
    /// Insert slow-downs into the runtime one by one; the figures of the lab must show each of them
    Slowdowns(slowdowns::Options),
    /// Build and run programs without an operating system; in `bare/`, `cargo xtask` alone does
    Bare(bare::Options),
    /// As root: run tests and examples again as a user without privileges
    Unprivileged(unprivileged::Options),
    /// Check that the tutorial and the README show tested code, and build the book into target/book
    /// with mdBook
    Book(book::Options),
    /// With clang: build the BPF object of punctual-trace, or check that the committed object
    /// matches its source
    Bpf(bpf::Options),
    /// Check that every crate can be published: manifests, packages, documentation, oldest
    /// compiler, interface
    ReleaseCheck(release::Options),
    /// Run `cargo test --workspace`, retry failures once, and count the results
    Test,
    /// Run the checks that take too long for a merge, part by part
    Nightly(nightly::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Examples(options) => examples::run(&options),
        Chore::Loom(options) => loom::run(&options),
        Chore::Mutants(options) => mutants::run(&options),
        Chore::Sanitize(options) => sanitize::run(&options),
        Chore::Miri => miri::run(),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Rta(options) => rta::run(&options),
        Chore::Traces(options) => traces::run(&options),
        Chore::Transports => transports::run(),
        Chore::Stress(options) => stress::run(&options),
        Chore::Schedules(options) => schedules::run(&options),
        // The exit status may be that of the program it has run.
        Chore::Lab { words } => std::process::exit(lab::run(words)),
        Chore::Instructions(options) => instructions::run(&options),
        Chore::Benchmarks(options) => benchmarks::run(&options),
        Chore::Slowdowns(options) => slowdowns::run(&options),
        Chore::Bare(options) => match bare::run(&options) {
            // The exit status may be that of the program it has run.
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Chore::Unprivileged(options) => unprivileged::run(&options),
        Chore::Book(options) => book::run(&options),
        Chore::Bpf(options) => bpf::run(&options),
        Chore::ReleaseCheck(options) => release::run(&options),
        Chore::Test => test::run(),
        Chore::Nightly(options) => nightly::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The exit status reports the failure even if this message cannot be written.
            let _ = writeln!(std::io::stderr(), "xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
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
}

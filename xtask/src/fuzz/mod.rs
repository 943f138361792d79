//! `cargo xtask fuzz`: random inputs for the readers of untrusted files, random apps, and tests
//! with random inputs for longer than in an ordinary test run.

mod apps;
mod readers;

use std::path::Path;
use std::process::Command;

use clap::{Args, Parser, Subcommand};

use crate::{Result, cargo};

#[derive(Subcommand)]
pub(crate) enum Target {
    /// Run randomly generated apps
    Apps(apps::Options),
    /// Fuzz the readers of /proc and /sys
    Machines(readers::Options),
    /// Fuzz the readers of task sets, models and profiles
    Models(readers::Options),
    /// Run random programs on the simulated kernel of punctual-kernel, and compare with the model
    Schedules(Schedules),
    /// Run random task sets in virtual time on the executor, and compare every response time with
    /// its bound
    Sets(Sets),
    /// Stress each kind of executor on real threads, in a release build
    Stress(Stress),
    /// Fuzz the readers of traces
    Traces(readers::Options),
}

/// Parses one of the targets without options.
#[derive(Parser)]
struct Defaults<T: Args> {
    #[command(flatten)]
    options: T,
}

pub(crate) fn run(target: Option<&Target>) -> Result {
    match target {
        Some(Target::Apps(options)) => apps::run(options),
        Some(Target::Machines(options)) => readers::run(readers::MACHINES, options),
        Some(Target::Models(options)) => readers::run(readers::MODELS, options),
        Some(Target::Schedules(options)) => schedules(options),
        Some(Target::Sets(options)) => sets(options),
        Some(Target::Stress(options)) => stress(options),
        Some(Target::Traces(options)) => readers::run(readers::TRACES, options),
        None => {
            for readers in [readers::TRACES, readers::MACHINES, readers::MODELS] {
                readers::run(readers, &Defaults::parse_from([""]).options)?;
            }
            apps::run(&Defaults::parse_from([""]).options)
        }
    }
}

/// Debian's linker and emulator for the other processor.
const LINKER: &str = "/usr/bin/aarch64-linux-gnu-gcc";
const EMULATOR: &str = "/usr/bin/qemu-aarch64-static";

#[derive(Args)]
pub(crate) struct Schedules {
    /// Number of programs, each with a schedule of interrupts
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    count: u64,

    /// Number of the first program
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Afterwards, preempt threads inside a process by this many signals, at 20 kHz: 1200000
    /// take a minute or more
    #[arg(long, value_name = "N", default_value_t = 1_200_000)]
    signals: u32,
}

/// Compares random programs on the simulated kernel with the model. Then preempts threads
/// inside a process by signals, also on an emulated aarch64.
fn schedules(options: &Schedules) -> Result {
    cargo::test(
        release("punctual-kernel", &["--test", "it", "--", "--nocapture", "schedules::"])
            .env("PUNCTUAL_KERNEL_SCHEDULES", options.count.to_string())
            .env("PUNCTUAL_KERNEL_SEED", options.seed.to_string()),
    )?;
    let signals = |count: u32, arguments: &[&str]| {
        let mut command = release("punctual-kernel", &["--features", "linux", "--test", "linux"]);
        command.args(arguments).env("PUNCTUAL_KERNEL_PREEMPTIONS", count.to_string());
        command
    };
    cargo::test(&mut signals(options.signals, &[]))?;
    if !Path::new(LINKER).exists() || !Path::new(EMULATOR).exists() {
        println!(
            "\n*** aarch64: SKIPPED; Debian's packages qemu-user-static and gcc-aarch64-linux-gnu are needed for it, \
             and `rustup target add aarch64-unknown-linux-gnu`. ***\n"
        );
        return Ok(());
    }
    let variable = |name| format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_{name}");
    // The other tests start processes, which this machine may be unable to run.
    let test = ["--", "--exact", "keeps_order_registers_and_wakes_under_signals"];
    // On an emulated processor each signal takes many times as long.
    cargo::test(
        signals(options.signals / 20, &["--target", "aarch64-unknown-linux-gnu"])
            .env(variable("LINKER"), LINKER)
            .env(variable("RUNNER"), format!("{EMULATOR} -L /usr/aarch64-linux-gnu"))
            .args(test),
    )
}

#[derive(Args)]
pub(crate) struct Sets {
    /// Sets for each of the kinds: preemptive, polling, two partitions
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    sets: u32,
}

/// Compares every response time of random task sets in virtual time with its bound.
fn sets(options: &Sets) -> Result {
    cargo::test(
        release("punctual-analysis", &["--test", "it", "--", "--nocapture", "executor::"])
            .env("PUNCTUAL_TEST_SETS", options.sets.to_string()),
    )
}

#[derive(Args)]
pub(crate) struct Stress {
    /// Seconds for each kind of executor
    #[arg(long, value_name = "N", default_value_t = 20)]
    seconds: u32,
}

/// Changes a partition's word by threads that are migrated and interrupted all the time, then
/// runs every kind of executor on real threads. A release build has the shortest windows
/// between two instructions.
fn stress(options: &Stress) -> Result {
    let targets: [&[&str]; 2] = [
        &["--lib", "--", "word::tests::no_change_is_lost", "--nocapture"],
        &["--test", "stress", "--", "--nocapture"],
    ];
    for target in targets {
        let mut test = release("punctual", target);
        cargo::test(test.env("PUNCTUAL_STRESS_SECONDS", options.seconds.to_string()))?;
    }
    Ok(())
}

/// A command that tests a package in a release build.
fn release(package: &str, arguments: &[&str]) -> Command {
    let mut command = cargo::command();
    command.args(["test", "--release", "-p", package]).args(arguments);
    command
}

//! `cargo xtask fuzz`: random inputs for the readers of untrusted files, random apps, and tests
//! with random inputs for longer than in an ordinary test run.

mod apps;
mod readers;
mod tests;

use clap::{Args, Parser, Subcommand};

use crate::Result;

#[derive(Subcommand)]
pub(crate) enum Target {
    /// Run randomly generated apps
    Apps(apps::Options),
    /// Fuzz the readers of /proc and /sys
    Machines(readers::Options),
    /// Fuzz the readers of task sets, models and profiles
    Models(readers::Options),
    /// Run random programs on the simulated kernel of punctual-kernel, and compare with the model
    Schedules(tests::Schedules),
    /// Run random task sets in virtual time on the executor, and compare every response time with
    /// its bound
    Sets(tests::Sets),
    /// Stress each kind of executor on real threads, in a release build
    Stress(tests::Stress),
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
        Some(Target::Schedules(options)) => tests::schedules(options),
        Some(Target::Sets(options)) => tests::sets(options),
        Some(Target::Stress(options)) => tests::stress(options),
        Some(Target::Traces(options)) => readers::run(readers::TRACES, options),
        None => {
            for readers in [readers::TRACES, readers::MACHINES, readers::MODELS] {
                readers::run(readers, &Defaults::parse_from([""]).options)?;
            }
            apps::run(&Defaults::parse_from([""]).options)
        }
    }
}

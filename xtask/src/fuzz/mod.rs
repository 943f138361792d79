//! `cargo xtask fuzz`: random inputs to the readers of traces, machines and task sets, and random
//! apps.

mod apps;
mod readers;

use clap::{Args, Parser, Subcommand};

use crate::Result;

#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    target: Option<Target>,
}

#[derive(Subcommand)]
enum Target {
    /// Run randomly generated apps
    Apps(apps::Options),
    /// Fuzz the readers of /proc and /sys
    Machines(readers::Options),
    /// Fuzz the readers of task sets, models and profiles
    Models(readers::Options),
    /// Fuzz the readers of traces
    Traces(readers::Options),
}

/// Parses one of the targets without options.
#[derive(Parser)]
struct Defaults<T: Args> {
    #[command(flatten)]
    options: T,
}

pub(crate) fn run(options: &Options) -> Result {
    match &options.target {
        Some(Target::Apps(options)) => apps::run(options),
        Some(Target::Machines(options)) => readers::run(readers::MACHINES, options),
        Some(Target::Models(options)) => readers::run(readers::MODELS, options),
        Some(Target::Traces(options)) => readers::run(readers::TRACES, options),
        None => {
            readers::run(readers::TRACES, &Defaults::parse_from([""]).options)?;
            readers::run(readers::MACHINES, &Defaults::parse_from([""]).options)?;
            readers::run(readers::MODELS, &Defaults::parse_from([""]).options)?;
            apps::run(&Defaults::parse_from([""]).options)
        }
    }
}

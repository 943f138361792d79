//! `cargo xtask fuzz`: what nobody would think of, given to the readers of traces and done by whole apps.

mod apps;
mod traces;

use clap::{Args, Parser, Subcommand};

use crate::Result;

#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    target: Option<Target>,
}

#[derive(Subcommand)]
enum Target {
    /// Run apps that are made up at random
    Apps(apps::Options),
    /// Fuzz the readers of traces
    Traces(traces::Options),
}

/// One of the targets as it is without options.
#[derive(Parser)]
struct Defaults<T: Args> {
    #[command(flatten)]
    options: T,
}

pub(crate) fn run(options: &Options) -> Result {
    match &options.target {
        Some(Target::Apps(options)) => apps::run(options),
        Some(Target::Traces(options)) => traces::run(options),
        None => {
            traces::run(&Defaults::parse_from([""]).options)?;
            apps::run(&Defaults::parse_from([""]).options)
        }
    }
}

//! `cargo xtask schedules`: random programs on the simulated kernel, compared with the model, more than a test run affords.

use clap::Args;

use crate::{Result, cargo, process};

#[derive(Args)]
pub(crate) struct Options {
    /// How many programs, each with a schedule of interrupts
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    count: u64,

    /// The number of the first
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

pub(crate) fn run(options: &Options) -> Result {
    process::succeed(
        cargo::command()
            .args(["test", "--release", "-p", "punctual-kernel", "--test", "schedules", "--", "--nocapture"])
            .env("PUNCTUAL_KERNEL_SCHEDULES", options.count.to_string())
            .env("PUNCTUAL_KERNEL_SEED", options.seed.to_string()),
    )
}

//! `cargo xtask schedules`: random programs on the simulated kernel, compared with the model, more than a test run affords; and
//! threads inside a process, preempted by signals for longer.

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

    /// Then preempt threads inside a process by so many signals, which come at 20 kHz: 1200000 take a minute or more
    #[arg(long, value_name = "N", default_value_t = 1_200_000)]
    signals: u32,
}

pub(crate) fn run(options: &Options) -> Result {
    process::succeed(
        cargo::command()
            .args(["test", "--release", "-p", "punctual-kernel", "--test", "schedules", "--", "--nocapture"])
            .env("PUNCTUAL_KERNEL_SCHEDULES", options.count.to_string())
            .env("PUNCTUAL_KERNEL_SEED", options.seed.to_string()),
    )?;
    process::succeed(
        cargo::command()
            .args(["test", "--release", "-p", "punctual-kernel", "--features", "linux", "--test", "linux"])
            .env("PUNCTUAL_KERNEL_PREEMPTIONS", options.signals.to_string()),
    )
}

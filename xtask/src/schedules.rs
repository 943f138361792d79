//! `cargo xtask schedules`: random programs on the simulated kernel, compared with the model, for
//! longer than a test run; and threads inside a process, preempted by signals for longer, also on
//! an emulated aarch64.

use std::path::Path;
use std::process::Command;

use clap::Args;

use crate::{Result, cargo};

#[derive(Args)]
pub(crate) struct Options {
    /// Number of programs, each with a schedule of interrupts
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    count: u64,

    /// Number of the first program
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Afterwards, preempt threads inside a process by this many signals, at 20 kHz: 1200000 take a
    /// minute or more
    #[arg(long, value_name = "N", default_value_t = 1_200_000)]
    signals: u32,
}

pub(crate) fn run(options: &Options) -> Result {
    cargo::test(
        cargo::command()
            .args([
                "test",
                "--release",
                "-p",
                "punctual-kernel",
                "--test",
                "it",
                "--",
                "--nocapture",
                "schedules::",
            ])
            .env("PUNCTUAL_KERNEL_SCHEDULES", options.count.to_string())
            .env("PUNCTUAL_KERNEL_SEED", options.seed.to_string()),
    )?;
    cargo::test(&mut signals(options.signals))?;
    if Path::new(LINKER).exists() && Path::new(EMULATOR).exists() {
        let variable = |name| format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_{name}");
        return cargo::test(
            // On an emulated processor each takes many times as long.
            signals(options.signals / 20)
                .args(["--target", "aarch64-unknown-linux-gnu"])
                .env(variable("LINKER"), LINKER)
                .env(variable("RUNNER"), format!("{EMULATOR} -L /usr/aarch64-linux-gnu"))
                // The other tests start processes, which this machine may be unable to run.
                .args(["--", "--exact", "keeps_order_registers_and_wakes_under_signals"]),
        );
    }
    println!(
        "\n*** aarch64: SKIPPED; Debian's packages qemu-user-static and gcc-aarch64-linux-gnu are needed for it, and \
         `rustup target add aarch64-unknown-linux-gnu`. ***\n"
    );
    Ok(())
}

/// Path of Debian's linker for the other processor.
const LINKER: &str = "/usr/bin/aarch64-linux-gnu-gcc";
const EMULATOR: &str = "/usr/bin/qemu-aarch64-static";

/// Returns the command for the tests of threads inside a process, with this many signals.
fn signals(count: u32) -> Command {
    let mut command = cargo::command();
    command
        .args(["test", "--release", "-p", "punctual-kernel", "--features", "linux", "--test", "linux"])
        .env("PUNCTUAL_KERNEL_PREEMPTIONS", count.to_string());
    command
}

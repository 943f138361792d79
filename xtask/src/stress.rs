//! `cargo xtask stress`: the executor on real threads, longer and faster than an ordinary test run
//! allows.
//!
//! The test is an ordinary one (`crates/punctual/tests/stress`); this command runs it in a release
//! build, which has the shortest windows between two instructions, for the given time with every
//! kind of executor. Before that, for the same time, it tests a partition's word alone, changed by
//! threads that are migrated and interrupted all the time.

use clap::Args;

use crate::{Result, cargo};

/// The time for which the stress test runs each kind of executor, in seconds.
const DURATION_VARIABLE: &str = "PUNCTUAL_STRESS_SECONDS";

#[derive(Args)]
pub(crate) struct Options {
    /// Seconds for each kind of executor
    #[arg(long, value_name = "N", default_value_t = 20)]
    seconds: u32,
}

pub(crate) fn run(options: &Options) -> Result {
    let targets: [&[&str]; 2] = [
        &["--lib", "--", "word::tests::no_change_is_lost", "--nocapture"],
        &["--test", "stress", "--", "--nocapture"],
    ];
    for target in targets {
        cargo::test(
            cargo::command()
                .args(["test", "--release", "-p", "punctual"])
                .args(target)
                .env(DURATION_VARIABLE, options.seconds.to_string()),
        )?;
    }
    Ok(())
}

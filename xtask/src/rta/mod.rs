//! `cargo xtask rta`: compares the response-time analysis with independent implementations, for
//! longer than a test run.

mod pycpa;

use clap::{Args, Subcommand};

use crate::{Result, cargo};

const PACKAGE: &str = "punctual-analysis";

/// The number of sets of each kind that the test of the executor tries.
const SETS_VARIABLE: &str = "PUNCTUAL_TEST_SETS";

#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    check: Check,
}

#[derive(Subcommand)]
enum Check {
    /// Run random task sets in virtual time on the executor, and compare every response time with
    /// its bound
    Sets {
        /// Sets for each of the kinds: preemptive, polling, two partitions
        #[arg(long, value_name = "N", default_value_t = 4_000)]
        sets: u32,
    },
    /// Compare bounds of random sets with those of pyCPA (requires Python 3, and git unless --path
    /// is given)
    Pycpa(pycpa::Options),
}

pub(crate) fn run(options: &Options) -> Result {
    match &options.check {
        Check::Sets { sets } => cargo::test(
            cargo::command()
                .args(["test", "--release", "-p", PACKAGE, "--test", "it", "--", "--nocapture", "executor::"])
                .env(SETS_VARIABLE, sets.to_string()),
        ),
        Check::Pycpa(options) => pycpa::run(options),
    }
}

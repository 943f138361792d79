//! `cargo xtask rta`: the response-time analysis against what does not share its code, longer than a test has time for.

mod pycpa;

use clap::{Args, Subcommand};

use crate::seeds::{self, Seed};
use crate::working_copy::WorkingCopy;
use crate::{Result, cargo, loom, process};

const PACKAGE: &str = "punctual-analysis";

/// The working copies of the other packages have other numbers, since their workspaces have other members.
const FIRST_COPY: usize = 100;

/// How many sets of each kind the test of the executor is told to try.
const SETS_VARIABLE: &str = "PUNCTUAL_TEST_SETS";

#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    check: Check,
}

#[derive(Subcommand)]
enum Check {
    /// Run random task sets in virtual time on the executor, and compare every response with its bound
    Sets {
        /// Sets for each of the kinds: preemptive, polling, two partitions
        #[arg(long, value_name = "N", default_value_t = 4_000)]
        sets: u32,
    },
    /// Put mistakes into the analysis one by one, and check that a test catches each
    Seeds {
        /// Mistake to catch; may be repeated [default: all]
        #[arg(long = "seed", value_name = "NAME")]
        seeds: Vec<String>,
    },
    /// Compare bounds of random sets with those of pyCPA (Python 3, and git unless --path says where it is)
    Pycpa(pycpa::Options),
}

pub(crate) fn run(options: &Options) -> Result {
    match &options.check {
        Check::Sets { sets } => process::succeed(
            cargo::command()
                .args(["test", "--release", "-p", PACKAGE, "--test", "executor", "--", "--nocapture"])
                .env(SETS_VARIABLE, sets.to_string()),
        ),
        Check::Seeds { seeds } => catch(seeds),
        Check::Pycpa(options) => pycpa::run(options),
    }
}

fn catch(names: &[String]) -> Result {
    let mut seeds: Vec<(&str, Seed)> = seeds::of(&cargo::root().join("crates").join(PACKAGE))?
        .into_iter()
        .map(|seed| (PACKAGE, seed))
        .collect();
    loom::choose(&mut seeds, names)?;
    loom::find_all(WorkingCopy::new(FIRST_COPY, &[PACKAGE])?, FIRST_COPY, &[PACKAGE], &seeds)
}

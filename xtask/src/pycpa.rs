//! `cargo xtask check pycpa`: pyCPA, a compositional performance analysis in Python by IDA, TU
//! Braunschweig, as an oracle.
//!
//! A test of the analysis writes random sets with its bounds into a file; a script passes the sets
//! to pyCPA and compares.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::scratch::Scratch;
use crate::{Result, cargo, process};

const REPOSITORY: &str = "https://github.com/IDA-TUBS/pycpa";
const FILE_VARIABLE: &str = "PUNCTUAL_PYCPA_FILE";

#[derive(Args)]
pub(crate) struct Options {
    /// A checkout of pyCPA [default: fetched into the target directory]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result {
    let checkout = match &options.path {
        Some(path) => path.clone(),
        None => fetched()?,
    };
    let scratch = Scratch::new("pycpa")?;
    let sets = scratch.path().join("sets.json");
    cargo::test(
        cargo::command()
            .args(["test", "-p", "punctual-analysis", "--test", "it", "--", "--ignored", "oracle::"])
            .env(FILE_VARIABLE, &sets),
    )?;
    let script = cargo::root().join("xtask/src/pycpa/compare.py");
    process::succeed(Command::new("python3").arg(script).arg(&sets).env("PYTHONPATH", checkout))
}

/// Returns a checkout in the target directory; creates it if it does not exist.
fn fetched() -> Result<PathBuf> {
    let path = cargo::target_dir().join("pycpa");
    if !path.join("pycpa").is_dir() {
        process::succeed(Command::new("git").args(["clone", "--depth=1", REPOSITORY]).arg(&path))?;
    }
    Ok(path)
}

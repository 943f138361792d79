//! `cargo xtask mutants --logic`: cargo-mutants changes operators, conditions, match arms and
//! results. Unit and integration tests run first, then the models try the survivors.

use std::fs;
use std::path::Path;
use std::process::Command;

use punctual_process::child::BoundedCommand;
use serde::Deserialize;

use super::{Options, REQUIRED, is_enough, is_named, sources};
use crate::process::{self, RUN_LIMIT};
use crate::working_copy::PREEMPTIONS_VARIABLE;
use crate::{Result, cargo};

const INSTALL: &str = "`cargo install cargo-mutants --locked`";

/// Exit statuses of cargo-mutants: every mutation is caught, some survive, some time out.
const COMPLETE: [i32; 3] = [0, 2, 3];

/// The counts in `outcomes.json`.
#[derive(Debug, Deserialize, PartialEq, Eq)]
struct Outcomes {
    caught: usize,
    missed: usize,
    timeout: usize,
    unviable: usize,
}

pub(super) fn run(options: &Options) -> Result {
    let mut sources = Vec::new();
    for package in options.packages() {
        sources.extend(sources::of(&cargo::root().join("crates").join(package))?);
    }
    let is_source = |name: &String| sources.iter().any(|source| is_named(&source.file, name));
    if let Some(name) = options.files.iter().find(|name| !is_source(name)) {
        return Err(format!("--file {name}: no source has this name").into());
    }
    if !process::answers(Command::new("cargo").args(["mutants", "--version"])) {
        return Err(format!("cannot run cargo-mutants: it is not installed; {INSTALL}").into());
    }
    let (mut caught, mut survivors) = (0, 0);
    for package in options.packages() {
        let output = cargo::target_dir().join("mutants-logic").join(package);
        fs::create_dir_all(&output)?;
        let mutants = |arguments: &[&str]| {
            let mut command = cargo::command();
            command.args(["mutants", "--no-times", "--package", package]).args(arguments);
            for file in &options.files {
                command.arg("--file").arg(format!("**/{file}"));
            }
            if let Some(sample) = options.sample {
                command.arg("--shard").arg(sample.to_string());
            }
            command
        };
        if options.list {
            process::succeed(&mut mutants(&["--list"]))?;
            continue;
        }
        let tests = outcomes(mutants(&["--test-tool", "cargo", "--output"]).arg(&output), &output)?;
        let mut missed = tests.missed;
        if missed > 0 {
            let mut models = mutants(&["--iterate", "--profile", "models", "--output"]);
            models.arg(&output).args(["--", "--test", "loom"]);
            models.env("RUSTFLAGS", "--cfg loom").env(PREEMPTIONS_VARIABLE, "1");
            let models = outcomes(&mut models, &output)?;
            missed = models.missed + models.unviable;
        }
        caught += tests.caught + tests.timeout + tests.missed - missed.min(tests.missed);
        survivors += missed;
        println!("{package}: the survivors are in {}", output.join("mutants.out/missed.txt").display());
    }
    let all = caught + survivors;
    if options.list {
        return Ok(());
    }
    println!("mutants of logic: {caught} of {all} caught");
    if all == 0 {
        return Err("cargo-mutants found nothing to mutate".into());
    }
    // In a sample, a single survivor is not significant.
    if is_enough(caught, all) || options.sample.is_some() && survivors <= 1 {
        return Ok(());
    }
    Err(format!(
        "{caught} of {all} mutations are caught, not {REQUIRED} %: write the test that fails, or argue in \
         .cargo/mutants.toml"
    )
    .into())
}

/// Runs cargo-mutants, and returns its counts.
fn outcomes(command: &mut Command, output: &Path) -> Result<Outcomes> {
    let status = command.status_within(RUN_LIMIT)?;
    if !status.code().is_some_and(|code| COMPLETE.contains(&code)) {
        return Err(format!("{status} from {command:?}").into());
    }
    Ok(serde_json::from_str(&fs::read_to_string(output.join("mutants.out/outcomes.json"))?)?)
}

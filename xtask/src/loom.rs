//! `cargo xtask loom`: the models of the protocols, and the proof that they can fail.
//!
//! A model that passes may simply not look. So `punctual-core` has test-only features named `seed-…`, each of which
//! puts one bug into a protocol, and every one of them has to make a model fail.

use std::env;
use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::cargo::{self, Purpose};
use crate::process::{self, End};
use crate::{Result, no_arguments};

const PACKAGE: &str = "punctual-core";

/// Preemptions per execution that are explored by default; most concurrency bugs need no more than two.
const PREEMPTIONS: &str = "3";
const PREEMPTIONS_VARIABLE: &str = "LOOM_MAX_PREEMPTIONS";

/// A seeded bug is found in seconds; a model that still runs after this has been made to run in circles.
const SEED_LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn run(arguments: &[String]) -> Result {
    no_arguments(arguments)?;
    let manifest = fs::read_to_string(cargo::root().join("crates").join(PACKAGE).join("Cargo.toml"))?;
    let seeds = seeds(&manifest);
    if seeds.is_empty() {
        return Err(
            format!("{PACKAGE} has no feature `seed-…`: nothing shows that the models can fail").into()
        );
    }

    process::succeed(&mut models())?;

    let mut missed = Vec::new();
    for seed in seeds {
        match catch(seed)? {
            Some(model) => println!("{seed}: caught by {model}"),
            None => {
                println!("{seed}: NOT CAUGHT");
                missed.push(seed);
            }
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!("no model notices {}", missed.join(", ")).into())
}

/// The cargo command that runs the models, in a target directory of its own: `--cfg loom` changes every crate, and
/// sharing the usual directory would rebuild them all each time one goes back and forth.
fn models() -> Command {
    let mut command = cargo::command();
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    command
        .args(["test", "-p", PACKAGE, "--release", "--test", "loom_*"])
        .env("RUSTFLAGS", format!("{flags} --cfg loom").trim_start())
        .env("CARGO_TARGET_DIR", cargo::target_dir().join("loom"))
        .env(PREEMPTIONS_VARIABLE, preemptions());
    command
}

fn preemptions() -> String {
    env::var(PREEMPTIONS_VARIABLE).unwrap_or_else(|_| PREEMPTIONS.to_owned())
}

/// Runs the models with the bug `seed` in the code; returns the name of the first that fails.
///
/// The executables are run one by one instead of through cargo: a build that fails must not count as a bug that was
/// caught, and neither must a model that never ends.
fn catch(seed: &str) -> Result<Option<String>> {
    let built = cargo::build(models().args(["--no-run", "--features", seed]))?;
    for test in built.iter().filter(|artifact| artifact.purpose == Purpose::Test) {
        let mut command = Command::new(&test.path);
        let outcome = process::capture(command.env(PREEMPTIONS_VARIABLE, preemptions()), SEED_LIMIT)?;
        match outcome.end {
            End::Exited(0) => {}
            End::TimedOut(_) => return Err(format!("{seed}: {} {}", test.target, outcome.end).into()),
            End::Exited(_) | End::Signalled(_) => {
                let model = failed_test(&outcome.stdout).unwrap_or("an abort");
                return Ok(Some(format!("{}::{model}", test.target)));
            }
        }
    }
    Ok(None)
}

/// The first test that the test harness reports as failed.
fn failed_test(output: &str) -> Option<&str> {
    output.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
}

/// The features of a manifest whose names begin with `seed-`.
fn seeds(manifest: &str) -> Vec<&str> {
    manifest
        .lines()
        .map(str::trim)
        .skip_while(|&line| line != "[features]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim().trim_matches('"'))
        .filter(|name| name.starts_with("seed-"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_seeds_among_the_features_only() {
        let manifest = "[package]\nseed-not = 1\n\n[features]\n# seed-comment = []\ndefault = []\nseed-a = []\n\
                        \"seed-b\"=[]\nseedling = []\n\n[dependencies]\nseed-dep = \"1\"\n";
        assert_eq!(seeds(manifest), ["seed-a", "seed-b"]);
        assert!(seeds("[package]\nname = \"x\"\n").is_empty());
    }

    #[test]
    fn names_the_model_that_failed() {
        let output = "running 2 tests\ntest one ... ok\ntest level::two ... FAILED\n";
        assert_eq!(failed_test(output), Some("level::two"));
        assert_eq!(failed_test("test one ... ok\n"), None);
    }
}

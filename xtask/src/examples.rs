//! `cargo xtask examples`: every example of the crate `punctual`, run and compared with its expected output.
//!
//! The examples double as documentation, so what they print is part of it. Each runs on virtual time and on threads
//! of the kernel, and has to print the same on both.

use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::cargo::{self, Artifact, Purpose};
use crate::golden::{Golden, Order};

/// The package whose examples are checked, and its directory in `crates/`.
pub(crate) const PACKAGE: &str = "punctual";

pub(crate) fn run(arguments: &[String]) -> Result {
    let (flags, names): (Vec<_>, Vec<_>) = arguments.iter().partition(|word| word.starts_with('-'));
    if let Some(flag) = flags.iter().find(|&&flag| flag != "--bless") {
        return Err(format!("unexpected argument `{flag}`").into());
    }

    let mut examples = discover()?;
    if let Some(name) = names.iter().find(|&&name| examples.iter().all(|example| example.name != *name)) {
        return Err(format!("no example is named `{name}`").into());
    }
    if !names.is_empty() {
        examples.retain(|example| names.contains(&&example.name));
    }

    let built = cargo::build(cargo::command().args(["build", "--examples", "-p", PACKAGE]))?;
    if !flags.is_empty() {
        bless(&examples, &built)?;
    }
    check(&examples, &built, &|executable| Command::new(executable))
}

/// The examples in the source tree.
pub(crate) fn discover() -> Result<Vec<Golden>> {
    Golden::discover(&cargo::root().join("crates").join(PACKAGE).join("examples"))
}

/// Makes the output of each example on its first port the expected one.
fn bless(examples: &[Golden], built: &[Artifact]) -> Result {
    for example in examples {
        let command = Command::new(executable(example, built)?);
        let changed = example
            .bless(command, example.header.ports()[0])
            .map_err(|error| format!("cannot bless {}: {error}", example.name))?;
        println!("{:24} {}", example.name, if changed { "blessed" } else { "unchanged" });
    }
    Ok(())
}

/// Runs each example on each of its ports by the command that `launch` makes, and compares the outputs.
///
/// All are run, also after a failure: the pattern of failures says more than the first.
pub(crate) fn check(examples: &[Golden], built: &[Artifact], launch: &dyn Fn(&Path) -> Command) -> Result {
    let mut failures = 0;
    let mut any_order = false;
    for example in examples {
        let executable = executable(example, built)?;
        for &port in example.header.ports() {
            let verdict = match example.check(launch(executable), port) {
                Ok(Order::Exact) => "ok".to_owned(),
                Ok(Order::Any) => {
                    any_order = true;
                    "ok, in any order".to_owned()
                }
                Err(error) => {
                    failures += 1;
                    format!("FAILED: {error}")
                }
            };
            println!("{:24} {port:8} {verdict}", example.name);
        }
    }

    if any_order {
        println!("\n*** NO REAL-TIME PRIVILEGES: on the Linux port the ORDER of lines was NOT checked. ***");
    }
    if failures > 0 {
        return Err(format!("failed runs: {failures}").into());
    }
    println!("all as expected ({} checked)", examples.len());
    Ok(())
}

fn executable<'a>(example: &Golden, built: &'a [Artifact]) -> Result<&'a Path> {
    built
        .iter()
        .find(|artifact| artifact.purpose == Purpose::Example && artifact.target == example.name)
        .map(|artifact| artifact.path.as_path())
        .ok_or_else(|| format!("cargo built no example {}", example.name).into())
}

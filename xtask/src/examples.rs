//! `cargo xtask check examples`: runs every example of the crate `punctual` and compares its output
//! with the expected output.
//!
//! The examples also serve as documentation, which includes their output. Each runs in virtual time
//! and on kernel threads and must print the same on both; so must its variants on other executors,
//! in any order.

use std::fs;
use std::path::Path;
use std::process::Command;

use clap::Args;

use crate::cargo::{self, Artifact, Purpose};
use crate::golden::{self, Golden, Order, PACKAGE, Port};
use crate::variants::{self, Program};
use crate::{Result, process};

/// The selected examples.
#[derive(Args)]
pub(crate) struct Options {
    /// Only in virtual time, where nothing depends on the load of the machine
    #[arg(long)]
    virtual_time: bool,

    /// List the examples instead of running them
    #[arg(long)]
    list: bool,

    /// Examples to run [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Checks the selected examples; first makes their output the expected one if `blessed`.
pub(crate) fn run(options: &Options, blessed: bool) -> Result {
    let Options { virtual_time, list, names } = options;
    let mut examples = golden::examples()?;
    if let Some(name) = names.iter().find(|&name| examples.iter().all(|example| example.name != *name)) {
        return Err(format!("no example is named `{name}`").into());
    }
    let programs = variants::of(&examples)?;
    if !names.is_empty() {
        examples.retain(|example| names.contains(&example.name));
    }

    if *list {
        examples.iter().for_each(|example| println!("{}", example.name));
        return Ok(());
    }

    // All examples with the features of the workspace, so that nothing is rebuilt after the tests.
    let packages: &[&str] = if names.is_empty() { &["--workspace"] } else { &["-p", PACKAGE] };
    let mut built = cargo::build(cargo::command().args(["build", "--examples"]).args(packages))?;
    if blessed {
        bless(&examples, &built)?;
    }
    built.extend(variants::build(&programs)?);
    let ports: &[Port] = if *virtual_time { &[Port::Virtual] } else { &[Port::Virtual, Port::Linux] };
    check(&examples, &programs, &built, ports, &|executable| Command::new(executable))
}

/// Makes the output of each example on its first port the expected output.
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

/// Runs each example and each of its variants in `programs` on those of its ports that are in
/// `ports`, with the command that `launch` returns, and compares the outputs.
///
/// Runs all of them even after a failure: the pattern of failures is more informative than the
/// first.
pub(crate) fn check(
    examples: &[Golden],
    programs: &[Program],
    built: &[Artifact],
    ports: &[Port],
    launch: &dyn Fn(&Path) -> Command,
) -> Result {
    let cpus = process::allowed_cpus(&fs::read_to_string("/proc/self/status")?);
    let lacking = |needed: usize, port| port == Port::Linux && cpus < needed;
    let mut tally = Tally::default();
    for example in examples {
        let executable = executable(example, built)?;
        for &port in example.header.ports().iter().filter(|port| ports.contains(port)) {
            if lacking(example.header.cpus, port) {
                tally.skipped += 1;
                continue;
            }
            let checked = in_its_time(&example.name, port, || example.check(launch(executable), port));
            tally.any_order |= matches!(checked, Ok(Order::Any));
            let verdict = checked.map(|order| if order == Order::Any { "ok, in any order" } else { "ok" });
            tally.note(&example.name, "", port, verdict);
        }
    }

    let mut summary = format!("{} checked", examples.len());
    for program in programs {
        let executable = program.executable(built)?;
        let variant = program.variant;
        let among: Vec<&Golden> = examples.iter().filter(|example| program.has(example)).collect();
        for &example in &among {
            let launch = || {
                let mut command = launch(executable);
                command.arg(&example.name);
                command
            };
            for &port in example.header.ports().iter().filter(|port| ports.contains(port)) {
                if lacking(variant.cpus(), port) {
                    tally.skipped += 1;
                    continue;
                }
                let verdict = if example.header.one_cpu { "ends" } else { "ok" };
                let checked = in_its_time(&example.name, port, || example.check_variant(&launch, port));
                let checked = checked.map(|()| verdict);
                tally.note(&example.name, variant.name(), port, checked);
            }
        }
        let only_end = among.iter().filter(|example| example.header.one_cpu).count();
        summary += &format!(", {} also as `{variant}`", among.len() - only_end);
        if only_end > 0 {
            summary += &format!(" (and {only_end} for one CPU end)");
        }
    }
    tally.conclude()?;
    println!("all as expected: {summary}");
    Ok(())
}

/// Returns the result of `attempt`. If it fails on the kernel's clock, prints the failure and
/// returns the result of a second attempt: an example prints something else on a machine that takes
/// the CPU away for longer than the example allows.
fn in_its_time<T>(name: &str, port: Port, attempt: impl Fn() -> Result<T>) -> Result<T> {
    match attempt() {
        Err(error) if port == Port::Linux => {
            println!("{name}: RUN ONCE MORE, as this machine may have been late: {error}");
            attempt()
        }
        result => result,
    }
}

/// The results so far.
#[derive(Default)]
struct Tally {
    runs: usize,
    failures: usize,
    skipped: usize,
    any_order: bool,
}

impl Tally {
    /// Prints the result of a run, and counts it.
    fn note(&mut self, example: &str, variant: &str, port: Port, checked: Result<&str>) {
        print!("{example:26} {variant:6} {port:7} ");
        self.runs += 1;
        match checked {
            Ok(verdict) => println!("{verdict}"),
            Err(error) => {
                self.failures += 1;
                println!("FAILED: {error}");
            }
        }
    }

    /// Reports the unchecked examples, and fails if any example failed.
    fn conclude(self) -> Result {
        if self.any_order {
            println!(
                "\n*** NO REAL-TIME PRIVILEGES: on the Linux port the ORDER of lines was NOT checked. ***"
            );
        }
        if self.skipped > 0 {
            println!(
                "\n*** ONE CPU: {} runs on the Linux port were SKIPPED, they need two. ***",
                self.skipped
            );
        }
        match self.failures {
            0 if self.runs + self.skipped == 0 => Err("no example runs on the selected ports".into()),
            0 => Ok(()),
            failures => Err(format!("failed runs: {failures}").into()),
        }
    }
}

fn executable<'a>(example: &Golden, built: &'a [Artifact]) -> Result<&'a Path> {
    built
        .iter()
        .find(|artifact| artifact.purpose == Purpose::Example && artifact.target == example.name)
        .map(|artifact| artifact.path.as_path())
        .ok_or_else(|| format!("cargo built no example {}", example.name).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_only_on_real_threads() {
        let of = |port, outcomes: [bool; 2]| {
            let attempts = std::cell::Cell::new(0);
            let attempt = || {
                let turn = attempts.replace(attempts.get() + 1);
                if outcomes[turn] { Ok(()) } else { Err("it printed something else".into()) }
            };
            (in_its_time("x", port, attempt).is_ok(), attempts.get())
        };
        assert_eq!(of(Port::Linux, [true, false]), (true, 1));
        assert_eq!(of(Port::Linux, [false, true]), (true, 2));
        assert_eq!(of(Port::Linux, [false, false]), (false, 2));
        assert_eq!(of(Port::Virtual, [false, true]), (false, 1));
    }
}

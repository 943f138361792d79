//! `cargo xtask slowdowns`: the proof that the gate of `cargo xtask lab figures` can fail.
//!
//! A gate that lets a longer path pass is no gate. So each slow-down of the table `lab/tests/slowdowns.toml` (of the form of
//! [`crate::seeds`]) is put into a copy of the packages, and the row that is named with it has to be out of its bounds.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use crate::seeds::{self, Seed};
use crate::working_copy::{Build, WorkingCopy};
use crate::{Result, cargo, loom};

/// The number of our copy, past those of other chores.
const COPY: usize = 40;

/// What a table calls the gate.
const GATE: &str = "figures";

#[derive(Args)]
pub(crate) struct Options {
    /// Slow-down to find; may be repeated [default: all]
    #[arg(long = "seed", value_name = "NAME")]
    names: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result {
    let mut seeds: Vec<(&str, Seed)> = table()?.into_iter().map(|seed| (".", seed)).collect();
    loom::choose(&mut seeds, &options.names)?;
    let gate = lab::Gate::new()?;
    let copy = WorkingCopy::new(COPY, &[lab::PROGRAM])?;
    let began = Instant::now();
    let whole = gate.deviations(&executable(copy.build_program(lab::PROGRAM)?)?, None)?;
    if !whole.is_empty() {
        let lines: Vec<String> = whole.into_iter().map(|(_, said)| said).collect();
        return Err(format!("without any slow-down the gate is shut:\n{}", lines.join("\n")).into());
    }
    println!("without any slow-down: nothing is out of bounds, in {} s", began.elapsed().as_secs());

    let mut missed = Vec::new();
    for (_, seed) in &seeds {
        let began = Instant::now();
        let row = seed.test().1;
        let found = find(&gate, &copy, seed)?;
        let took = began.elapsed().as_secs();
        match found.iter().find(|(of, _)| of == row) {
            Some((_, said)) => {
                println!("{}: caught in {took} s, with {} figures in all: {said}", seed.name, found.len());
            }
            None => {
                println!(
                    "{}: NOT CAUGHT by {row}; {} other figures are out of bounds",
                    seed.name,
                    found.len()
                );
                missed.push(seed.name.as_str());
            }
        }
    }
    if missed.is_empty() {
        println!("slow-downs caught: {}", seeds.len());
        return Ok(());
    }
    Err(format!("slow-downs not caught: {}", missed.join(", ")).into())
}

/// The slow-downs, each of which can be planted.
fn table() -> Result<Vec<Seed>> {
    let seeds = seeds::in_table(&cargo::root().join("lab/tests/slowdowns.toml"), &crates())?;
    for seed in &seeds {
        if seed.test().0 != GATE {
            return Err(format!("{}: its test is not `{GATE}::<row>`", seed.name).into());
        }
    }
    Ok(seeds)
}

fn crates() -> PathBuf {
    cargo::root().join("crates")
}

/// What is out of bounds with the slow-down.
fn find(gate: &lab::Gate, copy: &WorkingCopy, seed: &Seed) -> Result<Vec<(String, String)>> {
    let original = seeds::read(&crates(), &seed.file)?;
    copy.write(".", &seed.file, &seed.plant(&original)?)?;
    let built = copy.build_program(lab::PROGRAM).and_then(executable);
    copy.write(".", &seed.file, &original)?;
    let program = built.map_err(|error| format!("{}: {error}", seed.name))?;
    gate.deviations(&program, Some(seed.test().1))
}

fn executable(build: Build) -> Result<PathBuf> {
    let built = build.done()?;
    let found = built.into_iter().find(|artifact| artifact.target == lab::PROGRAM);
    Ok(found.ok_or_else(|| format!("cargo built no {}", lab::PROGRAM))?.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn can_plant_every_slowdown_and_knows_its_row() {
        let figures = std::fs::read_to_string(cargo::root().join("lab/figures.txt")).unwrap();
        for seed in table().unwrap() {
            let row = seed.test().1;
            let named = |line: &str| line.split_whitespace().next() == Some(row);
            assert!(figures.lines().any(named), "{}: there is no row {row}", seed.name);
        }
    }
}

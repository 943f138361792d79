//! `cargo xtask check slowdowns`: verifies that the check of `cargo xtask lab figures` can fail.
//!
//! The check is useless if it passes a longer path. So each slow-down of the table
//! `lab/tests/slowdowns.toml` (in the format of [`crate::seeds`]) is put into a copy of the
//! packages, and the row named with it must be out of its bounds.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use crate::seeds::{self, Table};
use crate::working_copy::{Build, WorkingCopy};
use crate::{Result, cargo};

/// The packages that the table slows down.
const PACKAGES: [&str; 2] = ["punctual", "punctual-sync"];

/// The name of the check in a table.
const CHECK: &str = "figures";

#[derive(Args)]
pub(crate) struct Options {
    /// Slow-down to find; may be repeated [default: all]
    #[arg(long = "seed", value_name = "NAME")]
    names: Vec<String>,

    /// List the slow-downs with their rows instead of finding them
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(options: &Options) -> Result {
    let mut table = table()?;
    seeds::check_names(&options.names, [&table])?;
    table.choose(&options.names, None);
    if options.list {
        table.seeds.iter().for_each(|seed| println!("{}: {}", seed.name, seed.test().1));
        return Ok(());
    }
    let table = table.plant()?;
    let check = lab::FigureCheck::new()?;
    let copy = WorkingCopy::new("slowdowns", &[lab::PROGRAM])?;
    let began = Instant::now();
    let whole = check.deviations(&executable(copy.build_program(lab::PROGRAM)?)?, None)?;
    if !whole.is_empty() {
        let lines: Vec<String> = whole.into_iter().map(|(_, printed)| printed).collect();
        return Err(format!("without any slow-down the check fails:\n{}", lines.join("\n")).into());
    }
    println!("without any slow-down: nothing is out of bounds, in {} s", began.elapsed().as_secs());

    let mut missed = Vec::new();
    for seed in &table.seeds {
        let began = Instant::now();
        let row = seed.test().1;
        let program = table.alone(seed, &copy, || executable(copy.build_program(lab::PROGRAM)?))?;
        let found = check.deviations(&program, Some(row))?;
        let took = began.elapsed().as_secs();
        match found.iter().find(|(of, _)| of == row) {
            Some((_, printed)) => {
                println!("{}: caught in {took} s, with {} figures in all: {printed}", seed.name, found.len());
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
        println!("slow-downs caught: {}", table.seeds.len());
        return Ok(());
    }
    Err(format!("slow-downs not caught: {}", missed.join(", ")).into())
}

/// Returns the slow-downs.
fn table() -> Result<Table> {
    let table = Table::read(".", &PACKAGES, cargo::root().join("lab/tests/slowdowns.toml"))?;
    match table.seeds.iter().find(|seed| seed.test().0 != CHECK) {
        Some(seed) => Err(format!("{}: its test is not `{CHECK}::<row>`", seed.name).into()),
        None => Ok(table),
    }
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
    fn plants_every_slowdown_of_a_recorded_row() {
        let figures = std::fs::read_to_string(cargo::root().join("lab/figures.txt")).unwrap();
        for seed in table().unwrap().plant().unwrap().seeds {
            let row = seed.test().1;
            let named = |line: &str| line.split_whitespace().next() == Some(row);
            assert!(figures.lines().any(named), "{}: there is no row {row}", seed.name);
        }
    }
}

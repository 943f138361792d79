//! `cargo xtask mutants`: mechanical bugs in every protocol file, each of which a test must detect.
//!
//! Orderings are weakened by one step; wakes, fences, stores, other calls and early returns are
//! dropped: [`find`] has the rules. The models and tests that reach a mutation run, the fastest
//! first, until one fails. `tests/equivalent.toml` of a package names the mutations that change
//! nothing, with the reason. [`logic`] runs cargo-mutants, which changes operators, conditions,
//! match arms and results, but weakens no ordering and drops no statement.

mod equivalent;
mod find;
mod logic;
mod mutation;
mod outline;
mod sources;
mod switch;
mod trials;

use std::sync::Mutex;
use std::time::Instant;

use clap::Args;

use crate::loom::{self, cpus, in_parallel};
use crate::sample::Sample;
use crate::{Result, cargo};
pub(crate) use find::range;
pub(crate) use mutation::{Form, Mutation, lines};
pub(crate) use outline::{Item, Outline};
pub(crate) use sources::{Source, of as sources};
pub(crate) use switch::{CHOSEN, Switched};
use trials::{Outcome, Trials, Verdict};

/// The percentage of the mutations that must be caught.
const REQUIRED: usize = 95;

#[derive(Args, Debug, Default)]
pub(crate) struct Options {
    /// Package to mutate; may be repeated [default: all with protocols]
    #[arg(long = "package", value_name = "NAME", value_parser = loom::package)]
    packages: Vec<&'static str>,

    /// Only mutations of this file; may be repeated
    #[arg(long = "file", value_name = "SRC")]
    files: Vec<String>,

    /// Only part N of M; `commit/M` and `day/M` choose another part for each commit or day
    #[arg(long, value_name = "N/M")]
    sample: Option<Sample>,

    /// Mutate logic with cargo-mutants instead
    #[arg(long)]
    logic: bool,

    /// List the mutations instead of trying them
    #[arg(long)]
    list: bool,
}

impl Options {
    fn packages(&self) -> &[&'static str] {
        if self.packages.is_empty() { &loom::PACKAGES } else { &self.packages }
    }

    /// Returns whether a file, relative to its package, is selected.
    fn selects(&self, file: &str) -> bool {
        self.files.is_empty() || self.files.iter().any(|name| is_named(file, name))
    }
}

fn is_named(file: &str, name: &str) -> bool {
    file.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

pub(crate) fn run(options: &Options) -> Result {
    if options.logic {
        return logic::run(options);
    }
    let began = Instant::now();
    let mut work = Vec::new();
    for package in options.packages() {
        let directory = cargo::root().join("crates").join(package);
        let sources = sources::of(&directory)?;
        let all = sources::mutations(package, &sources)?;
        let equivalents = equivalent::of(&directory, &all.iter().collect::<Vec<_>>())?;
        work.push((package, sources, all, equivalents));
    }
    let is_mutated = |name: &String| work.iter().flat_map(|work| &work.2).any(|it| is_named(&it.file, name));
    if let Some(name) = options.files.iter().find(|name| !is_mutated(name)) {
        return Err(format!("--file {name}: it has no mutations").into());
    }
    let report = Mutex::new(Report::default());
    for (package, sources, mut all, equivalents) in work {
        let is_argued = |mutation: &Mutation| equivalents.iter().any(|entry| entry.is(mutation));
        all.retain(|mutation| {
            options.selects(&mutation.file)
                && options.sample.is_none_or(|sample| sample.takes(&mutation.key()))
        });
        if options.list {
            for mutation in &all {
                let note = if is_argued(mutation) { " (argued equivalent)" } else { "" };
                println!("{}{note}", mutation.description());
            }
        } else if !all.is_empty() {
            let trials = Trials::prepare(package, &sources, &all)?;
            let numbers: Vec<_> = (0..all.len()).collect();
            in_parallel(&numbers, cpus(), |_, &number| {
                let is_argued = is_argued(&all[number]);
                let verdict = trials.verdict(number, is_argued)?;
                report.lock().expect("nothing panics with the report").add(&all[number], is_argued, &verdict);
                Ok(true)
            })?;
        }
    }
    if options.list {
        return Ok(());
    }
    println!("{} s", began.elapsed().as_secs());
    report.into_inner()?.conclude(options.sample.is_some())
}

/// The results so far.
#[derive(Default)]
struct Report {
    caught: usize,
    timed_out: usize,
    survivors: usize,
    argued: usize,
    /// Argued equivalent, but caught: the argument is wrong.
    refuted: usize,
    invalid: usize,
}

impl Report {
    /// Counts a verdict, and prints it unless the mutation was caught by a failed assertion.
    fn add(&mut self, mutation: &Mutation, is_argued: bool, verdict: &Verdict) {
        let (count, name) = match verdict.outcome {
            Outcome::Survived if is_argued => return self.argued += 1,
            Outcome::Caught if !is_argued => return self.caught += 1,
            Outcome::Caught | Outcome::TimedOut if is_argued => {
                (&mut self.refuted, "argued equivalent, but caught")
            }
            Outcome::Caught | Outcome::TimedOut => (&mut self.timed_out, "caught by a time limit only"),
            Outcome::Survived => (&mut self.survivors, "survived"),
            Outcome::Invalid => (&mut self.invalid, "invalid"),
        };
        *count += 1;
        println!("{name}: {}\n    {}", mutation.description(), verdict.reason);
    }

    /// Fails if too few mutations are caught. In a sample, a single survivor is not significant:
    /// the draw decides which of a package's few survivors it contains.
    fn conclude(&self, is_sample: bool) -> Result {
        let Self { caught, timed_out, survivors, argued, refuted, invalid } = self;
        let caught = caught + timed_out;
        let all = caught + survivors;
        println!(
            "mutants: {caught} of {all} caught, {timed_out} of them by a time limit only; {argued} argued equivalent, \
             {invalid} invalid"
        );
        if *refuted > 0 {
            return Err(format!("{refuted} mutations are argued equivalent, but a test detects them").into());
        }
        if is_enough(caught, all) || is_sample && *survivors <= 1 {
            return Ok(());
        }
        Err(format!(
            "{caught} of {all} mutations are caught, not {REQUIRED} %: write the test that fails, or argue in \
             tests/equivalent.toml"
        )
        .into())
    }
}

fn is_enough(caught: usize, all: usize) -> bool {
    caught * 100 >= all * REQUIRED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conclude(outcomes: &[(Outcome, bool)], is_sample: bool) -> Result {
        let mutation = &find::mutations("p", "src/x.rs", "fn f() { wake(); }").unwrap()[0];
        let mut report = Report::default();
        for &(outcome, is_argued) in outcomes {
            report.add(mutation, is_argued, &Verdict { outcome, reason: String::new() });
        }
        report.conclude(is_sample)
    }

    #[test]
    fn requires_nineteen_mutations_of_twenty() {
        let mut outcomes = vec![(Outcome::Caught, false); 19];
        outcomes.push((Outcome::Survived, false));
        assert!(conclude(&outcomes, false).is_ok(), "19 of 20 are 95 %");
        outcomes.push((Outcome::Survived, false));
        assert!(conclude(&outcomes, false).is_err());
        assert!(conclude(&outcomes, true).is_err(), "two survivors of a sample are significant");
    }

    #[test]
    fn allows_one_survivor_in_small_sample() {
        let outcomes = [(Outcome::Caught, false), (Outcome::Survived, false)];
        assert!(conclude(&outcomes, false).is_err());
        assert!(conclude(&outcomes, true).is_ok());
    }

    #[test]
    fn counts_neither_argued_nor_invalid_mutations() {
        let mut outcomes =
            vec![(Outcome::Survived, true), (Outcome::Invalid, false), (Outcome::TimedOut, false)];
        assert!(conclude(&outcomes, false).is_ok());
        outcomes.push((Outcome::Caught, true));
        assert!(conclude(&outcomes, false).is_err(), "the argument was wrong");
    }

    #[test]
    fn selects_files_by_their_whole_names() {
        assert!(
            is_named("src/queue/timed.rs", "timed.rs") && is_named("src/queue/timed.rs", "queue/timed.rs")
        );
        assert!(!is_named("src/queue/timed.rs", "imed.rs"));
    }

    #[test]
    fn equivalents_match_existing_mutations() {
        for package in loom::PACKAGES {
            let directory = cargo::root().join("crates").join(package);
            let all = sources::mutations(package, &sources::of(&directory).unwrap()).unwrap();
            equivalent::of(&directory, &all.iter().collect::<Vec<_>>()).unwrap();
        }
    }
}

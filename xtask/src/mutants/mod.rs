//! `cargo xtask mutants`: small mechanical bugs in every protocol file, each of which a test must
//! detect.
//!
//! Orderings are weakened by one step, comparisons shifted, constants in bounds or counts changed
//! by one, wakes, fences and stores dropped, conditions negated, `max` and `min` dropped, `&&` and
//! `||` exchanged, early returns dropped. The models and tests that reach a mutation run, the
//! fastest first, until one fails. Mutations that survive are listed. `tests/equivalent.toml` of a
//! package names the mutations that change nothing, with the reason.

mod equivalent;
mod find;
mod mutation;
mod options;
mod report;
mod results;
mod sources;
mod switch;
mod trials;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::loom::{cpus, in_parallel};
use crate::working_copy::WorkingCopy;
use crate::{Result, cargo};
pub(crate) use find::{is_for_tests, range};
pub(crate) use mutation::{Form, Mutation, lines};
pub(crate) use options::Options;
use report::Report;
use results::{Outcome, Record, Results};
pub(crate) use sources::{Source, of as sources};
pub(crate) use switch::{CHOSEN, Switched, module};
use trials::{Trials, Verdict};

/// The number of mutations between two progress messages.
const PROGRESS: usize = 50;

pub(crate) fn run(options: &Options) -> Result {
    let began = Instant::now();
    let results = Results::open()?;
    let mut report = Report::default();
    let mut everything = Vec::new();
    let mut work = Vec::new();
    for package in options.packages() {
        let directory = cargo::root().join("crates").join(package);
        let sources = sources::of(&directory)?;
        let all = sources::mutations(package, &sources)?;
        let equivalents = equivalent::of(&directory, &all.iter().collect::<Vec<_>>())?;
        everything.extend(all.iter().cloned());
        let digest = results::digest(&directory)?;
        let chosen: Vec<_> = all.into_iter().filter(|mutation| options.choose(mutation)).collect();
        let mut open: Vec<(usize, Mutation)> = Vec::new();
        for mutation in chosen {
            let argued = equivalents.iter().any(|entry| entry.is(&mutation));
            if options.list {
                let Mutation { function, original, mutated, .. } = &mutation;
                let note = if argued { " (argued equivalent)" } else { "" };
                println!("{} {function}{note}\n    {original}\n    {mutated}", mutation.place());
                continue;
            }
            let earlier = results.earlier(&mutation.key());
            if options.survivors && earlier.is_none_or(|record| record.outcome != Outcome::Survived) {
                continue;
            }
            match earlier.filter(|record| record.digest == digest && !options.afresh) {
                Some(record) if !options.survivors => report.add(&mutation, argued, record.clone()),
                _ => open.push((open.len(), mutation)),
            }
        }
        work.push((*package, sources, digest, equivalents, open));
    }
    options.check_files(&everything)?;
    if options.list {
        return Ok(());
    }

    let chosen = report.tried() + work.iter().map(|(.., open)| open.len()).sum::<usize>();
    let report = Mutex::new(report);
    // Of the time budget, each package can use its share and the unused time of the previous
    // packages.
    let mut spent = Duration::ZERO;
    let share = |at: usize| options.budget.map(|budget| budget.mul_f64((at + 1) as f64 / work.len() as f64));
    for (at, (package, sources, digest, equivalents, open)) in work.iter().enumerate() {
        if open.is_empty() {
            continue;
        }
        let copies = copies()?;
        let trials = Trials::prepare(&copies[0], package, sources, open)?;
        let started = Instant::now();
        let try_one = |mutation: &Mutation, how: &dyn Fn(bool) -> Result<Verdict>| -> Result<bool> {
            if share(at).is_some_and(|share| spent + started.elapsed() > share) {
                report.lock().expect("nothing panics with the report").not_tried += 1;
                return Ok(true);
            }
            let began = Instant::now();
            let argued = equivalents.iter().any(|entry| entry.is(mutation));
            let Verdict { outcome, by, said } = how(!argued)?;
            let seconds = began.elapsed().as_secs_f32();
            let record = Record { key: mutation.key(), digest: *digest, outcome, by, said, seconds };
            results.add(&record)?;
            let mut report = report.lock().expect("nothing panics with the report");
            report.add(mutation, argued, record);
            if report.tried().is_multiple_of(PROGRESS) {
                println!("{package}: {} of {chosen} mutations tried", report.tried());
            }
            Ok(true)
        };
        let (separate, switched): (Vec<_>, Vec<_>) =
            open.iter().partition(|(number, _)| trials.separate.contains(number));
        in_parallel(&switched, copies.len(), |_, (number, mutation)| {
            try_one(mutation, &|thoroughly| trials.switched(*number, thoroughly))
        })?;
        for copy in &copies {
            trials::restore(copy, package, sources)?;
        }
        copies[1..].iter().try_for_each(|copy| copy.take_builds(&copies[0]))?;
        in_parallel(&separate, copies.len(), |index, (_, mutation)| {
            try_one(mutation, &|thoroughly| trials.alone(&copies[index], mutation, thoroughly))
        })?;
        spent += started.elapsed();
    }
    report.into_inner()?.conclude(options.sample.is_some(), began.elapsed())
}

fn copies() -> Result<Vec<WorkingCopy>> {
    (0..cpus()).map(|index| WorkingCopy::new(&index.to_string(), &crate::loom::PACKAGES)).collect()
}

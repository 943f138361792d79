//! Planting seeds, and running the tests that must detect them.
//!
//! All seeds of a package are in one build, in which an environment variable switches one of them
//! on. A seed in code that the compiler evaluates is built alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Seed, Seeds};
use crate::Result;
use crate::loom::{cpus, in_parallel, panic_message};
use crate::mutants::{CHOSEN, Switched};
use crate::process::{End, Outcome};
use crate::working_copy::{self, Build, Kind, MODELS, PREEMPTIONS, PREEMPTIONS_VARIABLE, WorkingCopy};

/// The processor-time limit of a test: exceeding it means that the seed causes an endless loop.
const TEST_LIMIT: Duration = Duration::from_secs(300);

/// The variable for the number of seconds that a test waits for an event that a seed prevents.
/// Without the seed the event occurs within milliseconds; by default a test waits for a minute
/// because of busy machines.
const TEST_TIMEOUT: (&str, &str) = ("PUNCTUAL_TEST_TIMEOUT", "15");

/// The switch, if a seed is switched on.
type Switch = Option<String>;

/// The tests of a package, in one build with its seeds.
pub(crate) struct Planted {
    /// First those in the build, with their index as the number of their switch.
    table: Seeds,
    /// The executables, by target.
    paths: BTreeMap<String, PathBuf>,
}

impl Planted {
    /// Builds the targets with the tests of the seeds, and the models if `with_models`.
    pub(crate) fn build(copy: &WorkingCopy, mut table: Seeds, with_models: bool) -> Result<Self> {
        let began = Instant::now();
        table.seeds.sort_by_key(|Seed { change, .. }| {
            (change.constant, change.range.start, Reverse(change.range.end))
        });
        let Seeds { package, sources, seeds } = &table;
        let changes = seeds.iter().map(|seed| &seed.change).take_while(|change| !change.constant);
        let changes: Vec<_> = changes.enumerate().collect();
        let mut targets: BTreeSet<&str> = seeds.iter().map(|seed| seed.test().0).collect();
        targets.extend(with_models.then_some(MODELS));
        let planted = Switched::write(copy, package, sources, &changes, changes.len())?;
        let paths = build(copy, package, &targets, |file, place| {
            let blamed = planted.get(file)?.to_blame(place).into_iter();
            Some(blamed.map(|number| seeds[number].name.as_str()).collect())
        })?;
        for source in sources {
            copy.write(package, &source.file, &source.text)?;
        }
        println!("{package}: {} seeds in one build, after {} s", changes.len(), began.elapsed().as_secs());
        Ok(Self { table, paths })
    }

    /// Returns the models, if they are in the build.
    pub(crate) fn models(&self) -> Result<Vec<(&'static str, &Path, String)>> {
        let Some(path) = self.paths.get(MODELS) else { return Ok(Vec::new()) };
        let names = working_copy::test_names(path)?.into_iter();
        Ok(names.map(|name| (self.table.package, path.as_path(), name)).collect())
    }

    /// Requires each seed to be detected by its test, and the test to pass without the seed. With
    /// `models_pass`, the models have just passed.
    pub(crate) fn catch(&self, copy: &WorkingCopy, models_pass: bool) -> Result {
        let Seeds { package, seeds, .. } = &self.table;
        let began = Instant::now();
        let mut tests: BTreeSet<_> = seeds.iter().map(Seed::test).collect();
        for (target, path) in &self.paths {
            let names: BTreeSet<_> = working_copy::test_names(path)?.into_iter().collect();
            if let Some((_, test)) = tests.iter().find(|(of, test)| of == target && !names.contains(*test)) {
                return Err(format!(
                    "{package}: a seed names the test {target}::{test}, which does not exist"
                )
                .into());
            }
        }
        tests.retain(|(target, _)| !models_pass || *target != MODELS);
        let tests: Vec<_> = tests.into_iter().collect();
        let unfit = in_parallel(&tests, cpus(), |_, (target, test)| {
            let outcome = run(&self.paths[*target], target, test, None)?;
            if outcome.end != End::Exited(0) {
                println!(
                    "{target}::{test}: {} without a seed\n{}{}",
                    outcome.end, outcome.stdout, outcome.stderr
                );
            }
            Ok(outcome.end == End::Exited(0))
        })?;
        if unfit > 0 {
            return Err(format!("{package}: {unfit} tests fail without a seed").into());
        }
        let (switched, alone) = seeds.split_at(seeds.partition_point(|seed| !seed.change.constant));
        let numbered: Vec<_> = switched.iter().enumerate().collect();
        let mut missed = in_parallel(&numbered, cpus(), |_, (number, seed)| {
            let (target, test) = seed.test();
            Ok(report(seed, &verdict(&run(&self.paths[target], target, test, Some(number.to_string()))?)))
        })?;
        for seed in alone {
            let (target, test) = seed.test();
            let built =
                self.table.alone(seed, copy, || build(copy, package, &[target].into(), |_, _| None))?;
            missed += usize::from(!report(seed, &verdict(&run(&built[target], target, test, None)?)));
        }
        if missed > 0 {
            return Err(format!("{package}: seeds not caught: {missed} of {}", seeds.len()).into());
        }
        if !seeds.is_empty() {
            println!("{package}: seeds caught: {}, in {} s", seeds.len(), began.elapsed().as_secs());
        }
        Ok(())
    }
}

/// Builds test targets; returns their executables. `blame` names the seeds at a place that the
/// compiler rejects.
fn build<'a>(
    copy: &WorkingCopy,
    package: &str,
    targets: &BTreeSet<&'a str>,
    blame: impl Fn(&str, &std::ops::Range<usize>) -> Option<Vec<&'a str>>,
) -> Result<BTreeMap<String, PathBuf>> {
    let mut paths = BTreeMap::new();
    for kind in [Kind::Model, Kind::Test] {
        let targets: Vec<_> = targets.iter().copied().filter(|target| Kind::of(target) == kind).collect();
        if targets.is_empty() {
            continue;
        }
        match copy.build(kind, package, &targets)? {
            Build::Done(built) => paths.extend(
                built
                    .into_iter()
                    .map(|artifact| (working_copy::target_name(&artifact).to_owned(), artifact.path)),
            ),
            Build::Failed(complaints) => {
                let names: BTreeSet<_> = complaints
                    .iter()
                    .filter_map(|complaint| complaint.place.as_ref())
                    .filter_map(|(file, place)| blame(file, place))
                    .flatten()
                    .collect();
                let text: Vec<_> = complaints.into_iter().map(|complaint| complaint.text).collect();
                return Err(format!("{package} does not build with {names:?}:\n{}", text.join("\n")).into());
            }
        }
    }
    Ok(paths)
}

fn run(path: &Path, target: &str, test: &str, switch: Switch) -> Result<Outcome> {
    let mut variables = vec![(TEST_TIMEOUT.0, OsStr::new(TEST_TIMEOUT.1))];
    if let Some(number) = switch.as_deref() {
        variables.push((CHOSEN, OsStr::new(number)));
        // A lower bound, which the merge gate sets for the models, would miss seeds.
        variables.push((PREEMPTIONS_VARIABLE, OsStr::new(PREEMPTIONS)));
    }
    working_copy::run_test(path, test, Kind::of(target).limits(TEST_LIMIT), &variables)
}

/// Prints a verdict; returns whether the seed was caught.
fn report(seed: &Seed, verdict: &Verdict) -> bool {
    let (target, test) = seed.test();
    match verdict {
        Ok(message) => println!("{}: caught by {target}::{test}: {message}", seed.name),
        Err(miss) => println!("{}: NOT CAUGHT by {target}::{test}: {miss}", seed.name),
    }
    verdict.is_ok()
}

/// The message of the test about a seed, or why its outcome does not count.
type Verdict = std::result::Result<String, String>;

fn verdict(outcome: &Outcome) -> Verdict {
    if matches!(outcome.end, End::Exited(0) | End::TimedOut(_)) {
        return Err(outcome.end.to_string());
    }
    match panic_message(&outcome.stderr) {
        // A deadlock alone does not show whether the seed or the model causes it.
        Some(message) if message.starts_with("deadlock") => Err(message.to_owned()),
        Some(message) => Ok(message.to_owned()),
        None => Err(format!("{} without a panic", outcome.end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, stderr: &str) -> Outcome {
        Outcome { stdout: String::new(), stderr: stderr.to_owned(), end: End::Exited(code) }
    }

    #[test]
    fn counts_only_messages_as_caught() {
        let panic =
            "\nthread 'a' panicked at x.rs:1:2:\nlost a job\nnote: more\n\nthread 'a' panicked at y:\nno\n";
        assert_eq!(verdict(&ended(101, panic)), Ok("lost a job".to_owned()));
        assert!(verdict(&ended(0, panic)).is_err());
        assert!(verdict(&ended(101, "")).is_err());
        assert!(verdict(&ended(101, "thread 'a' panicked at x:\ndeadlock; threads = []\n")).is_err());
    }
}

//! `cargo xtask loom`: the models of the protocols, and the proof that they can fail.
//!
//! First all models run, which have to pass. Then every seeded bug (see [`crate::seeds`]) is put into a copy of
//! its package, and the test that is named with it has to fail by saying what went wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::process::{End, Outcome};
use crate::sample::Sample;
use crate::seeds::{self, Seed};
use crate::working_copy::{self, Build, Kind, WorkingCopy};
use crate::{Result, cargo};

pub(crate) const PACKAGES: [&str; 2] = ["punctual-core", "punctual-sync"];

/// Those and a package without models, which has tests of schedules.
const SEEDED: [&str; 3] = ["punctual-core", "punctual-sync", "punctual-kernel"];

/// A model that has used more processor time than this has been made to run in circles.
const LIMIT: Duration = Duration::from_secs(300);

/// How many seconds a test waits for what a seeded bug keeps from happening. Without the bug it happens within
/// milliseconds, but on a busy machine a test gives it a minute.
const PATIENCE: (&str, &str) = ("PUNCTUAL_TEST_PATIENCE", "15");

#[derive(Args)]
pub(crate) struct Options {
    /// Package to check; may be repeated [default: all with models; punctual-kernel, which has none, only if named]
    #[arg(long = "package", value_name = "NAME", value_parser = seeded)]
    packages: Vec<&'static str>,

    /// Seeded bug to find, without running the models first; may be repeated [default: all, after the models]
    #[arg(long = "seed", value_name = "NAME")]
    seeds: Vec<String>,

    /// Of the seeded bugs only part N of M; `commit/M` and `day/M` take another part with every commit or day
    #[arg(long, value_name = "N/M")]
    sample: Option<Sample>,
}

/// The package of this name, if it has models.
pub(crate) fn package(name: &str) -> Result<&'static str, String> {
    one_of(&PACKAGES, name)
}

/// The package of this name, if it has seeded bugs.
fn seeded(name: &str) -> Result<&'static str, String> {
    one_of(&SEEDED, name)
}

fn one_of(packages: &'static [&'static str], name: &str) -> Result<&'static str, String> {
    let found = packages.iter().copied().find(|package| *package == name);
    found.ok_or_else(|| format!("{name}: the packages with protocols are {}", packages.join(", ")))
}

pub(crate) fn run(options: &Options) -> Result {
    let packages = if options.packages.is_empty() { PACKAGES.as_slice() } else { &options.packages };
    let mut seeds: Vec<(&str, Seed)> = Vec::new();
    for package in packages {
        let of_package = seeds::of(&cargo::root().join("crates").join(package))?;
        seeds.extend(of_package.into_iter().map(|seed| (*package, seed)));
    }
    choose(&mut seeds, &options.seeds)?;
    seeds.retain(|(_, seed)| options.sample.is_none_or(|sample| sample.takes(&seed.name)));

    // The bugs of the others are at least ones that can be planted.
    for package in SEEDED {
        seeds::of(&cargo::root().join("crates").join(package))?;
    }
    let copy = WorkingCopy::new(0, &SEEDED)?;
    if options.seeds.is_empty() {
        let with_models = packages.iter().filter(|package| PACKAGES.contains(package));
        with_models.into_iter().try_for_each(|package| models(&copy, package))?;
    }
    find_all(copy, 0, &SEEDED, &seeds)
}

/// Leaves the seeds of these names, or all if there are none, in the order in which they are best built.
pub(crate) fn choose(seeds: &mut Vec<(&str, Seed)>, names: &[String]) -> Result {
    for name in names {
        if !seeds.iter().any(|(_, seed)| seed.name == *name) {
            return Err(format!("no seeded bug is named `{name}`").into());
        }
    }
    seeds.retain(|(_, seed)| names.is_empty() || names.contains(&seed.name));
    // What is built one after the other should differ little.
    seeds.sort_by(|(a, x), (b, y)| (a, x.test(), &x.file).cmp(&(b, y.test(), &y.file)));
    Ok(())
}

/// Runs the models of a package, all of which have to pass.
fn models(copy: &WorkingCopy, package: &str) -> Result {
    let began = Instant::now();
    let built = copy.build(Kind::Model, package, &["loom_*"])?.done()?;
    let mut models = Vec::new();
    for artifact in &built {
        let names = working_copy::test_names(&artifact.path)?;
        models.extend(names.into_iter().map(|name| (&artifact.target, &artifact.path, name)));
    }
    let failed = in_parallel(&models, cpus(), |_, (target, path, model)| {
        let began = Instant::now();
        let outcome = working_copy::run_test(path, model, Kind::Model.limits(LIMIT), &[])?;
        let passed = outcome.end == End::Exited(0);
        if passed {
            println!("{target}::{model}: passed in {:.1} s", began.elapsed().as_secs_f32());
        } else {
            println!("{target}::{model}: {}\n{}{}", outcome.end, outcome.stdout, outcome.stderr);
        }
        Ok(passed)
    })?;
    if failed > 0 {
        return Err(format!("{package}: models that fail: {failed}").into());
    }
    println!("{package}: models that pass: {}, in {} s", models.len(), began.elapsed().as_secs());
    Ok(())
}

/// Demands that every bug is found, in as many copies of the packages as there are CPUs, numbered from that of the first on.
pub(crate) fn find_all(
    first: WorkingCopy,
    number: usize,
    packages: &[&str],
    seeds: &[(&str, Seed)],
) -> Result {
    if seeds.is_empty() {
        return Ok(());
    }
    let began = Instant::now();
    // The tests that find seeds are built without one first: a later build then is a small step from that, and a test
    // that does not exist is told apart from one that fails.
    let mut tests: BTreeMap<(Kind, &str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (package, seed) in seeds {
        let (target, test) = seed.test();
        tests.entry((Kind::of(target), package, target)).or_default().insert(test);
    }
    for (&(kind, package, target), tests) in &tests {
        let path = executable(first.build(kind, package, &[target])?, target)?;
        let names = working_copy::test_names(&path)?;
        if let Some(missing) = tests.iter().find(|test| !names.iter().any(|name| name == *test)) {
            return Err(format!(
                "{package}: a seeded bug names the test {target}::{missing}, which does not exist"
            )
            .into());
        }
    }
    let mut copies = vec![first];
    for index in 1..cpus().min(seeds.len()) {
        let copy = WorkingCopy::new(number + index, packages)?;
        copy.take_builds(&copies[0])?;
        copies.push(copy);
    }

    let missed = in_parallel(seeds, copies.len(), |index, (package, seed)| {
        let began = Instant::now();
        let verdict = find(&copies[index], package, seed)?;
        let (name, (target, test)) = (&seed.name, seed.test());
        let took = began.elapsed().as_secs_f32();
        match &verdict {
            Ok(message) => println!("{name}: caught by {target}::{test} in {took:.1} s: {message}"),
            Err(miss) => println!("{name}: NOT CAUGHT by {target}::{test}: {miss}"),
        }
        Ok(verdict.is_ok())
    })?;
    if missed > 0 {
        return Err(format!("seeded bugs not caught: {missed} of {}", seeds.len()).into());
    }
    println!("seeded bugs caught: {}, in {} s", seeds.len(), began.elapsed().as_secs());
    Ok(())
}

/// What the test says to one bug.
fn find(copy: &WorkingCopy, package: &str, seed: &Seed) -> Result<Verdict> {
    let (target, test) = seed.test();
    let original = seeds::read(&copy.package(package), &seed.file)?;
    copy.write(package, &seed.file, &seed.plant(&original)?)?;
    let built = copy.build(Kind::of(target), package, &[target]);
    copy.write(package, &seed.file, &original)?;
    match built? {
        Build::Failed(complaints) => {
            let text = complaints.first().map(|complaint| complaint.text.clone()).unwrap_or_default();
            Ok(Err(format!("it does not build\n{text}")))
        }
        built @ Build::Done(_) => {
            let path = executable(built, target)?;
            let patience = [(PATIENCE.0, OsStr::new(PATIENCE.1))];
            Ok(verdict(&working_copy::run_test(&path, test, Kind::of(target).limits(LIMIT), &patience)?))
        }
    }
}

fn executable(build: Build, target: &str) -> Result<PathBuf> {
    let built = build.done()?;
    let found = built.into_iter().find(|artifact| working_copy::target_name(artifact) == target);
    Ok(found.ok_or_else(|| format!("cargo built no {target}"))?.path)
}

/// As many things as can be done at the same time.
pub(crate) fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Does `job` for each of `items`, on `threads` threads whose indices it is told; returns how often it gave `false`.
pub(crate) fn in_parallel<T: Sync>(
    items: &[T],
    threads: usize,
    job: impl Fn(usize, &T) -> Result<bool> + Sync,
) -> Result<usize> {
    let queue = Mutex::new(items.iter());
    let next = || queue.lock().expect("nothing panics with the queue").next();
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for index in 0..threads {
            let (next, failed, job) = (&next, &failed, &job);
            scope.spawn(move || {
                while let Some(item) = next() {
                    let error = match job(index, item) {
                        Ok(true) => continue,
                        Ok(false) => None,
                        Err(error) => Some(error.to_string()),
                    };
                    failed.lock().expect("nothing panics with the list").push(error);
                }
            });
        }
    });
    let failed = failed.into_inner()?;
    match failed.iter().flatten().next() {
        Some(error) => Err(error.as_str().into()),
        None => Ok(failed.len()),
    }
}

/// What a test said about a bug, or why that does not count.
type Verdict = std::result::Result<String, String>;

fn verdict(outcome: &Outcome) -> Verdict {
    if matches!(outcome.end, End::Exited(0) | End::TimedOut(_)) {
        return Err(outcome.end.to_string());
    }
    match panic_message(&outcome.stderr) {
        // A model that only hangs does not say whether the bug or the model is to blame.
        Some(message) if message.starts_with("deadlock") => Err(message.to_owned()),
        Some(message) => Ok(message.to_owned()),
        None => Err(format!("{} without a panic", outcome.end)),
    }
}

/// The first line of the first panic's message.
pub(crate) fn panic_message(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines();
    lines.find(|line| line.contains("panicked at"))?;
    lines.map(str::trim).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, stderr: &str) -> Outcome {
        Outcome { stdout: String::new(), stderr: stderr.to_owned(), end: End::Exited(code) }
    }

    #[test]
    fn counts_only_a_message_as_caught() {
        let panic =
            "\nthread 'a' panicked at x.rs:1:2:\nlost a job\nnote: more\n\nthread 'a' panicked at y:\nno\n";
        assert_eq!(verdict(&ended(101, panic)), Ok("lost a job".to_owned()));
        assert!(verdict(&ended(0, panic)).is_err());
        assert!(verdict(&ended(101, "")).is_err());
        assert!(verdict(&ended(101, "thread 'a' panicked at x:\ndeadlock; threads = []\n")).is_err());
    }
}

//! `cargo xtask loom`: the models of the protocols, and the proof that they can fail.
//!
//! A model that passes may simply not look. So each package has test-only features named `seed-…`, each of which
//! puts one bug into a protocol. Beside each stands the model that has to find it, by saying what went wrong.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::cargo::{self, Purpose};
use crate::process::{self, End, Outcome};
use crate::{Result, no_arguments};

const PACKAGES: [&str; 2] = ["punctual-core", "punctual-sync"];

/// Preemptions per execution that are explored by default; most concurrency bugs need no more than two.
const PREEMPTIONS: &str = "3";
const PREEMPTIONS_VARIABLE: &str = "LOOM_MAX_PREEMPTIONS";

/// Chooses one of the bugs that the models are built with. All are in one build, which takes half the time of two.
const SEED_VARIABLE: &str = "PUNCTUAL_SEED";
/// The name of none of them: the code is as it should be.
const NO_SEED: &str = "none";

/// A model that still runs after this has been made to run in circles.
const LIMIT: Duration = Duration::from_secs(300);

/// A bug, and the model that has to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seed<'a> {
    feature: &'a str,
    target: &'a str,
    model: &'a str,
}

pub(crate) fn run(arguments: &[String]) -> Result {
    no_arguments(arguments)?;
    PACKAGES.into_iter().try_for_each(check)
}

/// Runs the models of a package, and those that have to find its seeded bugs.
fn check(package: &str) -> Result {
    let manifest = fs::read_to_string(cargo::root().join("crates").join(package).join("Cargo.toml"))?;
    let seeds = seeds(&manifest)?;
    if seeds.is_empty() {
        return Err(
            format!("{package} has no feature `seed-…`: nothing shows that the models can fail").into()
        );
    }
    let features = seeds.iter().map(|seed| seed.feature).collect::<Vec<_>>().join(",");
    let built = executables(models(package).args(["--features", &features]))?;

    let mut tests = Vec::new();
    for (target, path) in &built {
        tests.extend(names(path)?.into_iter().map(|model| (target, path, model)));
    }
    let failed = in_parallel(&tests, |(target, path, model)| {
        let outcome = model_command(path, model, NO_SEED)?;
        let passed = outcome.end == End::Exited(0);
        if passed {
            println!("{target}::{model}: passed");
        } else {
            println!("{target}::{model}: {}\n{}{}", outcome.end, outcome.stdout, outcome.stderr);
        }
        Ok(passed)
    })?;
    if failed > 0 {
        return Err(format!("{failed} models fail").into());
    }

    let missed = in_parallel(&seeds, |seed| {
        let Seed { feature, target, model } = *seed;
        let path = built.get(target).ok_or_else(|| format!("{feature}: there is no {target}"))?;
        if !names(path)?.iter().any(|name| name == model) {
            return Err(format!("{feature}: there is no {target}::{model}").into());
        }
        let verdict = verdict(&model_command(path, model, feature)?);
        match &verdict {
            Ok(message) => println!("{feature}: caught by {target}::{model}: {message}"),
            Err(miss) => println!("{feature}: NOT CAUGHT by {target}::{model}: {miss}"),
        }
        Ok(verdict.is_ok())
    })?;
    if missed > 0 {
        return Err(format!("{missed} of {} bugs are not caught", seeds.len()).into());
    }
    println!("{package}: {} models pass, {} bugs caught", tests.len(), seeds.len());
    Ok(())
}

/// The cargo command that builds the models, in a target directory of its own: `--cfg loom` changes every crate, and
/// sharing the usual directory would rebuild them all each time one goes back and forth.
fn models(package: &str) -> Command {
    let mut command = cargo::command();
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    command
        .args(["test", "-p", package, "--profile", "models", "--test", "loom_*", "--no-run"])
        .env("RUSTFLAGS", format!("{flags} --cfg loom").trim_start())
        .env("CARGO_TARGET_DIR", cargo::target_dir().join("loom"));
    command
}

/// Builds the models; returns their executables by name. They are run without cargo, so that a build that fails does
/// not count as a bug that was caught.
fn executables(command: &mut Command) -> Result<BTreeMap<String, PathBuf>> {
    let built = cargo::build(command)?.into_iter();
    Ok(built.filter(|a| a.purpose == Purpose::Test).map(|a| (a.target, a.path)).collect())
}

/// The models in an executable.
fn names(path: &Path) -> Result<Vec<String>> {
    let listed = process::capture(Command::new(path).args(["--list", "--format", "terse"]), LIMIT)?;
    Ok(listed.stdout.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Runs one model, on its own in a process: two in one process would hinder each other, since loom maps and unmaps
/// a stack for each thread of each execution.
fn model_command(path: &Path, model: &str, seed: &str) -> Result<Outcome> {
    let preemptions = env::var(PREEMPTIONS_VARIABLE).unwrap_or_else(|_| PREEMPTIONS.to_owned());
    let mut command = Command::new(path);
    command.args(["--exact", model, "--nocapture"]);
    command.env(PREEMPTIONS_VARIABLE, preemptions).env(SEED_VARIABLE, seed);
    process::capture(&mut command, LIMIT)
}

/// Does `job` for each of `items`, on as many threads as there are CPUs; returns how often it gave `false`.
fn in_parallel<T: Sync>(items: &[T], job: impl Fn(&T) -> Result<bool> + Sync) -> Result<usize> {
    let queue = Mutex::new(items.iter());
    let next = || queue.lock().expect("nothing panics with the queue").next();
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(item) = next() {
                    let error = match job(item) {
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

/// What a model said about a bug, or why that does not count.
fn verdict(outcome: &Outcome) -> std::result::Result<String, String> {
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
fn panic_message(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines();
    lines.find(|line| line.contains("panicked at"))?;
    lines.map(str::trim).find(|line| !line.is_empty())
}

/// The features of a manifest whose names begin with `seed-`, each with a comment that names its model.
fn seeds(manifest: &str) -> Result<Vec<Seed<'_>>> {
    let lines = manifest.lines().map(str::trim);
    let features = lines.skip_while(|&line| line != "[features]").skip(1).take_while(|l| !l.starts_with('['));
    features
        .filter(|line| line.starts_with("seed-"))
        .map(|line| seed(line).ok_or_else(|| format!("no `# target::model` behind `{line}`").into()))
        .collect()
}

fn seed(line: &str) -> Option<Seed<'_>> {
    let (feature, rest) = line.split_once('=')?;
    let (target, model) = rest.split_once('#')?.1.trim().split_once("::")?;
    Some(Seed { feature: feature.trim(), target, model })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_seeds_among_the_features_only() {
        let manifest = "[package]\nseed-not = 1\n\n[features]\n# seed-comment = []\ndefault = []\n\
                        seed-a = [] # loom_x::one\nseedling = []\n\n[dependencies]\nseed-dep = \"1\"\n";
        let expected = Seed { feature: "seed-a", target: "loom_x", model: "one" };
        assert_eq!(seeds(manifest).unwrap(), [expected]);
        assert!(seeds("[package]\nname = \"x\"\n").unwrap().is_empty());
        assert!(seeds("[features]\nseed-a = []\n").is_err(), "no model is named");
    }

    fn ended(code: i32, stderr: &str) -> Outcome {
        Outcome { stdout: String::new(), stderr: stderr.to_owned(), end: End::Exited(code) }
    }

    #[test]
    fn a_bug_is_caught_by_a_message() {
        let panic =
            "\nthread 'a' panicked at x.rs:1:2:\nlost a job\nnote: more\n\nthread 'a' panicked at y:\nno\n";
        assert_eq!(verdict(&ended(101, panic)), Ok("lost a job".to_owned()));
        assert!(verdict(&ended(0, panic)).is_err());
        assert!(verdict(&ended(101, "")).is_err());
        assert!(verdict(&ended(101, "thread 'a' panicked at x:\ndeadlock; threads = []\n")).is_err());
    }
}

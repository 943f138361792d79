//! `cargo xtask fuzz apps`: whole apps, made up by `punctual-fuzz` lot by lot, compiled, and run by script after script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use crate::Result;
use crate::cargo;
use crate::process;

/// The package that makes apps up, and that of the apps.
const GENERATOR: &str = "punctual-fuzz";
const APPS: &str = "fuzz-apps";

/// How long the apps of one lot are run, so that several lots are compiled in a minute or two. Compiling 20 apps takes some
/// 5 s of one CPU, compiling 5 takes 3 s, so a lot is not to be small; and of one app some 15 scripts see most.
const LOT: Duration = Duration::from_secs(30);
const COUNT: u64 = 20;

const USAGE: &str = "usage: cargo xtask fuzz apps [--seconds N] [--seed S] [--count K] [--executor one|two|poll|global] \
                     [-- WORD..]; the words are given to the program with the apps, which says which it takes";

/// What to make up, and how to run it.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    seconds: u64,
    /// That of the first app. The next ones have the next numbers.
    seed: Option<u64>,
    /// Apps in a lot.
    count: u64,
    executor: String,
    /// For the program.
    words: Vec<String>,
}

pub(super) fn run(arguments: &[String]) -> Result {
    let options = options(arguments)?;
    let limit = Duration::from_secs(options.seconds);
    let first = match options.seed {
        Some(seed) => seed,
        // A number of moderate length that is another one every second.
        None => SystemTime::UNIX_EPOCH.elapsed()?.as_secs() % 100_000_000 * 100,
    };
    let generator = program(cargo::command().args(["build", "--package", GENERATOR]), GENERATOR)?;
    // What compiling takes is not counted: on a busy machine nothing would be left of a short time.
    let mut left = limit;
    let mut seed = first;
    while seed == first || !left.is_zero() {
        let program = compile(&generator, &options, seed)?;
        let begun = Instant::now();
        // A lot of its own, from a reproduction, has all of the time.
        let seconds = if options.count < COUNT { left } else { left.min(LOT) }.as_secs().max(1);
        println!("apps {seed} to {}", seed + options.count - 1);
        let mut command = Command::new(&program);
        command.args([
            "--seed",
            &first.to_string(),
            "--seconds",
            &seconds.to_string(),
            "--scripts",
            "1000000",
        ]);
        if let Err(error) = process::succeed(command.args(&options.words)) {
            let kept = keep()?;
            return Err(format!("{error}\nthe sources are in {}", kept.display()).into());
        }
        left = left.saturating_sub(begun.elapsed());
        seed += options.count;
    }
    Ok(())
}

/// Where the package of the lot at hand is.
fn package() -> PathBuf {
    cargo::target_dir().join(APPS)
}

/// Makes up the apps from the seed `first` on, and builds the program that has them.
fn compile(generator: &Path, options: &Options, first: u64) -> Result<PathBuf> {
    let directory = package();
    fs::create_dir_all(&directory)?;
    let seeds = (first..first + options.count).map(|seed| seed.to_string());
    let mut command = Command::new(generator);
    command.arg(&directory).arg(cargo::root()).arg(&options.executor).args(seeds);
    process::succeed(&mut command)?;
    let mut command = cargo::command();
    command.args(["build", "--quiet", "--offline", "--manifest-path"]).arg(directory.join("Cargo.toml"));
    // Nothing of this is compiled again.
    command.arg("--target-dir").arg(cargo::target_dir()).env("CARGO_INCREMENTAL", "0");
    program(&mut command, APPS)
}

/// Builds, and finds the program of the package `name`.
fn program(command: &mut Command, name: &str) -> Result<PathBuf> {
    let built = cargo::build(command)?;
    let found = built.into_iter().find(|artifact| artifact.target == name);
    Ok(found.ok_or_else(|| format!("cargo built no program {name}"))?.path)
}

/// Keeps the sources of the lot at hand where the next one does not replace them.
fn keep() -> Result<PathBuf> {
    let kept = cargo::target_dir().join("fuzz/failures").join(APPS);
    fs::create_dir_all(&kept)?;
    for source in fs::read_dir(package().join("src"))? {
        let source = source?.path();
        fs::copy(&source, kept.join(source.file_name().unwrap_or_default()))?;
    }
    Ok(kept)
}

fn options(arguments: &[String]) -> Result<Options> {
    let mut options =
        Options { seconds: 60, seed: None, count: COUNT, executor: "any".to_owned(), words: Vec::new() };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            options.words = words.cloned().collect();
            break;
        }
        let value = words.next().ok_or(USAGE)?;
        let number = || value.parse::<u64>().map_err(|error| format!("{word} {value}: {error}"));
        match &**word {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = Some(number()?),
            "--count" => options.count = number()?.max(1),
            "--executor" => options.executor.clone_from(value),
            _ => return Err(USAGE.into()),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        options(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn takes_what_a_failure_says() {
        let options =
            parse("--seed 7 --count 1 --executor poll -- --time real --script seed=1,budget=9").unwrap();
        assert_eq!((options.seed, options.count, &*options.executor), (Some(7), 1, "poll"));
        assert_eq!(options.words, ["--time", "real", "--script", "seed=1,budget=9"]);
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        for line in ["--seconds", "--seed x", "apps", "--minutes 1"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}

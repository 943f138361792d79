//! `cargo xtask fuzz apps`: whole apps, made up by `punctual-fuzz` lot by lot, compiled, and run by script after script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use clap::{Args, value_parser};

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

/// What to make up, and how to run it.
#[derive(Args, Clone)]
pub(super) struct Options {
    /// Seconds to run apps for
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,

    /// Seed of the first app; the next apps have the next numbers [default: from the clock]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,

    /// Apps that are compiled together
    #[arg(long, value_name = "K", default_value_t = COUNT, value_parser = value_parser!(u64).range(1..))]
    count: u64,

    /// Executor of the apps: one, two, poll or global
    #[arg(long, default_value = "any", hide_default_value = true)]
    executor: String,

    /// Arguments for the program with the apps, which says which it takes
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

pub(super) fn run(options: &Options) -> Result {
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
        let program = compile(&generator, options, seed)?;
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

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    fn parse(line: &str) -> Result<Options, clap::Error> {
        let command = Options::augment_args(clap::Command::new("apps").no_binary_name(true));
        Options::from_arg_matches(&command.try_get_matches_from(line.split_whitespace())?)
    }

    #[test]
    fn takes_what_a_failure_says() {
        let options =
            parse("--seed 7 --count 1 --executor poll -- --time real --script seed=1,budget=9").unwrap();
        assert_eq!((options.seed, options.count, &*options.executor), (Some(7), 1, "poll"));
        assert_eq!(options.words, ["--time", "real", "--script", "seed=1,budget=9"]);
    }
}

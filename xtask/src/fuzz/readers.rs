//! `cargo xtask fuzz traces`, `machines` and `models`: the readers of untrusted files, fuzzed by
//! libFuzzer with the stable compiler.
//!
//! On a nightly compiler, cargo-fuzz would add AddressSanitizer; the readers are safe Rust and do
//! not need it. The instrumentation itself is LLVM's, and its flags are stable.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use clap::{Args, value_parser};
use serde::Deserialize;

use crate::Result;
use crate::cargo::{self, Artifact};
use crate::process::{self, End};

/// The packages of the targets. They are not members of the workspace: nothing else needs
/// libFuzzer.
pub(super) const TRACES: &str = "crates/punctual-trace/fuzz";
pub(super) const MACHINES: &str = "crates/punctual-isolate/fuzz";
pub(super) const MODELS: &str = "crates/punctual-analysis/fuzz";

/// Coverage of edges and comparisons for libFuzzer, and every check that the compiler can insert.
const FLAGS: [&str; 10] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];

/// The memory limit for each input.
const MEMORY_MIB: u32 = 512;
const SECONDS_PER_INPUT: u32 = 10;

/// The time that a fuzzer may take to end after its time limit.
const GRACE: Duration = Duration::from_secs(60);

/// The number of lines of a failed fuzzer's output that are printed.
const SHOWN: usize = 40;

#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Seconds for each target; all run at once
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = value_parser!(u32).range(1..))]
    seconds: u32,

    /// List the targets instead of fuzzing them
    #[arg(long)]
    list: bool,

    /// Targets to fuzz [default: all]
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
}

pub(super) fn run(package: &str, options: &Options) -> Result {
    let known = names(package)?;
    if let Some(unknown) = options.targets.iter().find(|&target| !known.contains(target)) {
        return Err(format!("there is no fuzz target `{unknown}`; there are {}", known.join(", ")).into());
    }
    if options.list {
        known.iter().for_each(|name| println!("{name}"));
        return Ok(());
    }
    let built = build(package)?;
    let wanted = |target: &String| options.targets.is_empty() || options.targets.contains(target);
    let chosen: Vec<&Artifact> = built.iter().filter(|artifact| wanted(&artifact.target)).collect();
    println!("targets run at once: {}, for {} s each", chosen.len(), options.seconds);

    let verdicts: Vec<Result<(), String>> = thread::scope(|scope| {
        let fuzz = |artifact| {
            scope.spawn(move || target(package, artifact, options.seconds).map_err(|e| e.to_string()))
        };
        let running: Vec<_> = chosen.iter().copied().map(fuzz).collect();
        running.into_iter().map(|thread| thread.join().expect("a fuzzer's thread does not panic")).collect()
    });
    let failed: Vec<String> = verdicts.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}

/// Returns the names of a package's targets.
fn names(package: &str) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Manifest {
        bin: Vec<Target>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
    }
    let manifest = fs::read_to_string(cargo::root().join(package).join("Cargo.toml"))?;
    let Manifest { bin } = toml::from_str(&manifest)?;
    Ok(bin.into_iter().map(|target| target.name).collect())
}

/// Builds the targets in a separate directory, because every crate is instrumented.
fn build(package: &str) -> Result<Vec<Artifact>> {
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    let mut command = cargo::command();
    command
        .args(["build", "--release", "--bins", "--manifest-path"])
        .arg(cargo::root().join(package).join("Cargo.toml"))
        // An explicit target, so that build scripts and macros are not instrumented.
        .args(["--target", &cargo::rustc(&["--print", "host-tuple"])?])
        .env("RUSTFLAGS", format!("{flags} {}", FLAGS.join(" ")).trim_start())
        .env("CARGO_TARGET_DIR", cargo::target_dir().join("fuzz"));
    cargo::build(&mut command)
}

/// Fuzzes one target. Its corpus is kept for the next run; failing inputs are stored next to the
/// corpus.
fn target(package: &str, artifact: &Artifact, seconds: u32) -> Result {
    let name = &artifact.target;
    let saved = cargo::target_dir().join("fuzz/found").join(name);
    let failures = cargo::target_dir().join("fuzz/failures").join(name);
    for directory in [&saved, &failures] {
        fs::create_dir_all(directory)?;
    }
    let mut command = Command::new(&artifact.path);
    command
        .arg(&saved)
        .arg(corpus(package, name))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-timeout={SECONDS_PER_INPUT}"))
        .arg(format!("-artifact_prefix={}/", failures.display()));
    let outcome = process::capture(&mut command, Duration::from_secs(seconds.into()) + GRACE)?;
    if outcome.end != End::Exited(0) {
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        let printed = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
        return Err(
            format!("{name}: {}; the input is in {}\n{printed}", outcome.end, failures.display()).into()
        );
    }
    println!("{name}: {}", outcome.stderr.lines().last().unwrap_or_default());
    Ok(())
}

/// Returns the directory of the committed inputs of a target.
fn corpus(package: &str, target: &str) -> PathBuf {
    cargo::root().join(Path::new(package)).join("corpus").join(target)
}

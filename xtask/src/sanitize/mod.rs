//! `cargo +nightly xtask test sanitize`: the runtime's tests under AddressSanitizer and
//! ThreadSanitizer; and `test miri`.
//!
//! The standard library is also built with the sanitizer: otherwise ThreadSanitizer does not
//! observe its locks and channels and reports races between accesses that they order. This requires
//! a nightly toolchain with its sources. `leak.supp` in this directory lists the false reports of
//! leaks, each with its reason; ThreadSanitizer reports nothing.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::cargo::{self, Artifact, Purpose};
use crate::confined::{self, Limits};
use crate::process::{self, End, Outcome};
use crate::{Result, working_copy};

const PACKAGES: [&str; 3] = ["punctual-core", "punctual-sync", "punctual"];

/// Excluded executable: it single-steps another process, which executes ten times as many
/// instructions with a sanitizer, and which is killed before the sanitizer reports anything.
const LEFT_OUT: &str = "shared_killed";

/// Excluded integration tests, by a part of their path.
const SKIPPED: [(&[Sanitizer], &str); 7] = [
    // Locking memory has no effect in programs with a sanitizer.
    (BOTH, "no_proc::"),
    (BOTH, "settings::"),
    // Sanitizers handle the signals of a fault themselves, and need more stack.
    (BOTH, "stacks::stack_overflow_names_task_level_and_thread"),
    (BOTH, "stacks::passes_other_faults_to_earlier_handler"),
    (&[Sanitizer::Thread], "stacks::default_levels_fit_above_lowest_priority"),
    // ThreadSanitizer ends a forked child that starts threads.
    (&[Sanitizer::Thread], "forks::runs_child_without_parent_threads"),
    // ThreadSanitizer makes system calls at points at which the program makes none.
    (&[Sanitizer::Thread], "polling::no_system_calls::makes_no_system_call"),
];
const BOTH: &[Sanitizer] = &[Sanitizer::Address, Sanitizer::Thread];

/// A test executable that takes longer hangs: with a sanitizer it takes ten times as long as
/// without.
const LIMIT: Duration = Duration::from_secs(3600);

/// The exit code of a program about which a sanitizer has reported something.
const REPORTED: &str = "66";

#[derive(Args)]
pub(crate) struct Options {
    /// Sanitizers to run the tests with [default: both]
    #[arg(value_name = "SANITIZER")]
    sanitizers: Vec<Sanitizer>,

    /// Only test executables of this name; may be repeated
    #[arg(long = "test", value_name = "NAME")]
    tests: Vec<String>,

    /// List the test executables instead of running them
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sanitizer {
    Address,
    Thread,
}

impl Sanitizer {
    /// Returns the name that the compiler uses.
    fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Thread => "thread",
        }
    }

    /// Returns the environment variables that configure its runtime.
    fn options(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Address => vec![
                // The runtime fills the stacks of its threads and must locate them, so locals must
                // be on the real stack. Unwinding by frame pointers alone, which the standard
                // library lacks, would omit callers, and suppressions would not match them.
                (
                    "ASAN_OPTIONS",
                    format!("detect_stack_use_after_return=0:fast_unwind_on_malloc=0:exitcode={REPORTED}"),
                ),
                (
                    "LSAN_OPTIONS",
                    format!(
                        "suppressions={}:print_suppressions=0",
                        cargo::root().join("xtask/src/sanitize/leak.supp").display()
                    ),
                ),
            ],
            Self::Thread => {
                // The process ends with unjoined threads if `idle` or a job does not return.
                vec![("TSAN_OPTIONS", format!("report_thread_leaks=0:exitcode={REPORTED}"))]
            }
        }
    }
}

pub(crate) fn run(options: &Options) -> Result {
    let chosen = options.sanitizers.as_slice();
    let sanitizers = if chosen.is_empty() { Sanitizer::value_variants() } else { chosen };
    let mut names = BTreeSet::from(["lib".to_owned()]);
    for package in PACKAGES {
        names.extend(working_copy::test_targets(package)?);
    }
    names.remove(LEFT_OUT);
    if let Some(name) = options.tests.iter().find(|&name| !names.contains(name)) {
        return Err(format!("no test executable is named `{name}`").into());
    }
    names.retain(|name| options.tests.is_empty() || options.tests.contains(name));
    if options.list {
        names.iter().for_each(|name| println!("{name}"));
        return Ok(());
    }
    check_sources(Path::new(&cargo::rustc(&["--print", "sysroot"])?))?;
    let mut failed = 0;
    for &sanitizer in sanitizers {
        for test in build(sanitizer)?.iter().filter(|test| names.contains(working_copy::target_name(test))) {
            failed += usize::from(!passes(sanitizer, test)?);
        }
    }
    if failed > 0 {
        return Err(format!("{failed} test executables fail or are reported about").into());
    }
    Ok(())
}

fn check_sources(sysroot: &Path) -> Result {
    let sources = sysroot.join("lib/rustlib/src/rust/library/Cargo.lock");
    if sources.exists() {
        return Ok(());
    }
    Err(format!(
        "{} is missing: the standard library is built with the sanitizer, too; run `rustup component add rust-src --toolchain \
         nightly`, and then `cargo +nightly xtask test sanitize`",
        sources.display()
    )
    .into())
}

/// Builds all tests of the packages with a sanitizer, in a separate target directory.
fn build(sanitizer: Sanitizer) -> Result<Vec<Artifact>> {
    let name = sanitizer.name();
    let mut command = cargo::command();
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    command
        .args(["test", "-Zbuild-std", "--no-run", "--lib", "--tests", "--target"])
        .arg(format!("{}-unknown-linux-gnu", env::consts::ARCH))
        .args(PACKAGES.iter().flat_map(|package| ["-p", package]))
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", format!("{flags} -Zsanitizer={name} --cfg {name}_sanitizer").trim())
        .env("CARGO_TARGET_DIR", cargo::target_dir().join("sanitize").join(name));
    let built = cargo::build(&mut command)?;
    Ok(built.into_iter().filter(|artifact| artifact.purpose == Purpose::Test).collect())
}

/// Runs the tests of one executable without real-time priorities, for which it is too slow.
fn passes(sanitizer: Sanitizer, test: &Artifact) -> Result<bool> {
    let began = Instant::now();
    let limits = Limits { processor: LIMIT, wall: LIMIT * 2, is_memory_bounded: false };
    let outcome = confined::run(&test.path, limits, |command| {
        let skipped = SKIPPED.iter().filter(|(by, _)| test.target == "it" && by.contains(&sanitizer));
        command
            .args(skipped.flat_map(|(_, path)| ["--skip", path]))
            .envs(sanitizer.options())
            .current_dir(cargo::root().join("crates").join(&test.package));
    })?;
    let reports = reports(&outcome);
    let passed = outcome.end == End::Exited(0) && reports.is_empty();
    let verdict = if passed { "passed" } else { "FAILED" };
    let (name, took) = (working_copy::target_name(test), began.elapsed().as_secs());
    println!("{} {}::{name}: {verdict} in {took} s", sanitizer.name(), test.package);
    if !passed {
        println!("{}\n{}{}", outcome.end, outcome.stdout, outcome.stderr);
        for report in reports {
            println!("{report}");
        }
    }
    Ok(passed)
}

/// Returns the last lines of the sanitizer's reports, each once.
fn reports(outcome: &Outcome) -> Vec<&str> {
    let mut found: Vec<_> = outcome.stderr.lines().filter(|line| line.starts_with("SUMMARY: ")).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The packages that Miri can interpret. `punctual` uses parts of Linux that Miri does not support.
const MIRI_PACKAGES: [&str; 2] = ["punctual-core", "punctual-sync"];

/// Tests of these packages that Miri cannot interpret: they start processes, read other processes
/// in `/proc`, or use priority-inheritance futexes.
const MIRI_SKIPPED: [&str; 5] = [
    "shared::owner::process::",
    "tests::panics_if_it_cannot_",
    "group::tests::panics_without_thread_number",
    "group::tests::tests_ceiling_again_for_nested_mutex",
    "group::tests::waits_once_for_holder_unless_rejected",
];

/// Tests leak memory deliberately. In rustix, the address of a timeout goes through an integer,
/// which is not a defect of these packages.
const MIRI_FLAGS: &str = "-Zmiri-ignore-leaks -Zmiri-permissive-provenance";

/// Runs unit tests under Miri, an interpreter that detects undefined behavior and data races that
/// no ordinary run shows.
pub(crate) fn miri() -> Result {
    for package in MIRI_PACKAGES {
        let mut command = cargo::command();
        command.args(["miri", "test", "--package", package, "--lib", "--"]).env("MIRIFLAGS", MIRI_FLAGS);
        command.args(MIRI_SKIPPED.iter().flat_map(|tests| ["--skip", tests]));
        process::succeed(&mut command)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_command_that_installs_sources() {
        let error = check_sources(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.contains("rustup component add rust-src --toolchain nightly"), "{error}");
    }

    #[test]
    fn lists_each_report_once() {
        let race = "SUMMARY: ThreadSanitizer: data race src/x.rs:1 in f";
        let stderr = format!("==\n{race}\nmore\n{race}\n");
        let outcome = Outcome { stdout: String::new(), stderr, end: End::Exited(66) };
        assert_eq!(reports(&outcome), [race]);
    }
}

//! `cargo xtask test unprivileged`: repeats root's tests as a user without privileges.
//!
//! Without the privilege for real-time scheduling, an app must run and report the missing
//! privilege. Tests as root do not cover this, so as root this command runs the tests and the
//! examples once more as `nobody`, from copies: the workspace may be in a directory that only root
//! can read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cargo::{self, Artifact, Purpose};
use crate::golden::Port;
use crate::process::{self, End};
use crate::scratch::Scratch;
use crate::{Result, examples, golden, variants};

/// More failed test executables than this are not accidental, and do not run once more.
const RETRIED: usize = 3;

/// The packages whose tests depend on privileges.
const PACKAGES: [&str; 3] = ["punctual", "punctual-bench", "punctual-core"];

/// A test executable that takes longer hangs.
const TIME_LIMIT: Duration = Duration::from_secs(1200);

/// The user and the group `nobody`.
const NOBODY: u32 = 65534;

/// Drops every privilege and runs the command that follows: no real-time priority by resource
/// limit, the user and group `nobody`, no capabilities.
const DROP_PRIVILEGES: [&str; 9] = [
    "prlimit",
    "--rtprio=0",
    "--nice=0",
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--bounding-set=-all",
    "--inh-caps=-all",
];

pub(crate) fn run() -> Result {
    if !is_root(&fs::read_to_string("/proc/self/status")?) {
        println!("already unprivileged: `cargo test` and `cargo xtask check examples` have tested this case");
        return Ok(());
    }

    // The whole workspace, because a selection of packages could unify features differently and
    // rebuild everything.
    let mut built = cargo::build(cargo::command().args(["test", "--workspace", "--no-run"]))?;
    // Cargo builds an example with tests only as a test.
    built.retain(|artifact| artifact.purpose != Purpose::Example);
    built.extend(cargo::build(cargo::command().args(["build", "--workspace", "--examples"]))?);
    let examples = golden::examples()?;
    let programs = variants::of(&examples)?;
    built.extend(variants::build(&programs)?);
    let scratch = Scratch::new("unprivileged")?;
    let staged = stage(built, &scratch)?;
    let temporary = own_directory(&scratch)?;
    let launch = |executable: &Path| {
        let [program, arguments @ ..] = &DROP_PRIVILEGES;
        let mut command = Command::new(program);
        command.args(arguments).arg(executable).current_dir(scratch.path()).env("TMPDIR", &temporary);
        command
    };

    let mut failed = Vec::new();
    for test in staged.iter().filter(|artifact| artifact.purpose == Purpose::Test) {
        if !passes(test, &launch)? {
            failed.push(test);
        }
    }
    let retry = failed.len() <= RETRIED;
    let mut failures = 0;
    for test in failed {
        let passed = retry && {
            println!("*** once more: {}::{} without privileges", test.package, test.target);
            passes(test, &launch)?
        };
        failures += usize::from(!passed);
    }
    if failures > 0 {
        return Err(format!("test executables that fail without privileges: {failures}").into());
    }
    let check = || examples::check(&examples, &programs, &staged, &[Port::Virtual, Port::Linux], &launch);
    check().or_else(|error| {
        println!("{error}\n*** once more: examples without privileges");
        check()
    })
}

/// Runs the test executable, and shows its output if it fails.
fn passes(test: &Artifact, launch: &dyn Fn(&Path) -> Command) -> Result<bool> {
    let outcome = process::capture(&mut launch(&test.path), TIME_LIMIT)?;
    let summary = outcome.stdout.lines().find(|line| line.starts_with("test result")).unwrap_or_default();
    println!("{}::{}: {summary}", test.package, test.target);
    let passed = outcome.end == End::Exited(0);
    if !passed {
        println!("FAILED: {}\n{}{}", outcome.end, outcome.stdout, outcome.stderr);
    }
    Ok(passed)
}

/// Returns a directory for temporary files: that of root may be inaccessible to others.
fn own_directory(scratch: &Scratch) -> Result<PathBuf> {
    let path = scratch.path().join("tmp");
    fs::create_dir(&path)?;
    std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY))?;
    Ok(path)
}

/// Copies the executables to run into `scratch`.
fn stage(built: Vec<Artifact>, scratch: &Scratch) -> Result<Vec<Artifact>> {
    let mut staged = Vec::new();
    for artifact in built {
        let wanted = match artifact.purpose {
            Purpose::Test => PACKAGES.contains(&artifact.package.as_str()),
            Purpose::Example => artifact.package == golden::PACKAGE,
            Purpose::Other => variants::are_in(&artifact),
        };
        if wanted {
            let path = scratch.stage(&artifact.path)?;
            staged.push(Artifact { path, ..artifact });
        }
    }
    Ok(staged)
}

/// Returns whether the process with this `/proc/<pid>/status` runs as root (its effective user, the
/// second of four).
pub(crate) fn is_root(status: &str) -> bool {
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    users.and_then(|users| users.split_whitespace().nth(1)) == Some("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_root_by_effective_user() {
        assert!(is_root("Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t0\t0\t0\t0\n"));
        assert!(!is_root("Uid:\t0\t1000\t0\t0\n"));
        assert!(!is_root("Name:\tx\n"));
    }
}

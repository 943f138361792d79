//! `cargo +nightly xtask test miri`: unit tests under Miri, an interpreter that detects undefined
//! behavior and data races that no ordinary run shows.

use crate::Result;
use crate::cargo;
use crate::process;

/// The packages that it can interpret. `punctual` uses parts of Linux that Miri does not support.
const PACKAGES: [&str; 2] = ["punctual-core", "punctual-sync"];

/// Tests of these packages that it cannot interpret: they start processes, read other processes in
/// `/proc`, or use priority-inheritance futexes.
const LEFT_OUT: [&str; 5] = [
    "shared::owner::process::",
    "tests::panics_if_it_cannot_",
    "group::tests::panics_without_thread_number",
    "group::tests::tests_ceiling_again_for_nested_mutex",
    "group::tests::waits_once_for_holder_unless_rejected",
];

/// Tests leak memory deliberately. In rustix, the address of a timeout goes through an integer,
/// which is not a defect of these packages.
const FLAGS: &str = "-Zmiri-ignore-leaks -Zmiri-permissive-provenance";

pub(crate) fn run() -> Result {
    for package in PACKAGES {
        let mut command = cargo::command();
        command.args(["miri", "test", "--package", package, "--lib", "--"]).env("MIRIFLAGS", FLAGS);
        command.args(LEFT_OUT.iter().flat_map(|tests| ["--skip", tests]));
        process::succeed(&mut command)?;
    }
    Ok(())
}

//! `cargo +nightly xtask miri`: unit tests under Miri, which interprets them and sees undefined behaviour and races that no run shows.

use crate::Result;
use crate::cargo;
use crate::process;

/// What it can interpret. `punctual` needs more of Linux than Miri knows.
const PACKAGES: [&str; 2] = ["punctual-core", "punctual-sync"];

/// What it cannot of these: start processes, read of others in `/proc`, and priority-inheritance futexes.
const LEFT_OUT: [&str; 4] = [
    "shared::owner::process::",
    "tests::panics_if_it_cannot_",
    "group::tests::tests_the_ceiling_again_for_a_mutex_within",
    "group::tests::waits_once_for_a_holder_and_no_longer_if_refused",
];

/// Tests leak what they need for ever. The address of a time-out goes through an integer in rustix, which is no concern of theirs.
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

//! `cargo +nightly xtask miri`: unit tests under Miri, which interprets them and sees undefined behaviour and races that no run shows.

use crate::Result;
use crate::cargo;
use crate::process;

/// What it can interpret. `punctual` needs more of Linux than Miri knows.
const PACKAGES: [&str; 2] = ["punctual-core", "punctual-sync"];

/// What it cannot of these: they start processes, and read of others in `/proc`.
const LEFT_OUT: [&str; 1] = ["shared::owner::process::"];

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

//! `cargo xtask ci`: everything that is checked before a merge.
//!
//! The list itself is the shell script `.ci/run`, because a bare machine has no Rust to start an xtask with.

use std::process::Command;

use crate::{Result, cargo, process};

pub(crate) fn run() -> Result {
    process::succeed(Command::new(cargo::root().join(".ci/run")).current_dir(cargo::root()))
}

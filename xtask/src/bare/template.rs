//! The program that `punctual new --template BOARD` writes, built with this checkout's crates and
//! run in QEMU.

use std::fs;
use std::path::PathBuf;

use super::board::Board;
use super::emulator::Machine;
use super::test::TIME_LIMIT;
use super::toolchain;
use crate::process::{self, End};
use crate::{Result, cargo};

/// The name of this check in the list of programs.
pub(super) const NAME: &str = "template";
const PACKAGE: &str = "my-board";

/// Creates the package, builds it and compares its output.
pub(super) fn check(board: Board) -> Result {
    let package = create(board)?;
    let machine = Machine::new(board, &toolchain::build_package(board, &package, PACKAGE)?)?;
    let outcome = machine.run_counted(&[], None, TIME_LIMIT)?;
    let expected: String =
        (1..=3).map(|count| format!("Hello from {}: {count}\n", board.full_name())).collect();
    let printed = outcome.stdout.replace('\r', "");
    match outcome.end {
        End::Exited(0) if printed == expected => Ok(()),
        end => Err(format!("{end}, and printed:\n{printed}").into()),
    }
}

/// Runs `punctual new`; returns the directory of the package.
fn create(board: Board) -> Result<PathBuf> {
    // Outside of `bare`, because its cargo configuration would also apply to the package.
    let package = cargo::target_dir().join("bare-template").join(board.name()).join(PACKAGE);
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    fs::create_dir_all(package.parent().unwrap_or(&package))?;
    let mut new = cargo::command();
    new.args(["run", "--quiet", "--package", "punctual-cli", "--", "new"]);
    new.args(["--template", board.name(), "--path"]).arg(cargo::root()).arg(&package);
    process::succeed(&mut new)?;
    // The versions that this checkout uses, which have already been downloaded.
    fs::copy(toolchain::workspace().join("Cargo.lock"), package.join("Cargo.lock"))?;
    Ok(package)
}

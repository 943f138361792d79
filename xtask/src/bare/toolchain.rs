//! Builds for a board, with any toolchain that can.
//!
//! With rustup, the target must be added to the stable toolchain. Debian's own compiler has no such
//! targets but includes the sources of the standard library, from which `core` is built once.

use std::env;
use std::fs;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::board::Board;
use super::examples;
use super::programs::{Place, Program, RASPBERRY_PI};
use crate::process::TOOL_LIMIT;
use crate::scratch::Scratch;
use crate::{Result, cargo, process};

/// Path of the cargo in Debian's packages `rustc-web`, `cargo-web` and `rust-web-src`.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_SOURCES: &str = "/usr/lib/rustlib/src/rust/library/alloc";

/// The target of a CPU that Linux gave up.
const AMP_TARGET: &str = "aarch64-unknown-none";

/// Returns the directory of the workspace for boards.
pub(super) fn workspace() -> PathBuf {
    cargo::root().join("bare")
}

/// Builds a program for a board; returns the executable.
pub(super) fn build(board: Board, place: Place, program: &Program) -> Result<PathBuf> {
    let mut built = build_all(board, place, &[program])?;
    built.pop().ok_or_else(|| format!("cargo built no program {}", program.name).into())
}

/// Builds programs of the same package with the same features, as [`build`] does; returns the
/// executables in the same order.
pub(super) fn build_all(board: Board, place: Place, programs: &[&Program]) -> Result<Vec<PathBuf>> {
    let mut command = command(board)?;
    command.args(["build", "--release", "--target", &board.target]);
    if programs.iter().any(|program| program.is_example) {
        command.args(["--offline", "--manifest-path"]).arg(examples::write()?);
    } else {
        command.args(["--locked", "--package", "programs"]);
    }
    let features = programs.first().map(|program| program.features(board, place)).unwrap_or_default();
    command.args(["--features", &features]);
    for program in programs {
        command.args(["--bin", &program.name]);
    }
    let artifacts = cargo::build(&mut command)?;
    programs
        .iter()
        .map(|program| {
            let artifact = artifacts.iter().find(|artifact| artifact.target == program.name);
            Ok(artifact.ok_or_else(|| format!("cargo built no program {}", program.name))?.path.clone())
        })
        .collect()
}

/// Builds the boot loader for a board; returns the executable.
pub(super) fn build_loader(board: Board) -> Result<PathBuf> {
    let mut command = command(board)?;
    command.args(["build", "--locked", "--release", "--target", &board.target]);
    command.args(["--package", "punctual-boot", "--bin", "punctual-boot"]);
    command.args(["--features", &format!("loader,punctual-bare/{board}")]);
    cargo::program(&mut command, "punctual-boot")
}

/// Builds a package outside of the workspace for a board; its program has the package's name.
/// Returns the executable.
pub(super) fn build_package(board: Board, directory: &Path, name: &str) -> Result<PathBuf> {
    let mut command = command(board)?;
    // It uses the workspace's lock file, which does not contain the package itself.
    command.current_dir(directory).args(["build", "--offline", "--release", "--features", "semihosting"]);
    cargo::program(&mut command, name)
}

/// Builds the programs for a CPU beside Linux, which the lab runs; QEMU alone cannot.
pub(super) fn build_beside_linux() -> Result {
    let mut command = beside_linux()?;
    command.args(["build", "--locked", "--release", "--target", AMP_TARGET]);
    cargo::build(&mut command)?;
    Ok(())
}

/// Returns a cargo command for these programs; the flags come from the configuration in their
/// directory.
fn beside_linux() -> Result<Command> {
    let mut command = command_for(AMP_TARGET)?;
    command.current_dir(workspace().join("amp-programs")).env("CARGO_TARGET_DIR", target_dir().join("amp"));
    Ok(command)
}

/// Runs the unit tests of the code that also compiles for this machine: registers and their
/// drivers, for each kind of chip.
pub(super) fn test_drivers() -> Result {
    for chip in ["bcm2836", "bcm2711"] {
        let mut command = cargo::command();
        command.current_dir(workspace()).env("CARGO_TARGET_DIR", target_dir());
        command.args(["test", "--locked", "--quiet", "--package", "rpi-registers", "--package", "rpi-hal"]);
        command.args(["--package", "punctual-boot"]);
        command.args(["--features", &format!("rpi-registers/{chip},rpi-hal/{chip}")]);
        process::succeed(&mut command)?;
    }
    Ok(())
}

/// Lints the packages for each board whose target is installed; Debian's compiler has no clippy.
pub(super) fn lint() -> Result {
    const FEATURES: &str =
        "programs/app,programs/alloc,programs/monitoring,programs/virtual-time,punctual-boot/loader";
    let programs = Program::all()?;
    for board in Board::all() {
        if !has_target(&board.target)? {
            continue;
        }
        let mut features = format!("{FEATURES},punctual-bare/{board}");
        if board.has(RASPBERRY_PI) {
            features += ",programs/raspberry-pi";
        }
        let mut command = command(*board)?;
        command.args(["clippy", "--locked", "--quiet", "--workspace", "--exclude", "amp-programs"]);
        command.args(["--target", &board.target, "--features", &features]);
        command.args(["--lib", "--bin", "punctual-boot"]);
        let runs = |program: &&Program| program.check_runs_on(*board, Place::Board).is_ok();
        for program in programs.iter().filter(|program| !program.is_example).filter(runs) {
            command.args(["--bin", &program.name]);
        }
        command.args(["--", "-D", "warnings"]);
        process::succeed(&mut command)?;
    }
    if has_target(AMP_TARGET)? {
        let mut command = beside_linux()?;
        process::succeed(command.args(["clippy", "--locked", "--quiet", "--", "-D", "warnings"]))?;
    }
    Ok(())
}

/// Features and flags are those of boards, so the workspace must be built for the host in a
/// different directory.
pub(super) fn target_dir() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(_) => cargo::target_dir().join("bare"),
        None => workspace().join("target"),
    }
}

/// Returns a cargo command that can build for the board.
fn command(board: Board) -> Result<Command> {
    command_for(&board.target)
}

/// Returns a cargo command that can build for a target.
fn command_for(target: &str) -> Result<Command> {
    let mut command = if has_target(target)? {
        cargo::command()
    } else if [DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_SOURCES].iter().all(|path| Path::new(path).exists()) {
        let sysroot = sysroot(&mut debian(target)?, target)?;
        let mut command = debian(target)?;
        command
            .arg("--config")
            .arg(format!("target.{target}.rustflags=[\"--sysroot={}\"]", sysroot.display()));
        command
    } else {
        return Err(format!(
            "no compiler for {target}: run `rustup target add {target}`, or, on Debian, `bash .ci/packages.sh --bare`"
        )
        .into());
    };
    command.current_dir(workspace()).env("CARGO_TARGET_DIR", target_dir());
    Ok(command)
}

/// Returns whether the compiler that built this program has the standard library of the target.
fn has_target(target: &str) -> Result<bool> {
    let library = cargo::rustc(&["--print", "target-libdir", "--target", target])?;
    Ok(Path::new(&library).exists())
}

/// Returns a command for Debian's cargo. It has no linker for the targets; rustup's compiler has
/// one.
fn debian(target: &str) -> Result<Command> {
    let sysroot = PathBuf::from(cargo::rustc(&["--print", "sysroot"])?);
    let host = cargo::rustc(&["--print", "host-tuple"])?;
    let linker = sysroot.join("lib/rustlib").join(host).join("bin/rust-lld");
    let variable = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
    let mut command = Command::new(DEBIAN_CARGO);
    // The variables of rustup and of the enclosing cargo refer to another compiler.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("RUSTUP_") || name.starts_with("CARGO_PKG_") || name == "LD_LIBRARY_PATH" {
            command.env_remove(&*name);
        }
    }
    command
        .env("RUSTC", DEBIAN_RUSTC)
        .env("RUSTC_BOOTSTRAP", "1")
        .env(variable, if linker.exists() { linker } else { "ld.lld".into() });
    Ok(command)
}

/// Returns a sysroot with `core` and `alloc` for a target. `cargo`, which can build them from
/// source, does so once for each compiler; all checkouts of the user share the result.
fn sysroot(cargo: &mut Command, target: &str) -> Result<PathBuf> {
    let version = process::stdout(Command::new(DEBIAN_RUSTC).arg("-vV"), TOOL_LIMIT)?;
    let mut hash = fnv::FnvHasher::default();
    hash.write(version.as_bytes());
    hash.write(SYSROOT_MANIFEST.as_bytes());
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = cache.or_else(home).unwrap_or_else(target_dir).join("punctual-core");
    let sysroot = cache.join(format!("{target}-{:016x}", hash.finish()));
    if sysroot.exists() {
        return Ok(sysroot);
    }
    let scratch = Scratch::new("bare-core")?;
    fs::write(scratch.path().join("Cargo.toml"), SYSROOT_MANIFEST)?;
    fs::write(scratch.path().join("lib.rs"), SYSROOT_SOURCE)?;
    cargo.current_dir(scratch.path()).env("CARGO_TARGET_DIR", scratch.path().join("target"));
    process::succeed(cargo.args(["build", "-Zbuild-std=core,alloc", "--release", "--target", target]))?;
    // Written beside its place and renamed, because another process may build it at the same time.
    fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    let new = cache.join(format!("{target}-{}", std::process::id()));
    let libraries = new.join("lib/rustlib").join(target).join("lib");
    fs::create_dir_all(&libraries)?;
    for entry in fs::read_dir(scratch.path().join("target").join(target).join("release/deps"))? {
        let path = entry?.path();
        if let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|it| it == "rlib")) {
            fs::copy(&path, libraries.join(name))?;
        }
    }
    if let Err(error) = fs::rename(&new, &sysroot) {
        fs::remove_dir_all(&new)?;
        if !sysroot.exists() {
            return Err(format!("{}: {error}", sysroot.display()).into());
        }
    }
    Ok(sysroot)
}

/// A package that depends on nothing else, with the profile of the workspace for boards.
const SYSROOT_MANIFEST: &str = "\
[package]
name = \"sysroot\"
version = \"0.0.0\"
edition = \"2024\"

[lib]
path = \"lib.rs\"
crate-type = [\"staticlib\"]

[workspace]

[profile.release]
panic = \"abort\"
opt-level = \"s\"
lto = true
codegen-units = 1
debug = \"line-tables-only\"
";

/// Links, so that cargo builds the libraries for use in a program.
const SYSROOT_SOURCE: &str = "\
#![no_std]
extern crate alloc;

struct Nothing;

#[global_allocator]
static NOTHING: Nothing = Nothing;

unsafe impl core::alloc::GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: core::alloc::Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: core::alloc::Layout) {}
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
";

//! `cargo xtask bless bpf` builds the BPF object that is committed next to its source, and `cargo
//! xtask check bpf` compares the object with the source.
//!
//! Building the workspace must not require a compiler for BPF, so the repository contains the
//! object. A given version of clang builds the same bytes on every machine. Another version builds
//! different bytes of the same program; in that case nothing is compared.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use punctual_process::child::BoundedCommand;

use crate::process::{TOOL_LIMIT, succeed};
use crate::scratch::Scratch;
use crate::{Result, cargo};

const SOURCE: &str = "crates/punctual-trace/src/record/schedule/schedule.bpf.c";
const OBJECT: &str = "crates/punctual-trace/src/record/schedule/schedule.bpf.o";

/// The version in Debian 12, which built the committed object.
const CLANG: &str = "14.0.6";

/// Builds the committed object.
pub(crate) fn bless() -> Result {
    let version =
        clang_version()?.ok_or("clang is not installed; on Debian, `apt-get install clang llvm`")?;
    if version != CLANG {
        println!("built with clang {version} instead of {CLANG}; change CLANG in xtask/src/bpf.rs too");
    }
    build(&cargo::root().join(OBJECT))
}

/// Compares the committed object with a fresh one.
pub(crate) fn check() -> Result {
    let version = clang_version()?;
    if version.as_deref() != Some(CLANG) {
        let version = version.map_or("clang is not installed".into(), |it| format!("clang is {it}"));
        println!("SKIPPED: {version}, and {OBJECT} is built with {CLANG}");
        return Ok(());
    }
    let object = cargo::root().join(OBJECT);
    let place = Scratch::new("bpf")?;
    let fresh = place.path().join("schedule.bpf.o");
    build(&fresh)?;
    if fs::read(&fresh)? != fs::read(&object)? {
        return Err(
            format!("{OBJECT} is not what {SOURCE} gives; build it with `cargo xtask bless bpf`").into()
        );
    }
    println!("{OBJECT} is what {SOURCE} gives");
    Ok(())
}

/// Returns the version of clang, if clang is installed.
fn clang_version() -> Result<Option<String>> {
    let output = Command::new("clang").arg("-dumpversion").output_within(TOOL_LIMIT);
    match output {
        Ok(output) => Ok(Some(String::from_utf8(output.stdout)?.trim().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("clang: {error}").into()),
    }
}

fn build(object: &Path) -> Result {
    let source = cargo::root().join(SOURCE);
    let directory = source.parent().expect("the source is in a directory");
    let mut clang = Command::new("clang");
    // Every kernel with the tracepoints supports the instructions of version 3. The object contains
    // no paths of this machine.
    clang.args(["--target=bpfel", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]);
    clang.arg(format!("-ffile-prefix-map={}=.", directory.display()));
    clang.current_dir(directory).arg("-c").arg("schedule.bpf.c").arg("-o").arg(object);
    succeed(&mut clang)?;
    // Keeps the BTF; removes information that only debuggers read.
    succeed(Command::new("llvm-strip").arg("--strip-debug").arg(object))
}

//! Selects the board by the enabled feature, and writes its linker script.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// A CPU that Linux gave up, which has no row in the table. Its loader chooses the address.
const AMP: &str = "amp";

fn main() {
    for input in ["Cargo.toml", "amp.ld", "link.ld", "src/board"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let manifest = read(Path::new("Cargo.toml"));
    let boards: Vec<&str> = manifest.lines().filter_map(board).chain([AMP]).collect();
    let is_enabled = |board: &&str| {
        env::var_os(format!("CARGO_FEATURE_{}", board.to_uppercase().replace('-', "_"))).is_some()
    };
    let enabled: Vec<&str> = boards.iter().copied().filter(is_enabled).collect();
    let [board] = enabled[..] else {
        return fail(&format!(
            "punctual-bare: boards enabled by features: {}; enable exactly one of {}",
            enabled.len(),
            boards.join(", ")
        ));
    };
    let (target, script) = if board == AMP {
        ("aarch64-unknown-none", read(Path::new("amp.ld")))
    } else {
        let [target, origin] = ["target", "origin"].map(|key| setting(&manifest, board, key));
        (target, read(Path::new("link.ld")).replace("@ORIGIN@", origin))
    };
    let architecture = variable("CARGO_CFG_TARGET_ARCH");
    if !target.starts_with(&architecture) {
        return fail(&format!(
            "punctual-bare: {board} has another instruction set than {architecture}; build with --target {target}"
        ));
    }
    let out = PathBuf::from(variable("OUT_DIR"));
    let source =
        Path::new(&variable("CARGO_MANIFEST_DIR")).join("src/board").join(board.replace('-', "_") + ".rs");
    write(&out.join("board.rs"), &format!("#[path = {source:?}]\nmod chosen;\n"));
    write(&out.join("punctual-bare.ld"), &script);
    println!("cargo::rustc-link-search={}", out.display());
}

/// Returns the board whose row of the table begins with this line of the manifest.
fn board(line: &str) -> Option<&str> {
    let name = line.strip_prefix("[package.metadata.boards.")?.strip_suffix(']')?;
    (!name.contains('.')).then_some(name)
}

/// Returns a setting of a board from its row of the table.
fn setting<'a>(manifest: &'a str, board: &str, key: &str) -> &'a str {
    let rows = manifest.lines().skip_while(|line| self::board(line) != Some(board)).skip(1);
    let value = rows
        .take_while(|line| !line.starts_with('['))
        .find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
    let value = value.unwrap_or_else(|| panic!("the row of {board} in Cargo.toml has no `{key}`"));
    value.split('#').next().unwrap_or_default().trim().trim_matches('"')
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("cargo sets {name}: {error}"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(path: &Path, content: &str) {
    fs::write(path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Reports an error. Cargo stops after the script has ended.
fn fail(error: &str) {
    println!("cargo::error={error}");
}

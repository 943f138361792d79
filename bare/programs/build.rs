//! Copies the examples of `punctual` with their own `main` to a place from which they can be
//! included. Omits their leading comment, which is valid only at the start of a file.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=src/bin");
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    for entry in fs::read_dir("src/bin").expect("the package has programs") {
        let program = fs::read_to_string(entry.expect("it can be listed").path()).expect("it can be read");
        let has = |key: &str| program.lines().find_map(|line| line.strip_prefix("//! ")?.strip_prefix(key));
        let (Some(_), Some(example)) = (has("main: "), has("golden: ")) else { continue };
        let path = Path::new("../../crates/punctual/examples").join(example).with_extension("rs");
        println!("cargo::rerun-if-changed={}", path.display());
        let source = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Keep empty lines in its place, so that messages have the line numbers of the example.
        let lines = source.lines().map(|line| if line.starts_with("//!") { "" } else { line });
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        fs::write(Path::new(&out).join(example).with_extension("rs"), text).expect("OUT_DIR can be written");
    }
}

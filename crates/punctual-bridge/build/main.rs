//! Generates the standard messages from the definitions in `msg`.

mod generator;

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=msg");
    let messages =
        generator::read(Path::new("msg")).and_then(|definitions| generator::generate(&definitions));
    let code = messages.unwrap_or_else(|error| panic!("{error}"));
    let directory = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&directory).join("messages.rs"), code).expect("the directory is writable");
}

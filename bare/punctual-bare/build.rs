//! Writes the linker script for the board.

use std::path::PathBuf;
use std::{env, fs};

/// The address at which the image of each board is loaded and entered.
const ORIGINS: [(&str, &str); 5] = [
    // Load address of `kernel7.img` in the firmware.
    ("RASPI2B", "0x8000"),
    // Load address of `kernel8.img` in the firmware.
    ("RASPI3B", "0x80000"),
    ("RASPI4B", "0x80000"),
    // Above the device tree that QEMU places at the start of memory.
    ("VIRT_A7", "0x40200000"),
    ("VIRT_A72", "0x40200000"),
];

fn main() {
    println!("cargo:rerun-if-changed=link.ld");
    println!("cargo:rerun-if-changed=amp.ld");
    let chosen = |(board, _): &&(&str, &str)| env::var_os(format!("CARGO_FEATURE_{board}")).is_some();
    // If the number of enabled boards is not one, the crate reports an error.
    let read = |script: &str| fs::read_to_string(script).expect("it is part of the package");
    let script = match ORIGINS.iter().find(chosen) {
        Some((_, origin)) => read("link.ld").replace("@ORIGIN@", origin),
        // The loader chooses the address.
        None if env::var_os("CARGO_FEATURE_AMP").is_some() => read("amp.ld"),
        None => return,
    };
    let directory = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(directory.join("punctual-bare.ld"), script).expect("cargo's directory can be written to");
    println!("cargo:rustc-link-search={}", directory.display());
}

//! The fuzz target with the name of the binary.
#![no_main]

use libfuzzer_sys::fuzz_target;

mod entry;

fuzz_target!(|data: &[u8]| entry::run(env!("CARGO_BIN_NAME"), data));

//! Whatever the input, the reader gives something or an error. The corpus begins as a perf.data does.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../entry.rs"]
mod entry;

fuzz_target!(|data: &[u8]| entry::dat(data));

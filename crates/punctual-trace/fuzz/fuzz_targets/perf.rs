//! For every input, the reader returns a result or an error. The corpus begins like a perf.data.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../entry.rs"]
mod entry;

fuzz_target!(|data: &[u8]| entry::dat(data));

//! Whatever the input, the reader gives something or an error. The corpus begins with a metadata file of LTTng.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../entry.rs"]
mod entry;

fuzz_target!(|data: &[u8]| entry::ctf(data));

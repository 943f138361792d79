//! For every input, the reader returns a result or an error. The corpus begins with an LTTng
//! metadata file.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../entry.rs"]
mod entry;

fuzz_target!(|data: &[u8]| entry::ctf(data));

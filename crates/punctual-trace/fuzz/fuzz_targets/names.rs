//! Whatever threads are called, what is printed of them is text on the lines it belongs on.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../entry.rs"]
mod entry;

fuzz_target!(|data: &[u8]| entry::names(data));

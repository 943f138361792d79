//! For all names of threads, the printed text stays on its lines and contains no control
//! characters.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../entry.rs"]
mod entry;

fuzz_target!(|data: &[u8]| entry::names(data));

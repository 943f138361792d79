//! Which processor a program is for.

use std::fs;
use std::path::Path;

use super::workdir::at;
use crate::Result;

/// Requires that `program`, if it is one for some processor, is one for `architecture`.
pub(crate) fn check(program: &Path, architecture: &str) -> Result {
    let bytes = fs::read(program).map_err(at(program))?;
    match (machine(&bytes), architecture) {
        (None, _) | (Some("x86_64"), "x86_64") | (Some("aarch64"), "aarch64") => Ok(()),
        (Some(built), _) => Err(format!(
            "{} is built for {built}, and it is to run on {architecture}; \
             `cargo build --target {architecture}-unknown-linux-gnu` makes one for it",
            program.display()
        )
        .into()),
    }
}

/// The processor that an ELF file is for; `None` of any other file.
fn machine(bytes: &[u8]) -> Option<&'static str> {
    if !bytes.starts_with(b"\x7fELF") {
        return None;
    }
    // `e_machine`, in little-endian files, of the ELF specification's table of machines.
    match bytes.get(18..20)? {
        [62, 0] => Some("x86_64"),
        [183, 0] => Some("aarch64"),
        _ => Some("another processor"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_another_processor_is_refused() {
        assert_eq!(machine(b"#!/bin/sh\n"), None);
        let mut elf = [0; 64];
        elf[..4].copy_from_slice(b"\x7fELF");
        elf[18] = 183;
        assert_eq!(machine(&elf), Some("aarch64"));
        let own = std::env::current_exe().unwrap();
        check(&own, std::env::consts::ARCH).unwrap();
        let error = check(&own, "riscv64").unwrap_err().to_string();
        assert!(error.contains("to run on riscv64"), "{error}");
    }
}

//! Lets a program inject an error into itself.

/// HCR: a virtual system error (on ARMv7 an asynchronous abort) is pending, and such errors are
/// delivered to the program.
const INJECT: u32 = 1 << 8 | 1 << 5;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bin=system_error=--defsym=__hcr={INJECT:#x}");
}

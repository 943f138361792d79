//! Declarations of parameters that must not compile, named by the rule they break.

use std::env;
use std::process::Command;

/// The compiler whose words are in the `.stderr` files: another one may say the same thing differently.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn rules() {
    let compiler = compiler();
    if compiler.starts_with(COMPILER) {
        trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
    } else {
        eprintln!("NOT TESTED: error messages; expected are those of {COMPILER}x, this is {compiler}");
    }
}

fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("the compiler can be asked");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

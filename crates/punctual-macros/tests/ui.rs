//! Programs that must not compile, one per rule and named after the rule it breaks, and apps that
//! must compile in every edition.
//!
//! Both run `cargo check` in one target directory with one set of flags, so Punctual is checked
//! once for both.

mod editions;

use std::env;
use std::process::Command;
use std::time::Duration;

use punctual_process::child::BoundedCommand;

/// Limit for a check of Punctual from scratch on a slow machine.
const LIMIT: Duration = Duration::from_secs(1800);

/// The flags for programs and dependencies. By default, trybuild uses other flags for dependencies,
/// and checks them twice.
const FLAGS: (&str, &str) =
    ("CARGO_ENCODED_RUSTFLAGS", "--verbose\x1f-A\x1fdead_code\x1f--diagnostic-width=140");

/// One `cargo check` compiles all programs; with a program that has to pass, trybuild would build
/// each separately.
#[rustversion::attr(not(stable(1.95)), ignore = "needs Rust 1.95, whose messages are in the .stderr files")]
#[test]
fn rejects_invalid_programs() {
    if env::var(FLAGS.0).as_deref() == Ok(FLAGS.1) {
        return trybuild::TestCases::new().compile_fail("ui/*.rs");
    }
    // In another process, because trybuild passes its environment on.
    let mut test = Command::new(env::current_exe().expect("a test has a path"));
    test.args(["--exact", "rejects_invalid_programs", "--nocapture"]).env(FLAGS.0, FLAGS.1);
    let output = test.output_within(LIMIT).expect("a test can be run");
    let text = |output| String::from_utf8_lossy(output).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed"), "{stdout}");
}

//! Programs that must not compile, one per rule and named after the rule it breaks.

/// One `cargo check` compiles all programs; with a program that has to pass, trybuild would build
/// each separately.
#[rustversion::attr(not(stable(1.95)), ignore = "needs Rust 1.95, whose messages are in the .stderr files")]
#[test]
fn rejects_invalid_programs() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}

//! Exit statuses that all commands share.

use std::process::Stdio;

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use crate::support::{Scratch, punctual, text};

#[test]
fn missing_input_is_always_status_2() {
    const MISSING: &str = "/no/such/input";
    let scratch = Scratch::new("missing-input");
    for arguments in [
        &["bench", "compare", MISSING, MISSING][..],
        &["bench", "--compare", MISSING],
        &["check", "--trace", MISSING],
        &["check", "--machine", MISSING],
        &["check", "--", MISSING],
        &["doctor", "--machine", MISSING],
        &["doctor", "--", MISSING],
        &["new", "crate", "--path", MISSING],
        &["rta", MISSING],
        &["rta", MISSING, "--profile", MISSING],
        &["rta", "--trace", MISSING],
        &["rta", "--", MISSING],
        &["set", "app", "--file", MISSING],
        &["supervise", "--", MISSING],
        &["trace", "convert", MISSING],
        &["trace", "latency", MISSING],
        &["trace", "merge", MISSING, MISSING],
        &["trace", "report", MISSING],
    ] {
        let mut command = punctual(arguments);
        let output = command.current_dir(&scratch.0).stdin(Stdio::null()).output_within(TEST_LIMIT).unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(MISSING), "{arguments:?}: {error}");
    }
}

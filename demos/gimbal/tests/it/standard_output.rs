//! A standard output that accepts nothing or has no reader: an error if output is lost, never a
//! panic.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};

use punctual_process::child::{BoundedChild, TEST_LIMIT};

/// Commands that print, and the exit status of each if it can print.
const COMMANDS: [(&[&str], i32); 3] =
    [(&["--help"], 0), (&["--version"], 0), (&["--virtual", "--seconds", "0.05", "--report", "r.html"], 0)];

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").expect("Linux has it").into()
}

/// Returns a pipe without a reader.
fn unread() -> Stdio {
    std::io::pipe().expect("pipes can be made").1.into()
}

/// Returns the standard error, if it is piped, and the exit status.
#[track_caller]
fn run(directory: &Path, arguments: &[&str], stdout: Stdio, stderr: Stdio) -> (String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gimbal"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let child = command.spawn().expect("the program can be started");
    let output = child.output_within(TEST_LIMIT).expect("it ends");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!printed.contains("panicked"), "{arguments:?}: {printed}");
    (printed, output.status.code())
}

#[test]
fn reports_full_disk() {
    let place = tempfile::tempdir().unwrap();
    for (arguments, _) in COMMANDS {
        let (printed, code) = run(place.path(), arguments, full(), Stdio::piped());
        assert_eq!(code, Some(1), "{arguments:?}: {printed}");
        assert!(
            printed.contains("gimbal: standard output: No space left on device"),
            "{arguments:?}: {printed}"
        );
    }
    for flag in ["--report", "--json"] {
        let arguments = ["--virtual", "--seconds", "0.05", flag, "/dev/full"];
        let (printed, code) = run(place.path(), &arguments, Stdio::null(), Stdio::piped());
        assert_eq!(code, Some(1), "{flag}: {printed}");
        assert!(printed.contains("writing /dev/full: No space left on device"), "{flag}: {printed}");
    }
}

#[test]
fn ends_quietly_when_reader_goes_away() {
    let place = tempfile::tempdir().unwrap();
    for (arguments, status) in COMMANDS {
        let (printed, code) = run(place.path(), arguments, unread(), Stdio::piped());
        assert_eq!((printed.as_str(), code), ("", Some(status)), "{arguments:?}");
    }
}

#[test]
fn never_panics_without_standard_streams() {
    let place = tempfile::tempdir().unwrap();
    let wrong: [(&[&str], i32); 2] = [(&["--no-such-option"], 2), (&["--setpoints", "missing.csv"], 2)];
    for (arguments, status) in COMMANDS.iter().chain(&wrong) {
        for stderr in [full, unread] {
            let (_, code) = run(place.path(), arguments, Stdio::null(), stderr());
            assert_eq!(code, Some(*status), "{arguments:?}");
        }
        let (_, code) = run(place.path(), arguments, full(), full());
        assert_eq!(code, Some((*status).max(1)), "{arguments:?}");
    }
}

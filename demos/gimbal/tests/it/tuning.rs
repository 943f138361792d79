//! Gains that are changed: by a file at the start, and by other processes during the run.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::live::{Live, messages};
use punctual_bridge::parameters::{Remotes, RequestError};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use tempfile::TempDir;

fn gimbal(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gimbal"));
    command.args(arguments).args(["--report", "r.html"]).current_dir(directory).stdin(Stdio::null());
    command
}

/// Returns the largest angle of the pan axis in the first step of the built-in sequence, which goes
/// to 0.5 rad.
fn peak(place: &TempDir, name: &str, gains: &str) -> f64 {
    let (toml, mcap) = (format!("{name}.toml"), format!("{name}.mcap"));
    fs::write(place.path().join(&toml), gains).unwrap();
    let tune = format!("--tune={toml}");
    let arguments = ["--virtual", "--seconds", "10", "--mcap", &mcap, &tune];
    let output = gimbal(place.path(), &arguments).output_within(TEST_LIMIT).expect("it can be run");
    assert!(output.status.success(), "{output:?}");
    let angles = messages(&place.path().join(mcap), "/angles");
    // From 0.5 s to 1.5 s.
    angles[50..150].iter().map(|angles| angles[0]).fold(0.0, f64::max)
}

#[test]
fn gains_from_file_change_step_response() {
    let place = tempfile::tempdir().unwrap();
    let designed = peak(&place, "designed", "");
    let undamped = peak(&place, "undamped", "[pan]\nderivative = 0.25\n");
    let slower = peak(&place, "slower", "pan.integral = 0.25\n");
    eprintln!(
        "peaks of a step to 0.5 rad: designed {designed:.3}, undamped {undamped:.3}, slower {slower:.3}"
    );
    assert!(undamped > designed + 0.05 && designed > slower + 0.01, "{undamped} {designed} {slower}");
}

#[test]
fn rejects_invalid_file_before_motion() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("gains.toml"), "pan.proportional = 40\ntilt.speed = 1\n").unwrap();
    let output =
        gimbal(place.path(), &["--tune=gains.toml"]).output_within(TEST_LIMIT).expect("it can be run");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("pan.proportional: 40 is out of range") && printed.contains("tilt.speed"),
        "{printed}"
    );
    assert!(!place.path().join("r.html").exists());
}

#[test]
fn tuning_at_run_time_is_recorded() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let mut command = gimbal(place.path(), &["--stdin", "--seconds", "3600", "--tune", "--mcap", "r.mcap"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it can be run");
    let process = child.id().to_string();
    let mut gimbal = Live::new(child);
    let find = || Remotes::running().expect("the kernel tells").named(&process).ok().cloned();
    let remote = gimbal.wait_for(find);
    let changes =
        remote.set(&[("pan.proportional", "2"), ("tilt.derivative", "0.5")]).expect("both are right");
    assert_eq!(changes.len(), 2);
    let refused = remote.set(&[("pan.proportional", "3"), ("tilt.derivative", "NaN")]);
    assert!(matches!(refused, Err(RequestError::Refused(_))), "{refused:?}");
    let output = gimbal.interrupt();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("/factors: 2 messages, 0 lost\n"), "{printed}");
    assert!(printed.contains("parameters: 1 requests granted, 1 refused\n"), "{printed}");
    let factors = messages(&place.path().join("r.mcap"), "/factors");
    assert_eq!(factors, [[1.0; 6], [2.0, 1.0, 1.0, 1.0, 1.0, 0.5]]);
}

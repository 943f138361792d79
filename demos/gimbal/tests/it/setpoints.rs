//! Setpoints as datagrams: the gimbal follows them, invalid ones change nothing, and replays repeat
//! them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::live::{Live, messages};
use mcap::MessageStream;
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use tempfile::TempDir;

fn gimbal(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gimbal"));
    command.args(arguments).args(["--report", "r.html"]).current_dir(directory).stdin(Stdio::null());
    command
}

/// Returns the bytes of a Vector3 as ROS 2 encodes them.
fn bytes(x: f64, y: f64) -> Vec<u8> {
    [&[0, 1, 0, 0], [x, y, 0.0].map(f64::to_le_bytes).as_flattened()].concat()
}

#[test]
fn rejects_used_port_before_motion() {
    let place = tempfile::tempdir().unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").expect("there are free ports");
    let address = format!("--udp={}", taken.local_addr().unwrap());
    let output = gimbal(place.path(), &[&address]).output_within(TEST_LIMIT).expect("it can be run");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("Address already in use") && printed.contains("give another"), "{printed}");
    assert!(!place.path().join("r.html").exists());
}

/// Records a run in real time to `field.mcap`, until the gimbal follows a valid setpoint among
/// hostile ones. Returns the standard output and the errors.
fn record(place: &TempDir) -> (String, String) {
    let mut command =
        gimbal(place.path(), &["--seconds", "3600", "--udp=127.0.0.1:0", "--mcap", "field.mcap"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be run");
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut gimbal = Live::new(child);
    let mut printed = String::new();
    stderr.read_line(&mut printed).expect("it says something");
    let address = printed.trim().strip_prefix("gimbal: listening for setpoints at ").expect("it says where");
    // The rest is read, too, so that the gimbal never blocks on it.
    let rest = thread::spawn(move || stderr.lines().map_while(Result::ok).collect::<Vec<_>>());
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there are free ports");
    socket.connect(address).expect("it is on this machine");
    let recording = place.path().join("field.mcap");
    gimbal.wait_for(|| {
        for message in [bytes(f64::NAN, 0.0), bytes(3.0, 0.0), vec![0; 5], bytes(0.4, -0.3)] {
            // The gimbal may not listen yet.
            let _ = socket.send(&message);
        }
        messages(&recording, "/target").last().filter(|last| last[..2] == [0.4, -0.3]).map(drop)
    });
    let output = gimbal.interrupt();
    (String::from_utf8_lossy(&output.stdout).into_owned(), rest.join().unwrap().join("\n"))
}

#[test]
fn follows_valid_and_rejects_hostile_setpoints() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    let (printed, rest) = record(&place);
    assert!(rest.contains("/setpoint: a message from 127.0.0.1:"), "{rest}");
    let is_counts = |line: &&str| line.starts_with("/setpoint: ") && line.contains(" accepted, ");
    let line = printed.lines().find(is_counts).expect("it reports the topic");
    assert!(
        !line.contains(" 0 messages") && !line.contains(" 0 malformed") && !line.contains(" 0 refused"),
        "{line}"
    );
    let targets = messages(&place.path().join("field.mcap"), "/target");
    assert!(targets.iter().all(|it| [[0.0; 3], [0.4, -0.3, 0.0]].iter().any(|good| it == good)));
}

/// Replays a recording as `punctual replay` does. Returns the verdict.
fn replay(place: &TempDir, recording: &str, arguments: &[&str]) -> String {
    let verdict = place.path().join("verdict");
    let mut command = gimbal(place.path(), &[&["--seconds", "3600"], arguments].concat());
    command.env("PUNCTUAL_PORT", "virtual").env("PUNCTUAL_REPLAY", recording);
    let output =
        command.env("PUNCTUAL_REPLAY_VERDICT", &verdict).output_within(TEST_LIMIT).expect("it can be run");
    let errors = String::from_utf8_lossy(&output.stderr);
    fs::read_to_string(verdict).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

/// Returns topics, sequence numbers, instants and bytes.
fn recorded(path: &Path) -> Vec<(String, u32, u64, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let messages = MessageStream::new(&bytes).unwrap().map(Result::unwrap);
    let mut messages: Vec<_> = messages
        .map(|it| (it.channel.topic.clone(), it.sequence, it.publish_time, it.data.into_owned()))
        .collect();
    messages.sort();
    messages
}

#[test]
fn replays_setpoints_bit_for_bit() {
    let _alone = test_skip::alone();
    let place = tempfile::tempdir().unwrap();
    record(&place);
    // A replay needs no port.
    let taken = UdpSocket::bind("127.0.0.1:0").expect("there are free ports");
    let udp = format!("--udp={}", taken.local_addr().unwrap());
    // The field may differ, since a job there may read a setpoint that arrived after its release.
    replay(&place, "field.mcap", &[&udp, "--mcap", "first.mcap"]);
    let verdict = replay(&place, "first.mcap", &[&udp, "--mcap", "second.mcap"]);
    assert!(
        verdict.starts_with("equal\n") && verdict.contains("messages of 3 topics are equal"),
        "{verdict}"
    );
    let first = recorded(&place.path().join("first.mcap"));
    assert!(first == recorded(&place.path().join("second.mcap")), "{verdict}");
    let targets = messages(&place.path().join("first.mcap"), "/target");
    assert_eq!(targets.last().map(|it| &it[..]), Some(&[0.4, -0.3, 0.0][..]), "the setpoints arrive");
    // Setpoints of transports are those of the recording as well, and no recording is needed.
    let verdict = replay(&place, "first.mcap", &["--transports"]);
    assert!(verdict.starts_with("equal\n"), "{verdict}");
    // Without setpoints, the built-in ones differ.
    let verdict = replay(&place, "first.mcap", &[]);
    assert!(verdict.starts_with("different\n") && verdict.contains("no longer receives it"), "{verdict}");
}

#[test]
fn replay_rejects_real_gimbal() {
    let place = tempfile::tempdir().unwrap();
    let mut command = gimbal(place.path(), &["--spi", "/dev/spidev0.0"]);
    let output = command.env("PUNCTUAL_REPLAY", "r.mcap").output_within(TEST_LIMIT).expect("it can be run");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("a replay moves no real gimbal; omit it"), "{printed}");
}

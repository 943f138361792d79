//! Setpoints as datagrams: the gimbal follows them, and invalid ones change nothing.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::live::{Live, messages};
use crate::place::Place;
use punctual_process::child::{BoundedCommand, TEST_LIMIT};

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
    let place = Place::new("udp-taken");
    let taken = UdpSocket::bind("127.0.0.1:0").expect("there are free ports");
    let address = format!("--udp={}", taken.local_addr().unwrap());
    let output = gimbal(&place.0, &[&address]).output_within(TEST_LIMIT).expect("it can be run");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("Address already in use") && printed.contains("give another"), "{printed}");
    assert!(!place.0.join("r.html").exists());
}

#[test]
fn follows_valid_and_rejects_hostile_setpoints() {
    let place = Place::new("udp");
    let mut command = gimbal(&place.0, &["--seconds", "3600", "--udp=127.0.0.1:0", "--mcap", "r.mcap"]);
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
    let recording = place.0.join("r.mcap");
    gimbal.wait_for(|| {
        for message in [bytes(f64::NAN, 0.0), bytes(3.0, 0.0), vec![0; 5], bytes(0.4, -0.3)] {
            // The gimbal may not listen yet.
            let _ = socket.send(&message);
        }
        messages(&recording, "/target").last().filter(|last| last[..2] == [0.4, -0.3]).map(drop)
    });
    let output = gimbal.interrupt();
    let (printed, rest) = (String::from_utf8_lossy(&output.stdout), rest.join().unwrap().join("\n"));
    assert!(rest.contains("/setpoint: a message from 127.0.0.1:"), "{rest}");
    let line = printed.lines().find(|line| line.starts_with("/setpoint: ")).expect("it reports the topic");
    assert!(
        !line.contains(" 0 messages") && !line.contains(" 0 malformed") && !line.contains(" 0 refused"),
        "{line}"
    );
    let targets = messages(&recording, "/target");
    assert!(targets.iter().all(|it| [[0.0; 3], [0.4, -0.3, 0.0]].iter().any(|good| it == good)));
}

//! Setpoints that come as datagrams: the gimbal follows them, and what is hostile changes nothing.

mod place;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use mcap::MessageStream;
use place::Place;

fn gimbal(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gimbal"));
    command.args(arguments).args(["--report", "r.html"]).current_dir(directory).stdin(Stdio::null());
    command
}

/// The bytes of a Vector3 as ROS 2 has them.
fn bytes(x: f64, y: f64) -> Vec<u8> {
    [&[0, 1, 0, 0], [x, y, 0.0].map(f64::to_le_bytes).as_flattened()].concat()
}

#[test]
fn refuses_a_port_that_is_taken_before_anything_moves() {
    let place = Place::new("udp-taken");
    let taken = UdpSocket::bind("127.0.0.1:0").expect("there are free ports");
    let address = format!("--udp={}", taken.local_addr().unwrap());
    let output = gimbal(&place.0, &[&address]).output().expect("it can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("Address already in use") && said.contains("give another"), "{said}");
    assert!(!place.0.join("r.html").exists());
}

#[test]
fn follows_what_is_sent_and_refuses_what_is_hostile() {
    let place = Place::new("udp");
    let mut command = gimbal(&place.0, &["--seconds", "3", "--udp=127.0.0.1:0", "--mcap", "r.mcap"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be run");
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    stderr.read_line(&mut said).expect("it says something");
    let address = said.trim().strip_prefix("gimbal: setpoints are taken at ").expect("it says where");
    // What else it says is read, so that it never waits for that.
    let rest = thread::spawn(move || stderr.lines().map_while(Result::ok).collect::<Vec<_>>());
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there are free ports");
    socket.connect(address).expect("it is on this machine");
    while child.try_wait().expect("it can be asked").is_none() {
        // Towards its end nobody may listen any more.
        for message in [bytes(0.4, -0.3), bytes(f64::NAN, 0.0), bytes(3.0, 0.0), vec![0; 5]] {
            let _ = socket.send(&message);
        }
        thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("it has ended");
    let (said, rest) = (String::from_utf8_lossy(&output.stdout), rest.join().unwrap().join("\n"));
    assert!(output.status.code().is_some(), "{said}{rest}");
    let beyond = "x (pan) is 3 rad, beyond the mechanical range of -2.5 to 2.5 rad";
    assert!(rest.contains(beyond) || rest.contains("was not taken"), "{rest}");
    let line = said.lines().find(|line| line.starts_with("/setpoint: ")).expect("it reports the topic");
    assert!(
        !line.contains(" 0 messages") && !line.contains(" 0 malformed") && !line.contains(" 0 refused"),
        "{line}"
    );

    let recorded = fs::read(place.0.join("r.mcap")).expect("it was recorded");
    let target = MessageStream::new(&recorded).unwrap().map(Result::unwrap);
    let target = target.filter(|message| message.channel.topic == "/target");
    let numbers = |data: &[u8]| -> Vec<f64> {
        data[4..].chunks_exact(8).map(|number| f64::from_le_bytes(number.try_into().unwrap())).collect()
    };
    let setpoints: Vec<Vec<f64>> = target.map(|message| numbers(&message.data)[..2].to_vec()).collect();
    assert_eq!(setpoints.last(), Some(&vec![0.4, -0.3]));
    assert!(setpoints.iter().all(|it| [&[0.0, 0.0], &[0.4, -0.3]].iter().any(|good| it == *good)));
}

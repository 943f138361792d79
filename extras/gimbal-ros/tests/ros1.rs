//! Controls and records the gimbal with the command-line tools of ROS 1, if they are installed.
#![cfg(feature = "ros1")]

#[path = "../../../demos/gimbal/tests/it/place/mod.rs"]
mod place;

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use place::Place;
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};

/// Longer than any machine takes.
const PATIENCE: Duration = Duration::from_secs(1200);

/// A process that is killed at the end of the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.end_at_once();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("there are free ports").port()
}

/// Returns a command for a node of the master at `port`.
fn node(program: &str, arguments: &[&str], directory: &Path, port: u16) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command.env("ROS_MASTER_URI", format!("http://127.0.0.1:{port}")).env("ROS_IP", "127.0.0.1");
    command.env("ROS_LOG_DIR", directory);
    command
}

#[test]
fn does_not_start_without_a_master() {
    let place = Place::new("ros1-alone");
    let output = node(env!("CARGO_BIN_EXE_gimbal-ros"), &["--ros1"], &place.0, free_port())
        .output_within(TEST_LIMIT)
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("gimbal: ROS 1: the node gimbal: ") && said.contains("is a master at"), "{said}");
    assert!(!place.0.join("gimbal-report.html").exists());
}

#[test]
fn is_steered_and_recorded_by_rostopic() {
    let (place, port) = (Place::new("ros1"), free_port());
    let rostopic = |arguments: &[&str]| node("rostopic", arguments, &place.0, port);
    let master = node("rosmaster", &["--core", "-p", &port.to_string()], &place.0, port)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let (Ok(master), Ok(_)) = (master.map(Process), rostopic(&["-h"]).output_within(TEST_LIMIT)) else {
        return eprintln!("*** SKIPPED: NO rosmaster OR rostopic, SO THE GIMBAL IS NOT STEERED BY ROS 1 ***");
    };
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < PATIENCE, "the master does not come up");
        thread::sleep(Duration::from_millis(20));
    }
    let arguments = ["--ros1", "--seconds", "3600", "--report", "r.html"];
    let gimbal =
        node(env!("CARGO_BIN_EXE_gimbal-ros"), &arguments, &place.0, port).stdout(Stdio::piped()).spawn();
    let mut gimbal = Process(gimbal.expect("it can be run"));

    // As in the thesis. Each waits for the gimbal to publish, and reads as many lines as are needed
    // to show the target.
    let publish = ["pub", "-1", "/setpoint", "geometry_msgs/Vector3", "--", "0.5", "-0.25", "0"];
    let output = rostopic(&publish).output_within(TEST_LIMIT).expect("it is there");
    assert!(output.status.success(), "{output:?}");
    let echo = |topic: &str| {
        let output =
            rostopic(&["echo", "-p", "-n", "5", topic]).output_within(TEST_LIMIT).expect("it is there");
        String::from_utf8(output.stdout).expect("it is text")
    };
    // The gimbal may be started only after the publication has ended.
    let mut target = echo("/target");
    while !target.trim_end().ends_with(",0.5,-0.25,0.0") {
        assert!(begun.elapsed() < PATIENCE, "the gimbal does not follow: {target}");
        assert!(rostopic(&publish).output_within(TEST_LIMIT).expect("it is there").status.success());
        target = echo("/target");
    }
    let angles = echo("/angles");
    assert!(angles.starts_with("%time,field.x,field.y,field.z\n"), "{angles}");
    assert_eq!(angles.lines().count(), 6, "{angles}");

    // SAFETY: sends a signal to a process that has not been waited for.
    assert_eq!(unsafe { libc::kill(gimbal.0.id() as libc::pid_t, libc::SIGINT) }, 0);
    let mut said = String::new();
    let mut stdout = gimbal.0.stdout.take().expect("it is piped");
    std::io::Read::read_to_string(&mut stdout, &mut said).expect("it ends");
    assert!(said.contains("/setpoint: ") && said.contains("ROS 1 node gimbal: "), "{said}");
    drop(master);
}

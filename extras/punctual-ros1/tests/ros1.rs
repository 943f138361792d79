//! ROS 1 with its own tools, if they are installed: `rosmaster` and `rostopic`.

#[path = "../../support/node.rs"]
mod node;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use node::{SETPOINT, of_real_time};
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Channel, Clock, Running, Sample, Sink, Topic};
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use punctual_ros1::{Ros1, Ros1Error};

/// Longer than any machine takes.
const PATIENCE: Duration = Duration::from_secs(1200);

static ANGLES: Topic<Vector3, 64> = Topic::new("/angles").hz(100);

/// A node that passes the error of a flush on to the test.
struct Watched(Ros1, Sender<String>);

impl Sink for Watched {
    fn name(&self) -> String {
        self.0.name()
    }

    fn begin(&mut self, channels: &[Channel], clock: Clock) -> io::Result<()> {
        self.0.begin(channels, clock)
    }

    fn write(&mut self, channel: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        self.0.write(channel, sample)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().inspect_err(|error| _ = self.1.send(error.to_string()))
    }

    fn end(&mut self, lost: &[(&'static str, u64)]) -> io::Result<()> {
        self.0.end(lost)
    }
}

/// A process that is killed at the end of the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.end_at_once();
    }
}

/// The variables by which nodes find each other.
fn variables(port: u16) -> [(&'static str, String); 2] {
    [("ROS_MASTER_URI", format!("http://127.0.0.1:{port}")), ("ROS_IP", "127.0.0.1".to_owned())]
}

fn set(variables: [(&'static str, String); 2]) {
    for (name, value) in variables {
        // SAFETY: this file has one test, which runs while the thread that waits for it reads no
        // variables, and the threads started before have ended or read none.
        unsafe { std::env::set_var(name, value) };
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("there are free ports").port()
}

/// Starts a master, if the tools are installed.
fn master(port: u16) -> Option<Process> {
    let has_rostopic = Command::new("rostopic").arg("-h").output_within(TEST_LIMIT).is_ok();
    let master = Command::new("rosmaster")
        .args(["--core", "-p", &port.to_string()])
        .envs(variables(port))
        .env("ROS_LOG_DIR", std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut master = Process(master.ok()?);
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = master.0.try_wait().expect("it can be asked");
        assert!(ended.is_none() && begun.elapsed() < PATIENCE, "the master does not come up: {ended:?}");
        thread::sleep(Duration::from_millis(20));
    }
    has_rostopic.then_some(master)
}

fn rostopic(port: u16, arguments: &[&str]) -> String {
    let mut command = Command::new("rostopic");
    command.args(arguments).envs(variables(port)).env("ROS_LOG_DIR", std::env::temp_dir());
    let output = command.stdin(Stdio::null()).output_within(TEST_LIMIT).expect("it is there");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// Starts a node, and returns its bridge and the received messages.
fn start() -> (Running, Receiver<Vector3>) {
    node::start(|subscription| {
        let node = Ros1::connect("gimbal").expect("there is a master");
        let node = node.subscribe(subscription).expect("there is a master");
        Bridge::new().topic(&ANGLES).sink(node).start().expect("there is a master")
    })
}

/// Publishes like a controller until it is dropped.
struct Publishing(Arc<AtomicBool>, Option<thread::JoinHandle<()>>);

impl Publishing {
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let mut angles = ANGLES.publisher().expect("the publisher is free");
            while !ends.load(Ordering::Relaxed) {
                angles.publish(punctual::now(), Vector3 { x: 0.25, y: -0.125, z: 0.0 });
                thread::sleep(Duration::from_millis(10));
            }
        });
        Self(over, Some(thread))
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ = self.1.take().map(thread::JoinHandle::join);
    }
}

#[test]
fn exchanges_messages_with_rostopic() {
    let nobody = free_port();
    set(variables(nobody));
    let error = Ros1::connect("gimbal").unwrap_err();
    let Ros1Error::Refused { master: uri, .. } = &error else { panic!("{error}") };
    assert_eq!(*uri, format!("http://127.0.0.1:{nobody}"));
    assert!(error.to_string().contains("is a master at"), "{error}");

    let port = free_port();
    let Some(_master) = master(port) else {
        return eprintln!("*** SKIPPED: NO rosmaster OR rostopic, SO NOTHING IS EXCHANGED WITH ROS 1 ***");
    };
    set(variables(port));
    let (bridge, came) = start();
    let publishing = Publishing::start();
    assert_eq!(of_real_time(), [], "rosrust's threads are ordinary");

    let echoed = rostopic(port, &["echo", "-p", "-n", "3", "/angles"]);
    let lines: Vec<&str> = echoed.lines().collect();
    assert_eq!((lines[0], lines.len()), ("%time,field.x,field.y,field.z", 4), "{echoed}");
    assert!(lines[1..].iter().all(|line| line.ends_with(",0.25,-0.125,0.0")), "{echoed}");
    assert!(rostopic(port, &["type", "/angles"]).contains("geometry_msgs/Vector3"));

    let publish = |kind: &str, words: &[&str]| {
        rostopic(port, &[&["pub", "-1", "/setpoint", kind, "--"], words].concat());
    };
    publish("geometry_msgs/Vector3", &["0.5", "-0.25", "0"]);
    let wanted = Vector3 { x: 0.5, y: -0.25, z: 0.0 };
    assert_eq!(came.recv_timeout(PATIENCE), Ok(wanted));
    // With another type, with NaN, and out of range.
    publish("geometry_msgs/Point", &["0.75", "0", "0"]);
    publish("geometry_msgs/Vector3", &[".nan", "0", "0"]);
    publish("geometry_msgs/Vector3", &["3", "0", "0"]);
    publish("geometry_msgs/Vector3", &["0.5", "-0.25", "0"]);
    assert_eq!(came.recv_timeout(PATIENCE), Ok(wanted), "nothing else was taken");
    let report = SETPOINT.report();
    assert_eq!((report.accepted, report.malformed, report.refused), (2, 1, 1));

    let report = bridge.finish();
    assert!(report.is_complete(), "{report}");
    assert!(report.sinks[0].written > 0);

    reports_its_end(|| {
        let mut kill = Command::new("python3");
        let status = kill.args(["-c", KILL, &variables(port)[0].1]).status_within(TEST_LIMIT);
        assert!(status.expect("rostopic needs it").success(), "see above");
    });
    let begun = Instant::now();
    while rostopic(port, &["list"]).contains("/angles") {
        assert!(begun.elapsed() < PATIENCE, "the topic is still registered");
    }
    let mut second = None;
    reports_its_end(|| second = Some(Ros1::connect("gimbal").expect("there is a master")));
    drop((second, publishing));
}

/// The request of `rosnode kill`.
const KILL: &str = "
import sys, xmlrpc.client
uri = xmlrpc.client.ServerProxy(sys.argv[1]).lookupNode('/test', '/gimbal')[2]
xmlrpc.client.ServerProxy(uri).shutdown('/test', 'user request')
";

/// Shuts a node down by `end`.
fn reports_its_end(end: impl FnOnce()) {
    let (ended, has_ended) = channel();
    let node = Watched(Ros1::connect("gimbal").expect("there is a master"), ended);
    let bridge = Bridge::new().topic(&ANGLES).sink(node).start().expect("there is a master");
    end();
    let error = has_ended.recv_timeout(PATIENCE).expect("the node is shut down");
    assert!(error.contains("by another node of the same name"), "{error}");
    let report = bridge.finish();
    assert_eq!(report.sinks[0].error.as_ref(), Some(&error), "{report}");
    assert!(!report.is_complete());
}

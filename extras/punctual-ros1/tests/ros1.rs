//! A node in a separate process, with the tools of ROS 1 if they are installed: `rosmaster` and
//! `rostopic`.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Incoming, Running, Topic, TransportServer};
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip_any};

/// Longer than any machine takes.
const PATIENCE: Duration = Duration::from_secs(1200);

static ANGLES: Topic<Vector3, 64> = Topic::new("/angles").hz(100);
static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });

/// A process that is killed at the end of the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.end_at_once();
    }
}

/// Returns a command for a node of the master at `port`.
fn command(program: &str, port: u16) -> Command {
    let mut command = Command::new(program);
    command.env("ROS_MASTER_URI", format!("http://127.0.0.1:{port}")).env("ROS_IP", "127.0.0.1");
    command.env("ROS_LOG_DIR", std::env::temp_dir()).stdin(Stdio::null());
    command
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("there are free ports").port()
}

/// Starts a master, if the tools are installed.
fn master(port: u16) -> Option<Process> {
    let has_rostopic = Command::new("rostopic").arg("-h").output_within(TEST_LIMIT).is_ok();
    let master = command("rosmaster", port)
        .args(["--core", "-p", &port.to_string()])
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
    let output = command("rostopic", port).args(arguments).output_within(TEST_LIMIT).expect("it is there");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// Runs a script with the address of the master; see [`ADDRESS`].
fn python(port: u16, script: &str) {
    let mut python = command("python3", port);
    let status = python.args(["-c", &format!("{ADDRESS}{script}")]).status_within(TEST_LIMIT);
    assert!(status.expect("rostopic needs it").success(), "see above");
}

/// Determines the address of the node `/gimbal`.
const ADDRESS: &str = "
import os, socket, time, urllib.parse, xmlrpc.client
uri = xmlrpc.client.ServerProxy(os.environ['ROS_MASTER_URI']).lookupNode('/test', '/gimbal')[2]
";

/// The request of `rosnode kill`.
const KILL: &str = "xmlrpc.client.ServerProxy(uri).shutdown('/test', 'user request')\n";

/// A request that makes tiny_http allocate 100 GB, and junk.
const HOSTILE: &str = r"
where = urllib.parse.urlparse(uri)
for request in [b'POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n<x>', b'\xff' * 4096]:
    with socket.create_connection((where.hostname, where.port)) as s:
        s.settimeout(60)
        s.sendall(request)
        try: s.recv(10)
        except OSError: pass
";

/// Starts the transport of the app `app` as the node `gimbal`.
fn transport(app: &str, port: u16) -> Process {
    let mut command = command(env!("CARGO_BIN_EXE_punctual-ros1"), port);
    Process(command.args([app, "gimbal"]).stderr(Stdio::piped()).spawn().expect("it can be run"))
}

/// Waits for the end of a transport that fails, and returns its error.
fn error(mut process: Process) -> String {
    let status = process.0.status_within(TEST_LIMIT).expect("it ends");
    let mut error = String::new();
    process.0.stderr.take().expect("it is piped").read_to_string(&mut error).expect("it is text");
    assert_eq!(status.code(), Some(1), "{error}");
    error
}

/// Starts an app that publishes and receives; returns the received messages.
fn start(app: &str) -> (Running, Receiver<Vector3>) {
    let (seen, came) = channel();
    let within = |wanted: &Vector3| match wanted.x.abs() <= 2.5 {
        true => Ok(()),
        false => Err(format!("x is {}", wanted.x)),
    };
    let subscription = SETPOINT.subscribe().unwrap().check(within);
    let subscription = subscription.release(move |wanted| seen.send(wanted).is_ok());
    let server = TransportServer::new(app).subscribe(subscription);
    (Bridge::new().topic(&ANGLES).transports(server).start().expect("it can start"), came)
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
fn exchanges_messages_with_rostopic_and_restarts_without_the_app() {
    let app = format!("ros1-test-{}", std::process::id());
    let (bridge, came) = start(&app);
    let publishing = Publishing::start();
    let without_master = error(transport(&app, free_port()));
    assert!(without_master.contains("is a master at http://127.0.0.1:"), "{without_master}");

    let port = free_port();
    let Some(_master) = master(port) else {
        return skip_any(&[Need::Tool("rosmaster"), Need::Tool("rostopic")], "messages of ROS 1");
    };
    let mut node = transport(&app, port);
    let check_exchange = || {
        let echoed = rostopic(port, &["echo", "-p", "-n", "3", "/angles"]);
        let lines: Vec<&str> = echoed.lines().collect();
        assert_eq!((lines[0], lines.len()), ("%time,field.x,field.y,field.z", 4), "{echoed}");
        assert!(lines[1..].iter().all(|line| line.ends_with(",0.25,-0.125,0.0")), "{echoed}");
    };
    check_exchange();
    assert!(rostopic(port, &["type", "/angles"]).contains("geometry_msgs/Vector3"));
    let refused = error(transport(&app, port));
    assert!(refused.contains("a transport named ros1 is attached"), "{refused}");

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

    python(port, HOSTILE);
    assert!(node.0.try_wait().expect("it can be asked").is_none(), "requests have limits");
    check_exchange();

    python(port, KILL);
    let killed = error(node);
    assert!(killed.contains("by `rosnode kill` or by another node of the same name"), "{killed}");
    let node = transport(&app, port);
    check_exchange();
    drop(node);
    let mut node = transport(&app, port);
    check_exchange();

    drop(publishing);
    let report = bridge.finish();
    let status = node.0.status_within(TEST_LIMIT).expect("it ends with the app");
    assert!(status.success(), "{status}");
    // Without a transport for more than a second, messages are overwritten, and counted as lost.
    let transport = &report.transports[0];
    assert_eq!((transport.name.as_str(), transport.attached), ("ros1", 4), "{report}");
    assert_eq!((transport.accepted, transport.rejected, transport.incoming_lost), (2, 2, 0), "{report}");
    assert!(transport.taken + transport.lost <= report.topics[0].taken, "{report}");
    assert_eq!(report.topics[0].lost, 0, "{report}");
}

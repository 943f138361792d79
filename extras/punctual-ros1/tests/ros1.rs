//! A node in a separate process, with the tools of ROS 1 if they are installed: `rosmaster` and
//! `rostopic`.

#[path = "../../support/app.rs"]
mod app;
#[path = "../../support/faults.rs"]
mod faults;
#[path = "../../../crates/punctual-bridge/tests/support/threads.rs"]
mod threads;
#[path = "../../support/transport.rs"]
mod transport;

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use app::SETPOINT;
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Topic};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip_any};
use transport::{LIMIT, Process};

static ANGLES: Topic<Vector3, 64> = Topic::new("/angles").hz(100);

/// Returns a command for a node of the master at `port`.
fn command(program: &str, port: u16) -> Command {
    let mut command = Command::new(program);
    command.env("ROS_MASTER_URI", format!("http://127.0.0.1:{port}")).env("ROS_IP", "127.0.0.1");
    // SAFETY: the call has no arguments and cannot fail.
    let user = unsafe { libc::geteuid() };
    let logs = std::env::temp_dir().join(format!("punctual-ros1-{user}"));
    command.env("ROS_LOG_DIR", logs).stdin(Stdio::null());
    command
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("there are free ports").port()
}

/// Starts a master, if the tools are installed.
fn master(port: u16) -> Option<Process> {
    let has_rostopic = Command::new("rostopic").arg("-h").output_within(TEST_LIMIT).is_ok();
    if !has_rostopic || !test_skip::is_installed("rosmaster") {
        return None;
    }
    let mut master = command("rosmaster", port);
    let master = master.args(["--core", "-p", &port.to_string()]).stdout(Stdio::null());
    let mut master = Process::start(master);
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = master.child.try_wait().expect("it can be asked");
        assert!(ended.is_none() && begun.elapsed() < LIMIT, "the master does not come up: {ended:?}");
        thread::sleep(Duration::from_millis(20));
    }
    Some(master)
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

/// A publisher of `/wanted` that announces a message of 4 GB, which rosrust allocates.
const HUGE: &str = r"
import struct, threading, xmlrpc.server
master = xmlrpc.client.ServerProxy(os.environ['ROS_MASTER_URI'])
data = socket.create_server(('127.0.0.1', 0))
data.settimeout(60)
api = xmlrpc.server.SimpleXMLRPCServer(('127.0.0.1', 0), logRequests=False)
api.register_function(lambda *_: (1, '', ['TCPROS', '127.0.0.1', data.getsockname()[1]]), 'requestTopic')
threading.Thread(target=api.serve_forever, daemon=True).start()
mine = f'http://127.0.0.1:{api.server_address[1]}'
master.registerPublisher('/huge', '/wanted', 'geometry_msgs/Vector3', mine)
with data.accept()[0] as s:
    master.unregisterPublisher('/huge', '/wanted', mine)
    s.settimeout(60)
    s.recv(4096)
    fields = [b'type=geometry_msgs/Vector3', b'md5sum=4a842b65f413084dc2b10fb484ea7f17', b'callerid=/huge']
    header = b''.join(struct.pack('<I', len(field)) + field for field in fields)
    s.sendall(struct.pack('<I', len(header)) + header + struct.pack('<I', 0xffffffff))
    try: s.recv(10)
    except OSError: pass
";

/// Returns a command for the transport of the app `app` as the node `gimbal`.
fn program(app: &str, port: u16) -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_punctual-ros1"), port);
    command.args([app, "gimbal"]);
    command
}

/// Waits for the end of a transport that fails, and returns its error.
fn error(process: Process) -> String {
    let line = process.wait_for("punctual-ros1: ");
    assert_eq!(process.status().code(), Some(1), "{line}");
    line
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
    let (bridge, came) = app::start(&app, Bridge::new().topic(&ANGLES));
    let publishing = Publishing::start();
    let without_master = error(Process::start(&mut program(&app, free_port())));
    assert!(without_master.contains("is a master at http://127.0.0.1:"), "{without_master}");

    let port = free_port();
    let Some(_master) = master(port) else {
        return skip_any(&[Need::Tool("rosmaster"), Need::Tool("rostopic")], "messages of ROS 1");
    };
    let mut node = Process::start_transport(&mut program(&app, port));
    let check_exchange = || {
        let echoed = rostopic(port, &["echo", "-p", "-n", "3", "/angles"]);
        let lines: Vec<&str> = echoed.lines().collect();
        assert_eq!((lines[0], lines.len()), ("%time,field.x,field.y,field.z", 4), "{echoed}");
        assert!(lines[1..].iter().all(|line| line.ends_with(",0.25,-0.125,0.0")), "{echoed}");
    };
    check_exchange();
    assert!(rostopic(port, &["type", "/angles"]).contains("geometry_msgs/Vector3"));
    let refused = error(Process::start(&mut program(&app, port)));
    assert!(refused.contains("a transport named ros1 is attached"), "{refused}");

    let publish = |kind: &str, words: &[&str]| {
        rostopic(port, &[&["pub", "-1", "/setpoint", kind, "--"], words].concat());
    };
    publish("geometry_msgs/Vector3", &["0.5", "-0.25", "0"]);
    let wanted = Vector3 { x: 0.5, y: -0.25, z: 0.0 };
    assert_eq!(came.recv_timeout(LIMIT), Ok(wanted));
    // With another type, with NaN, and out of range.
    publish("geometry_msgs/Point", &["0.75", "0", "0"]);
    publish("geometry_msgs/Vector3", &[".nan", "0", "0"]);
    publish("geometry_msgs/Vector3", &["3", "0", "0"]);
    publish("geometry_msgs/Vector3", &["0.5", "-0.25", "0"]);
    assert_eq!(came.recv_timeout(LIMIT), Ok(wanted), "nothing else was taken");
    let report = SETPOINT.report();
    assert_eq!((report.accepted, report.malformed, report.refused), (2, 1, 1));

    python(port, HOSTILE);
    assert!(node.child.try_wait().expect("it can be asked").is_none(), "requests have limits");
    check_exchange();

    python(port, KILL);
    let killed = error(node);
    assert!(killed.contains("by `rosnode kill` or by another node of the same name"), "{killed}");
    let node = Process::start_transport(&mut program(&app, port));
    check_exchange();
    drop(node);
    let node = Process::start_transport(&mut program(&app, port));
    check_exchange();

    drop(publishing);
    let report = bridge.finish();
    assert!(node.status().success(), "it ends with the app");
    // Without a transport for more than a second, messages are overwritten, and counted as lost.
    let transport = &report.transports[0];
    assert_eq!((transport.name.as_str(), transport.attached), ("ros1", 4), "{report}");
    assert_eq!((transport.accepted, transport.rejected, transport.incoming_lost), (2, 2, 0), "{report}");
    assert!(transport.taken + transport.lost <= report.topics[0].taken, "{report}");
    assert_eq!(report.topics[0].lost, 0, "{report}");
}

#[test]
fn faults_are_counted_and_cost_the_app_nothing() {
    let port = free_port();
    let Some(_master) = master(port) else {
        return skip_any(&[Need::Tool("rosmaster"), Need::Tool("rostopic")], "faults of ROS 1");
    };
    let (command, junk) = (|app: &str| program(app, port), || python(port, HOSTILE));
    let exhaust = || python(port, HUGE);
    let case = faults::Case { exhaust: Some(&exhaust), ..faults::Case::new(&command, &junk) };
    faults::check("app_with_faults", &case);
}

#[test]
#[ignore = "a separate process, started by another test"]
fn app_with_faults() {
    faults::app();
}

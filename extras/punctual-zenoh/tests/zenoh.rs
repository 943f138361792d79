//! The transport between an app and a Zenoh node in another process, on loopback in a separate
//! network namespace.

#[path = "../../support/alone.rs"]
mod alone;
#[path = "../../support/app.rs"]
mod app;
#[path = "../../support/faults.rs"]
mod faults;
#[path = "../../support/gimbal.rs"]
mod gimbal;
#[path = "router/mod.rs"]
mod router;
#[path = "../../../crates/punctual-bridge/tests/support/threads.rs"]
mod threads;
#[path = "../../support/transport.rs"]
mod transport;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use app::SETPOINT;
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Message, Topic, TransportServer};
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip, skip_any};
use transport::{LIMIT, Process, signal};
use zenoh::{Config, Wait};

static ANGLES: Topic<Vector3, 64> = Topic::new("/angles").hz(100);
static BULK: Topic<Bulk, ROOM> = Topic::new("/bulk");

/// 4 KiB.
#[derive(Clone, Copy, Message)]
#[message(name = "demo_msgs/msg/Bulk")]
struct Bulk {
    values: [f64; 512],
}

/// The capacity of a topic.
const ROOM: usize = 64;
/// More than Zenoh and the kernel buffer of [`BULK`]: 80 MB.
const MANY: u32 = 20_000;

const ENDPOINT: &str = "tcp/127.0.0.1:7447";

#[test]
fn exchanges_messages_between_two_processes() {
    succeeds("inside");
}

#[test]
fn counts_messages_lost_to_stopped_peer() {
    succeeds("next_to_stopped_peer");
}

#[test]
fn faults_are_counted_and_cost_the_app_nothing() {
    succeeds("inside_with_faults");
}

/// Runs `test` in isolation.
fn succeeds(test: &str) {
    match alone::run(test, UP, "true") {
        Some(went_well) => assert!(went_well, "see above"),
        None => skip(Need::System("a network namespace"), "messages of Zenoh"),
    }
}

const UP: &str = "ip link set lo up";

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside_with_faults() {
    let junk = || {
        // Frames with the maximum length and random content, and a request of another protocol.
        for bytes in [&[0xff_u8; 70_000][..], b"GET / HTTP/1.1\r\n\r\n", &[0; 4096]] {
            for _ in 0..200 {
                let mut stream = TcpStream::connect(ENDPOINT.trim_start_matches("tcp/")).expect("it listens");
                // It may close the connection at the first byte.
                let _ = stream.write_all(bytes);
            }
        }
    };
    let command = |app: &str| program(&[app]);
    faults::check("app_with_faults", &faults::Case::new(&command, &junk));
}

#[test]
#[ignore = "a separate process, started by another test"]
fn app_with_faults() {
    faults::app();
}

#[test]
fn gimbal_is_controlled_and_observed() {
    match alone::run("inside_with_gimbal", UP, "python3 -c 'import zenoh; zenoh.Config'") {
        Some(went_well) => assert!(went_well, "see above"),
        None => skip_any(
            &[Need::PythonModule("zenoh"), Need::System("a network namespace")],
            "the gimbal and Zenoh",
        ),
    }
}

#[test]
fn nodes_of_rmw_zenoh_exchange_messages() {
    match alone::run("inside_with_rmw", UP, "python3 -c 'import zenoh; zenoh.Config'") {
        Some(went_well) => assert!(went_well, "see above"),
        None => skip_any(
            &[Need::PythonModule("zenoh"), Need::System("a network namespace")],
            "nodes of rmw_zenoh_cpp",
        ),
    }
}

/// Receives and sends messages by the keys of the announcements, as nodes of ROS 2 do.
const RMW_PEER: &str = r#"
import json, queue, struct, sys, zenoh
config = zenoh.Config()
config.insert_json5('scouting/multicast/enabled', 'false')
config.insert_json5('listen/endpoints', '[]')
config.insert_json5('connect/endpoints', json.dumps([sys.argv[1]]))
with zenoh.open(config) as session:
    tokens = queue.Queue()
    announced = session.liveliness().declare_subscriber(
        '@ros2_lv/7/**', lambda sample: tokens.put(str(sample.key_expr)), history=True)
    found = sorted(tokens.get(timeout=600).split('/', 4)[4].split('/') for _ in range(3))
    for parts in found:
        print('/'.join(parts), flush=True)
    def key(parts):
        _, _, _, _, _, name, kind, hash, _ = parts
        return '/'.join(['7', name.replace('%', '/').strip('/'), kind, hash])
    came = queue.Queue()
    subscriber = session.declare_subscriber(key(found[1]), came.put)
    sample = came.get(timeout=600)
    number, time, length = struct.unpack('<qqB', bytes(sample.attachment)[:17])
    print(number > 0, time > 1600000000 * 10**9, length, len(bytes(sample.attachment)), flush=True)
    print(struct.unpack('<4B3d', bytes(sample.payload)), flush=True)
    identity = struct.pack('<qqB16B', 1, 0, 16, *range(16))
    message = struct.pack('<4B3d', 0, 1, 0, 0, 0.5, -0.25, 0.0)
    session.put(key(found[2]), message, attachment=identity)
    print('sent', flush=True)
    sys.stdin.read()
"#;

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside_with_rmw() {
    let name = format!("zenoh-rmw-{}", std::process::id());
    let (bridge, came) = app::start(&name, Bridge::new().topic(&ANGLES).diagnostics(false));
    let mut command = program(&[&name, "--ros", "--listen", ENDPOINT]);
    let transport = Process::start_transport(command.env("ROS_DOMAIN_ID", "7"));
    let mut peer = Command::new("python3");
    peer.args(["-c", RMW_PEER, ENDPOINT]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut peer = peer.spawn().expect("it is there");
    let mut lines = BufReader::new(peer.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    let node = name.replace('-', "_");
    let kind = "geometry_msgs::msg::dds_::Vector3_/\
                RIHS01_cc12fe83e4c02719f1ce8070bfd14aecd40f75a96696a67a2a1f37f7dbb0765d";
    for expected in [
        format!("0/NN/%/%/{node}"),
        format!("1/MP/%/%/{node}/%angles/{kind}/::,10:,:,:,,"),
        format!("2/MS/%/%/{node}/%setpoint/{kind}/2::,10:,:,:,,"),
    ] {
        assert_eq!(lines.next(), Some(expected));
    }
    let (over, ends) = channel::<()>();
    let publishes = thread::spawn(move || {
        let mut angles = ANGLES.publisher().expect("the publisher is free");
        while ends.recv_timeout(Duration::from_millis(10)) == Err(timeout()) {
            angles.publish(punctual::now(), Vector3 { x: 0.25, y: -0.125, z: 0.0 });
        }
    });
    assert_eq!(lines.next().as_deref(), Some("True True 16 33"));
    assert_eq!(lines.next().as_deref(), Some("(0, 1, 0, 0, 0.25, -0.125, 0.0)"));
    assert_eq!(lines.next().as_deref(), Some("sent"));
    assert_eq!(came.recv_timeout(LIMIT), Ok(Vector3 { x: 0.5, y: -0.25, z: 0.0 }));
    drop((over, peer.stdin.take()));
    publishes.join().expect("it publishes");
    assert!(peer.status_within(TEST_LIMIT).expect("it ends").success());
    drop(bridge.finish());
    assert!(transport.status().success());
}

/// Publishes a setpoint, waits until the gimbal reports it as its target, and receives angles and
/// currents.
const GIMBAL_PEER: &str = r#"
import json, queue, struct, sys, time, zenoh
config = zenoh.Config()
config.insert_json5('scouting/multicast/enabled', 'false')
config.insert_json5('listen/endpoints', '[]')
config.insert_json5('connect/endpoints', json.dumps([sys.argv[1]]))
with zenoh.open(config) as session:
    came = {name: queue.Queue() for name in ('target', 'angles', 'currents')}
    def take(name):
        return session.declare_subscriber(name, lambda sample: came[name].put(bytes(sample.payload)))
    subscribers = [take(name) for name in came]
    came['angles'].get(timeout=600)
    vector = lambda *values: struct.pack('<4B3d', 0, 1, 0, 0, *values)
    # Refused: beyond the range, and not whole.
    session.put('setpoint', vector(9.0, 0.0, 0.0))
    session.put('setpoint', vector(0.5, -0.25, 0.0)[:20])
    session.put('setpoint', vector(0.5, -0.25, 0.0))
    while came['target'].get(timeout=600) != vector(0.5, -0.25, 0.0):
        pass
    while True:
        x, y, _ = struct.unpack('<4x3d', came['angles'].get(timeout=600))
        if abs(x - 0.5) < 0.1 and abs(y + 0.25) < 0.1:
            break
    print('batch of', (len(came['currents'].get(timeout=600)) - 4) // 8, flush=True)
    print('there', flush=True)
    # Longer than the node takes to see who is connected.
    time.sleep(1)
"#;

#[test]
#[ignore = "a separate process, started by another test"]
fn app_of_gimbal() {
    gimbal::app();
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside_with_gimbal() {
    let mut peer = Command::new("python3");
    peer.args(["-c", GIMBAL_PEER, ENDPOINT]);
    let (peer, gimbal) =
        gimbal::run("app_of_gimbal", &mut program(&["gimbal"]), &mut peer, Some(" is no longer connected; "));
    assert!(peer.starts_with("batch of 100\nthere\n"), "{peer}");
    assert!(gimbal.contains("/setpoint: 1 messages accepted, 1 malformed, 1 refused"), "{gimbal}");
}

#[test]
fn explains_invalid_place() {
    let (_bridge, _) = app::start("zenoh-rejects", Bridge::new());
    let error = |option: &str, place: &str| {
        let mut command = program(&["zenoh-rejects", option, place]);
        let output = command.output_within(TEST_LIMIT).expect("it ends");
        let error = String::from_utf8(output.stderr).expect("it is text");
        assert_eq!(output.status.code(), Some(1), "{error}");
        error
    };
    let taken = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
    let endpoint = format!("tcp/{}", taken.local_addr().expect("it has one"));
    let used = error("--listen", &endpoint);
    let begins = format!("punctual-zenoh: cannot listen at \"{endpoint}\": ");
    assert!(used.starts_with(&begins) && used.contains("a port that is not in use"), "{used}");
    for wrong in ["7447", "tcp/", "quic/127.0.0.1:1", "tcp/no such host:1", "\"], \"x\": [\""] {
        let error = error("--listen", wrong);
        assert!(error.contains("an endpoint is tcp/ADDRESS:PORT or tls/"), "{wrong}: {error}");
    }
    drop(taken);
    let error_of_peer = error("--connect", &endpoint);
    assert!(error_of_peer.contains("a router or a peer must already listen"), "{error_of_peer}");
    let no_file = error("--config", "/no/such/file.json5");
    assert!(no_file.contains("/no/such/file.json5"), "{no_file}");
}

/// Returns a command for the transport.
fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual-zenoh"));
    command.args(arguments);
    command
}

/// The other process: prints received angles with their numbers, and publishes the messages given
/// on its input.
#[test]
#[ignore = "a separate process, started by another test"]
fn peer() {
    let mut config = Config::default();
    for (key, value) in [
        ("transport/link/tx/lease", "600000"),
        ("scouting/multicast/enabled", "false"),
        ("listen/endpoints", "[]"),
        ("connect/endpoints", &format!("[{ENDPOINT:?}]")),
    ] {
        config.insert_json5(key, value).unwrap();
    }
    let session = zenoh::open(config).wait().unwrap();
    let show = |sample: zenoh::sample::Sample| {
        let attached = sample.attachment().unwrap().to_bytes();
        let number = u32::from_le_bytes(attached[8..].try_into().unwrap());
        let stamp = u64::from_le_bytes(attached[..8].try_into().unwrap());
        let payload = sample.payload().to_bytes();
        println!("{number} {} {} {payload:?}", stamp > 1_600_000_000_000_000_000, sample.encoding());
    };
    let _angles = session.declare_subscriber("angles").callback(show).wait().unwrap();
    let count = |sample: zenoh::sample::Sample| {
        let attached = sample.attachment().unwrap().to_bytes();
        println!("{} bulk", u32::from_le_bytes(attached[8..].try_into().unwrap()));
    };
    let _bulk = session.declare_subscriber("bulk").callback(count).wait().unwrap();
    for line in std::io::stdin().lines() {
        let bytes: Vec<u8> = line.unwrap().split(' ').map(|word| word.parse().unwrap()).collect();
        session.put("setpoint", bytes).wait().unwrap();
    }
    session.close().wait().unwrap();
}

struct Peer {
    child: Child,
    stdin: ChildStdin,
    /// The number of each received message, and the rest of its line.
    seen: Receiver<(u32, String)>,
}

impl Peer {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture", "peer"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it is there");
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, seen) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // The test harness prints lines, too.
                if let Some((number, rest)) = line.split_once(' ')
                    && let Ok(number) = number.parse()
                    && sender.send((number, rest.to_owned())).is_err()
                {
                    return;
                }
            }
        });
        Self { child, stdin, seen }
    }

    /// Makes it publish the first `length` bytes of a message.
    fn send(&mut self, x: f64, length: usize) {
        let bytes = [&[0, 1, 0, 0], [x, 0.25, 0.0].map(f64::to_le_bytes).as_flattened()].concat();
        let words: Vec<String> = bytes[..length].iter().map(u8::to_string).collect();
        writeln!(self.stdin, "{}", words.join(" ")).expect("it reads");
    }

    fn seen(&self) -> (u32, String) {
        self.seen.recv_timeout(LIMIT).expect("it sees something")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.end_at_once();
    }
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside() {
    let name = format!("zenoh-test-{}", std::process::id());
    let (bridge, came) = app::start(&name, Bridge::new().topic(&ANGLES));
    let transport = Process::start_transport(&mut program(&[&name]));
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let publishes = thread::spawn(move || {
        let mut angles = ANGLES.publisher().expect("the publisher is free");
        while is_over.recv_timeout(Duration::from_millis(10)).is_err_and(|error| error == timeout()) {
            angles.publish(punctual::now(), Vector3 { x: 0.25, y: -0.125, z: 0.0 });
        }
    });
    let mut peer = Peer::start();
    let (first, message) = peer.seen();
    let bytes = [&[0, 1, 0, 0], [0.25, -0.125, 0.0].map(f64::to_le_bytes).as_flattened()].concat();
    assert_eq!(message, format!("true application/cdr;geometry_msgs/msg/Vector3 {bytes:?}"));
    for next in first + 1..first + 20 {
        assert_eq!(peer.seen(), (next, message.clone()));
    }

    let wanted = Vector3 { x: 0.5, y: 0.25, z: 0.0 };
    // With another length, with NaN, and out of range.
    for (x, length) in [(0.5, 28), (0.5, 27), (f64::NAN, 28), (3.0, 28), (0.5, 28)] {
        peer.send(x, length);
    }
    for _ in 0..2 {
        assert_eq!(came.recv_timeout(LIMIT), Ok(wanted));
    }
    let report = SETPOINT.report();
    assert_eq!((report.accepted, report.malformed, report.refused), (2, 2, 1));

    // Another peer finds the node when the first one is gone.
    drop(peer);
    let peer = Peer::start();
    assert!(peer.seen().0 > first);
    drop(over);
    publishes.join().expect("it publishes");
    let report = bridge.finish();
    let carried = &report.transports[0];
    assert!(carried.taken > 0 && carried.taken + carried.lost <= report.topics[0].taken, "{report}");
    assert!(transport.status().success());
}

/// A configuration with a lease of ten minutes for both sides: a peer that resumes after a stop has
/// received nothing meanwhile.
const PATIENT: &str = r#"{
    mode: "peer",
    listen: { endpoints: ["tcp/127.0.0.1:7447"] },
    scouting: { multicast: { enabled: false } },
    transport: { link: { tx: { lease: 600000, queue: { congestion_control: { block: { wait_before_close: 600000000 } } } } } },
}"#;

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn next_to_stopped_peer() {
    // Otherwise Zenoh would close the connection after 5 s, which a slow machine may need.
    let file = std::env::temp_dir().join(format!("punctual-zenoh-{}.json5", std::process::id()));
    std::fs::write(&file, PATIENT).expect("there is room for a file");
    // In virtual time the publisher waits for the bridge, so nothing is lost before the transport.
    let name = format!("zenoh-stopped-{}", std::process::id());
    let bridge = Bridge::new().topic(&BULK).transports(TransportServer::new(&name)).virtual_time(true);
    let bridge = bridge.start().expect("it can start");
    let path = file.to_str().expect("it is text");
    let transport = Process::start_transport(&mut program(&[&name, "--config", path]));
    std::fs::remove_file(&file).expect("it is there");
    let mut bulk = BULK.publisher().expect("the publisher is free");
    let mut published = 0_u64;
    let mut publish = || {
        bulk.publish(punctual::now(), Bulk { values: [0.5; 512] });
        published += 1;
        u32::try_from(published - 1).expect("there are few")
    };
    let peer = Peer::start();
    let mut came = Vec::new();
    // Until the last message has arrived, so none is in flight.
    let mut publish_and_see = |publish: &mut dyn FnMut() -> u32| {
        loop {
            let last = publish();
            while let Ok((number, _)) = peer.seen.recv_timeout(Duration::from_millis(100)) {
                came.push(number);
                if number == last {
                    return;
                }
            }
        }
    };
    publish_and_see(&mut publish);
    let process = peer.child.id().cast_signed();
    signal(process, libc::SIGSTOP);
    (0..MANY).for_each(|_| _ = publish());
    signal(process, libc::SIGCONT);
    publish_and_see(&mut publish);

    let report = bridge.finish();
    let (topic, carried) = (&report.topics[0], &report.transports[0]);
    assert_eq!((topic.taken, topic.lost), (published, 0), "{report}");
    assert!(came.is_sorted_by(|earlier, later| earlier < later), "in order");
    // Before the first one there was no reader.
    let missing = published - u64::from(came[0]) - came.len() as u64;
    // The transport may not yet have reported its last reading.
    assert!(carried.lost > 0 && missing.abs_diff(carried.lost) < ROOM as u64, "{missing}: {report}");
    drop(peer);
    assert!(transport.status().success());
}

/// The error of waiting while the end is not requested.
fn timeout() -> std::sync::mpsc::RecvTimeoutError {
    std::sync::mpsc::RecvTimeoutError::Timeout
}

//! Two Zenoh nodes in two processes, on loopback in a separate network namespace.

#[path = "../../support/alone.rs"]
mod alone;
#[path = "../../support/node.rs"]
mod node;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use node::{SETPOINT, of_real_time};
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Bridge, Message, Running, Topic};
use punctual_process::child::BoundedChild;
use punctual_zenoh::Zenoh;
use test_skip::{Need, skip};
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

/// Longer than any machine takes.
const PATIENCE: Duration = Duration::from_secs(600);
const ENDPOINT: &str = "tcp/127.0.0.1:7447";

#[test]
fn exchanges_messages_between_two_processes() {
    succeeds("inside");
}

#[test]
fn counts_messages_lost_to_stopped_peer() {
    succeeds("next_to_stopped_peer");
}

/// Runs `test` in isolation.
fn succeeds(test: &str) {
    match alone::run(test, "ip link set lo up", "true") {
        Some(went_well) => assert!(went_well, "see above"),
        None => skip(Need::System("a network namespace"), "messages of Zenoh"),
    }
}

#[test]
fn explains_invalid_endpoint() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
    let address = taken.local_addr().expect("it has one");
    let error = Zenoh::listen(&format!("tcp/{address}")).unwrap_err().to_string();
    let begins = format!("Zenoh: cannot listen at \"tcp/{address}\": ");
    assert!(error.starts_with(&begins) && error.contains("a port that is not in use"), "{error}");
    for wrong in ["7447", "tcp/", "quic/127.0.0.1:1", "tcp/no such host:1", "\"], \"x\": [\""] {
        let error = Zenoh::listen(wrong).unwrap_err().to_string();
        assert!(error.contains("tcp/ADDRESS:PORT is an endpoint"), "{wrong}: {error}");
    }
    drop(taken);
    let error = Zenoh::connect(&format!("tcp/{address}")).unwrap_err().to_string();
    assert!(error.contains("a router or a peer has to listen already"), "{error}");
    let error = Zenoh::configured("/no/such/file.json5").unwrap_err().to_string();
    assert!(error.contains("/no/such/file.json5"), "{error}");
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
        let (tell, seen) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // The test harness prints lines, too.
                if let Some((number, rest)) = line.split_once(' ')
                    && let Ok(number) = number.parse()
                    && tell.send((number, rest.to_owned())).is_err()
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

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: sends a signal to a process that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
    }

    fn seen(&self) -> (u32, String) {
        self.seen.recv_timeout(PATIENCE).expect("it sees something")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.end_at_once();
    }
}

fn start() -> (Running, Receiver<Vector3>) {
    node::start(|subscription| {
        let node = Zenoh::listen(ENDPOINT).expect("there is loopback");
        let node = node.subscribe(subscription).expect("there is loopback");
        Bridge::new().topic(&ANGLES).sink(node).start().expect("there is loopback")
    })
}

#[test]
#[ignore = "run by another test, in a network namespace with loopback only"]
fn inside() {
    let (bridge, came) = start();
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
    assert_eq!(of_real_time(), [], "Zenoh's threads are ordinary");

    let wanted = Vector3 { x: 0.5, y: 0.25, z: 0.0 };
    // With another length, with NaN, and out of range.
    for (x, length) in [(0.5, 28), (0.5, 27), (f64::NAN, 28), (3.0, 28), (0.5, 28)] {
        peer.send(x, length);
    }
    for _ in 0..2 {
        assert_eq!(came.recv_timeout(PATIENCE), Ok(wanted));
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
    assert!(report.is_complete() && report.sinks[0].written == report.topics[0].taken, "{report}");
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
    let node = Zenoh::configured(&file);
    std::fs::remove_file(&file).expect("it is there");
    let node = node.expect("there is loopback");
    // In virtual time the publisher waits for the bridge, so nothing is lost before the node.
    let bridge = Bridge::new().topic(&BULK).sink(node).virtual_time(true).start().expect("it is free");
    let mut bulk = BULK.publisher().expect("the publisher is free");
    let mut published = 0;
    let mut publish = || {
        bulk.publish(punctual::now(), Bulk { values: [0.5; 512] });
        published += 1;
        published - 1
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
    peer.signal(libc::SIGSTOP);
    (0..MANY).for_each(|_| _ = publish());
    peer.signal(libc::SIGCONT);
    publish_and_see(&mut publish);

    let report = bridge.finish();
    let (topic, sink) = (&report.topics[0], &report.sinks[0]);
    assert_eq!((topic.taken, topic.lost), (published.into(), 0), "{report}");
    assert_eq!(sink.written + sink.dropped, topic.taken, "{report}");
    assert!(sink.dropped > 0 && sink.error.is_none(), "{report}");
    assert!(came.is_sorted_by(|earlier, later| earlier < later), "in order");
    // Before the first one there was no reader.
    assert_eq!(
        came.len() as u64,
        sink.written - u64::from(came[0]),
        "all that is not counted came: {report}"
    );
}

/// The error of waiting while the end is not requested.
fn timeout() -> std::sync::mpsc::RecvTimeoutError {
    std::sync::mpsc::RecvTimeoutError::Timeout
}

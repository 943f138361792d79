//! The peer: a separate process.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_process::child::{BoundedChild, TEST_LIMIT};
use zenoh::{Config, Wait};

use crate::{TOPICS, transport};

/// The messages of a topic that a peer has received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The number of messages.
    pub(crate) messages: u64,
    /// The numbers of the first and the last message.
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// The final report of a peer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) topics: Vec<Seen>,
    /// The number of sent setpoints.
    pub(crate) sent: u64,
}

/// Reads all topics, and publishes setpoints if it `floods`, until its standard input ends.
pub(crate) fn run(endpoint: &str, floods: bool) {
    let mut config = Config::default();
    for (key, value) in [
        ("scouting/multicast/enabled", "false"),
        ("listen/endpoints", "[]"),
        ("connect/endpoints", &format!("[{endpoint:?}]")),
    ] {
        config.insert_json5(key, value).expect("it is a setting");
    }
    let session = zenoh::open(config).wait().expect("somebody listens");
    static SEEN: [Mutex<Seen>; TOPICS] =
        [const { Mutex::new(Seen { messages: 0, first: 0, last: 0 }) }; TOPICS];
    static OVER: AtomicBool = AtomicBool::new(false);
    let subscribe = |index: usize| {
        let take = move |sample: zenoh::sample::Sample| {
            let attached = sample.attachment().expect("it has a number").to_bytes();
            let number = u32::from_le_bytes(attached[8..12].try_into().expect("there are four")).into();
            let mut seen = SEEN[index].lock().unwrap();
            let first = if seen.messages == 0 { number } else { seen.first };
            assert!(seen.messages == 0 || number > seen.last, "in order");
            *seen = Seen { messages: seen.messages + 1, first, last: number };
        };
        session.declare_subscriber(format!("t{index}")).callback(take).wait().expect("there is room")
    };
    let _all: Vec<_> = (0..TOPICS).map(subscribe).collect();
    println!("reads");
    let flood = floods.then(|| {
        let setpoints = session.declare_publisher("setpoint");
        let setpoints = setpoints.congestion_control(zenoh::qos::CongestionControl::Block).wait();
        let setpoints = setpoints.expect("there is room");
        std::thread::spawn(move || {
            let message = |x: f64| [&[0, 1, 0, 0], [x; 8].map(f64::to_le_bytes).as_flattened()].concat();
            // Valid, with NaN, out of range, and too short.
            let kinds = [message(0.5), message(f64::NAN), message(3.0), message(0.5)[..20].to_vec()];
            let mut sent = 0;
            while !OVER.load(Ordering::Relaxed) {
                setpoints.put(kinds[sent as usize % kinds.len()].as_slice()).wait().expect("it is open");
                sent += 1;
            }
            sent
        })
    });
    io::stdin().read_to_end(&mut Vec::new()).expect("it can be read");
    OVER.store(true, Ordering::Relaxed);
    let sent: u64 = flood.map_or(0, |flood| flood.join().expect("it counts"));
    for Seen { messages, first, last } in SEEN.iter().map(|seen| *seen.lock().unwrap()) {
        println!("{messages} {first} {last}");
    }
    println!("{sent}");
    // Sent messages that are still queued must not be lost.
    session.close().wait().expect("it ends");
}

/// A handle to a peer.
pub(crate) struct Peer {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a peer, and waits until it reads.
    pub(crate) fn start(endpoint: &str, floods: bool) -> Self {
        let this = std::env::current_exe().expect("a program knows where it is");
        let mut command = Command::new(this);
        command.args(["peer", endpoint, if floods { "floods" } else { "reads" }]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it is there");
        let mut peer = Self { stdout: BufReader::new(child.stdout.take().expect("it is piped")), child };
        assert_eq!(peer.line(), "reads");
        peer
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it is text");
        line.trim().to_owned()
    }

    pub(crate) fn signal(&self, signal: libc::c_int) {
        transport::signal(self.child.id().cast_signed(), signal);
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.status_within(TEST_LIMIT).expect("it has ended");
    }

    /// Ends the peer, and returns its report.
    pub(crate) fn end(mut self) -> Said {
        drop(self.child.stdin.take());
        let numbers = |line: String| -> Vec<u64> {
            line.split(' ').map(|word| word.parse().expect("it is a number")).collect()
        };
        let seen = |line| match *numbers(line) {
            [messages, first, last] => Seen { messages, first, last },
            ref other => panic!("unexpected line of a peer: {other:?}"),
        };
        let topics = (0..TOPICS).map(|_| seen(self.line())).collect();
        let sent = numbers(self.line())[0];
        self.child.status_within(TEST_LIMIT).expect("it ends");
        Said { topics, sent }
    }
}

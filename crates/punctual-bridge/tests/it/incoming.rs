//! Incoming messages: a task is released by them or reads them, and invalid ones change nothing.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use punctual_bridge::message::{Layout, Numbers};
use punctual_bridge::messages::Vector3;
use punctual_bridge::{Datagrams, Incoming, IncomingReport, NotAccepted};

/// Longer than any machine takes.
const TIMEOUT: Duration = Duration::from_secs(60);
const ZERO: Vector3 = Vector3 { x: 0.0, y: 0.0, z: 0.0 };

/// Returns the bytes in ROS 2's encoding.
fn bytes(x: f64, y: f64) -> Vec<u8> {
    [&[0, 1, 0, 0], [x, y, 0.0].map(f64::to_le_bytes).as_flattened()].concat()
}

/// Returns a socket that sends to `address`.
fn sender(address: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there are free ports");
    socket.connect(address).expect("it is on this machine");
    socket
}

/// Returns messages of a hostile peer.
fn hostile() -> Vec<Vec<u8>> {
    let mut messages = vec![
        vec![],
        vec![0, 1, 0],
        bytes(0.5, 0.5)[..27].to_vec(),
        [bytes(0.5, 0.5), vec![0; 8]].concat(),
        vec![0; 65_000],
        bytes(f64::NAN, 0.0),
        bytes(0.0, f64::INFINITY),
        b"{\"x\": 0.5, \"y\": 0.5, \"z\": 0}".to_vec(),
    ];
    // Another encoding.
    messages.push([&[0, 3, 0, 0], &bytes(0.5, 0.5)[4..]].concat());
    messages
}

/// Ranges of a gimbal.
fn near(wanted: &Vector3) -> Result<(), String> {
    match wanted.x.abs() <= 1.0 && wanted.y.abs() <= 1.0 {
        true => Ok(()),
        false => Err(format!("({}, {}) is beyond -1 to 1 rad", wanted.x, wanted.y)),
    }
}

#[test]
fn accepts_missing_values_where_the_app_does() {
    static SETPOINT: Incoming<Vector3> = Incoming::new("/strict", ZERO);
    static SENSOR: Incoming<Vector3> = Incoming::new("/sensor", ZERO).numbers(Numbers::Any);
    let (mut setpoint, mut sensor) = (SETPOINT.subscribe().unwrap(), SENSOR.subscribe().unwrap());
    let sent = bytes(f64::NAN, f64::NEG_INFINITY);
    let refused = setpoint.take(&sent, Layout::Cdr, &"test");
    assert!(matches!(refused, Err(NotAccepted::Malformed(_))), "{refused:?}");
    assert_eq!(sensor.take(&sent, Layout::Cdr, &"test"), Ok(()));
    let message = SENSOR.reader().unwrap().read().message;
    assert!(message.x.is_nan() && message.y == f64::NEG_INFINITY && message.z == 0.0);
    assert_eq!((SETPOINT.report().malformed, SENSOR.report().accepted), (1, 1));
}

#[test]
fn keeps_last_valid_message() {
    static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", ZERO);
    let (seen, came) = channel();
    let subscription = SETPOINT.subscribe().unwrap().check(near);
    let subscription = subscription.release(move |message| seen.send(message).is_ok());
    SETPOINT.subscribe().expect_err("one has it");
    let datagrams = Datagrams::listen("127.0.0.1:0", subscription).expect("there are free ports");
    let socket = sender(datagrams.address());
    let mut reader = SETPOINT.reader().unwrap();
    assert_eq!((reader.read().message, reader.read().received), (ZERO, None));

    let before = punctual::now();
    socket.send(&bytes(0.5, -0.25)).unwrap();
    let good = Vector3 { x: 0.5, y: -0.25, z: 0.0 };
    assert_eq!(came.recv_timeout(TIMEOUT), Ok(good));
    let reading = reader.read();
    assert_eq!((reading.message, reading.is_new), (good, true));
    assert!(reading.received.is_some_and(|received| received >= before));

    for message in hostile() {
        socket.send(&message).unwrap();
    }
    socket.send(&bytes(1.5, 0.0)).unwrap();
    // Loopback preserves the order, so this one arrives after the others.
    socket.send(&bytes(0.5, -0.25)).unwrap();
    assert_eq!(came.recv_timeout(TIMEOUT), Ok(good), "none of the others was taken");
    let reading = reader.read();
    assert_eq!((reading.message, reading.is_new), (good, true));
    assert!(!reader.read().is_new);
    datagrams.finish();
    let IncomingReport { accepted, malformed, refused, unreleased, .. } = SETPOINT.report();
    assert_eq!((accepted, malformed, refused, unreleased), (2, hostile().len() as u64, 1, 0));
    let printed = SETPOINT.report().to_string();
    assert_eq!(printed, "/setpoint: 2 messages accepted, 9 malformed, 1 refused");
    drop(SETPOINT.subscribe().expect("it is free again"));
}

#[test]
fn counts_messages_rejected_by_the_program() {
    static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", ZERO);
    let check = |wanted: &Vector3| match wanted.x {
        0.25 => panic!("an expected panic"),
        _ => near(wanted),
    };
    let release = |wanted: Vector3| match wanted.y {
        0.25 => panic!("an expected panic"),
        y => y != 0.75,
    };
    let mut subscription = SETPOINT.subscribe().unwrap().check(check).release(release);
    let mut reader = SETPOINT.reader().unwrap();
    let mut take = |x, y| subscription.take(&bytes(x, y), Layout::Cdr, &"a test");
    assert_eq!(take(0.5, 0.5), Ok(()));
    assert_eq!(take(0.25, 0.5), Err(NotAccepted::Refused("the app's check panicked".into())));
    assert_eq!(take(0.5, 0.25), Err(NotAccepted::Unreleased));
    assert_eq!(take(0.5, 0.75), Err(NotAccepted::Unreleased));
    let out_of_range = take(2.0, 0.0).unwrap_err().to_string();
    assert_eq!(out_of_range, "(2, 0) is beyond -1 to 1 rad");
    assert_eq!(reader.read().message, Vector3 { x: 0.5, y: 0.75, z: 0.0 }, "the last that was taken");
    assert_eq!(take(0.5, 0.5), Ok(()));
    let report = SETPOINT.report();
    assert_eq!((report.accepted, report.malformed, report.refused, report.unreleased), (4, 0, 2, 2));
    assert!(!report.is_complete());
    assert!(report.to_string().ends_with("2 refused, 2 without a release"), "{report}");
}

static WANTED: Incoming<Vector3> = Incoming::new("/setpoint", ZERO);

/// The app's address.
static ADDRESS: Mutex<Option<SocketAddr>> = Mutex::new(None);

#[punctual::app(main = false)]
mod app {
    use std::sync::mpsc::Sender;

    use punctual_bridge::messages::Vector3;
    use punctual_bridge::{Datagrams, IncomingReader};

    use super::{ADDRESS, WANTED, near};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        newest: IncomingReader<Vector3>,
        jobs: Sender<(Vector3, Vector3)>,
        datagrams: Option<Datagrams>,
    }

    #[init]
    fn init(_: init::Context, jobs: Sender<(Vector3, Vector3)>) -> (Shared, Local) {
        let subscription = WANTED.subscribe().expect("the subscription is free").check(near);
        let subscription = subscription.release(|wanted| follow::spawn(wanted).is_ok());
        let datagrams = Datagrams::listen("127.0.0.1:0", subscription).expect("there are free ports");
        *ADDRESS.lock().unwrap() = Some(datagrams.address());
        let newest = WANTED.reader().expect("the reader is free");
        (Shared {}, Local { newest, jobs, datagrams: Some(datagrams) })
    }

    #[task(priority = 2, capacity = 4, local = [newest, jobs])]
    fn follow(cx: follow::Context, wanted: Vector3) {
        let newest = cx.local.newest.read();
        let _ = cx.local.jobs.send((wanted, newest.message));
        if wanted.z != 0.0 {
            punctual::shutdown();
        }
    }

    #[shutdown(local = [datagrams])]
    fn shutdown(cx: shutdown::Context) {
        drop(cx.local.datagrams.take());
    }
}

#[test]
fn releases_task() {
    let _turn = test_skip::alone();
    let (sent, jobs) = channel();
    let peer = std::thread::spawn(move || steer(&jobs));
    let config = punctual::Config::new().until(punctual::Duration::from_secs(60));
    app::run(config, sent).expect("nothing is required");
    peer.join().expect("its assertions hold");
    assert_eq!((WANTED.report().accepted, WANTED.report().malformed, WANTED.report().refused), (3, 9, 1));
}

/// The peer: sends, and waits for the released job.
fn steer(jobs: &Receiver<(Vector3, Vector3)>) {
    let begun = Instant::now();
    let address = loop {
        if let Some(address) = *ADDRESS.lock().unwrap() {
            break address;
        }
        assert!(begun.elapsed() < TIMEOUT, "the app does not listen");
        std::thread::yield_now();
    };
    let socket = sender(address);
    socket.send(&bytes(0.5, 0.25)).unwrap();
    let first = Vector3 { x: 0.5, y: 0.25, z: 0.0 };
    assert_eq!(jobs.recv_timeout(TIMEOUT), Ok((first, first)));
    for message in hostile() {
        socket.send(&message).unwrap();
    }
    socket.send(&bytes(0.0, -7.0)).unwrap();
    socket.send(&bytes(-0.5, 0.25)).unwrap();
    let second = Vector3 { x: -0.5, ..first };
    assert_eq!(jobs.recv_timeout(TIMEOUT), Ok((second, second)), "nothing hostile released it");
    let mut last = bytes(0.0, 0.0);
    last[20..].copy_from_slice(&1.0_f64.to_le_bytes());
    socket.send(&last).unwrap();
    jobs.recv_timeout(TIMEOUT).expect("it comes");
}

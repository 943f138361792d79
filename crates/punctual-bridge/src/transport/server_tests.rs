use std::os::fd::AsFd;
use std::sync::mpsc::channel;
use std::thread;

use punctual_process::child::{BoundedCommand, TEST_LIMIT};

use super::super::layout::seat;
use super::super::memory::Access;
use super::super::{AttachError, Attachment, Direction};
use super::*;
use crate::Incoming;
use crate::message::Encoder;
use crate::messages::Vector3;
use crate::peer::tests::{again, as_another_user, is_child};

/// Longer than any machine takes.
const TIMEOUT: Duration = Duration::from_secs(60);
const ZERO: Vector3 = Vector3 { x: 0.0, y: 0.0, z: 0.0 };

/// Returns an outgoing topic `/angles` of this capacity.
fn angles(capacity: usize) -> Channel {
    let description = Vector3::DESCRIPTION;
    Channel { topic: "/angles", hz: None, capacity, qos: Qos::DEFAULT, description, is_input: false }
}

fn bytes(x: f64) -> Vec<u8> {
    Encoder::default().encode(0, &Vector3 { x, ..ZERO }).to_vec()
}

/// Publishes `count` messages, whose sequence numbers start at `first`.
fn publish(server: &mut Server, first: u32, count: u32) {
    for sequence in first..first + count {
        server.publish(0, u64::from(sequence), sequence, &bytes(f64::from(sequence)));
    }
}

/// Attaches a transport, while the server runs.
fn attach(server: &mut Server, app: &'static str, name: &'static str) -> Result<Attachment, AttachError> {
    let (done, is_done) = channel();
    thread::spawn(move || done.send(Attachment::open(app, name)));
    run_until(server, |_| is_done.try_recv().ok())
}

/// Runs the server until `done` returns a result.
fn run_until<T>(server: &mut Server, mut done: impl FnMut(&Server) -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        server.supervise(Instant::now());
        if let Some(result) = done(server) {
            return result;
        }
        assert!(begun.elapsed() < TIMEOUT, "the expected event does not occur");
        thread::yield_now();
    }
}

/// Runs the server until the transports that were dropped have detached.
fn detach(server: &mut Server, left: usize) {
    run_until(server, |server| (server.seats.len() <= left).then_some(()));
}

fn numbers(attachment: &mut Attachment) -> Vec<u32> {
    let mut numbers = vec![];
    attachment.read(|topic, message| {
        assert_eq!((topic.name.as_str(), message.payload), ("/angles", &*bytes(f64::from(message.sequence))));
        assert_eq!(message.released_ns, u64::from(message.sequence));
        numbers.push(message.sequence);
    });
    numbers
}

#[test]
fn a_transport_discovers_and_reads_topics() {
    static WANTED: Incoming<Vector3> = Incoming::new("/wanted", ZERO);
    let server = TransportServer::new("unit-reads").subscribe(WANTED.subscribe().unwrap());
    let mut server = server.start(&[angles(16)]).unwrap();
    publish(&mut server, 0, 3);
    let mut transport = attach(&mut server, "unit-reads", "reader").unwrap();
    assert_eq!(transport.process(), std::process::id());
    let topics: Vec<_> = transport.topics().iter().map(|topic| (&*topic.name, topic.direction)).collect();
    assert_eq!(topics, [("/angles", Direction::Outgoing), ("/wanted", Direction::Incoming)]);
    let topic = &transport.topics()[0];
    assert_eq!((topic.type_name.as_str(), topic.max_bytes), ("geometry_msgs/msg/Vector3", 28));
    assert_eq!(topic.definition, "float64 x\nfloat64 y\nfloat64 z\n");
    assert_eq!(numbers(&mut transport), [], "it starts with the next message");
    publish(&mut server, 3, 4);
    server.end_round(1_000_000);
    assert!(transport.wait(Duration::from_secs(600)), "the bell has rung");
    let mut times = vec![];
    transport.read(|_, message| times.push((message.sequence, message.time_ns)));
    assert_eq!(times, [(3, 1_000_003), (4, 1_000_004), (5, 1_000_005), (6, 1_000_006)]);

    publish(&mut server, 7, 1_000);
    let taken = numbers(&mut transport).len() as u64;
    server.supervise(Instant::now());
    let report = server.seats[0].report(&server.rings);
    assert_eq!((report.taken, report.lost), (4 + taken, 1_000 - taken), "every message is counted");
    assert_eq!(transport.lost(0), report.lost);
    assert!(!transport.has_ended());
    let reports = server.finish();
    assert_eq!((reports.len(), reports[0].name.as_str(), reports[0].attached), (1, "reader", 1));
    assert!(transport.has_ended() && !transport.wait(Duration::from_secs(600)));
}

#[test]
fn messages_of_a_transport_are_checked_and_counted() {
    static WANTED: Incoming<Vector3> = Incoming::new("/wanted", ZERO);
    let near = |wanted: &Vector3| if wanted.x <= 1.0 { Ok(()) } else { Err("too far".to_owned()) };
    let server = TransportServer::new("unit-sends").subscribe(WANTED.subscribe().unwrap().check(near));
    let mut server = server.start(&[]).unwrap();
    let mut wanted = WANTED.reader().unwrap();
    let mut transport = attach(&mut server, "unit-sends", "sender").unwrap();
    assert!(transport.publisher("/angles").is_none());
    let mut publisher = transport.publisher("/wanted").unwrap();
    assert!(transport.publisher("/wanted").is_none(), "there is one publisher");
    publisher.publish(&bytes(0.5)).unwrap();
    publisher.publish(&bytes(2.0)).unwrap();
    publisher.publish(&bytes(f64::NAN)).unwrap();
    publisher.publish(&[]).unwrap();
    publisher.publish(&[0; 29]).unwrap_err();
    server.end_round(0);
    assert_eq!(wanted.read().message.x, 0.5);
    let report = server.seats[0].report(&server.rings);
    assert_eq!((report.accepted, report.rejected, report.incoming_lost), (1, 3, 0));

    // In the layout of ROS 1, without the header of CDR.
    transport.publish_packed();
    publisher.publish(&[0.25_f64, 0.0, 0.0].map(f64::to_le_bytes).concat()).unwrap();
    server.end_round(0);
    assert_eq!(wanted.read().message.x, 0.25);

    // A flood: one round takes at most the messages that the ring holds.
    let packed = [0.75_f64, 0.0, 0.0].map(f64::to_le_bytes).concat();
    (0..1_000).for_each(|_| publisher.publish(&packed).unwrap());
    server.end_round(0);
    let report = server.seats[0].report(&server.rings);
    assert!(report.accepted <= 2 + 64, "{report:?}");
    assert_eq!(report.accepted + report.incoming_lost, 2 + 1_000, "every message is counted");
    assert_eq!(wanted.read().message.x, 0.75);

    // The last messages of a transport that ends.
    (0..9).for_each(|_| publisher.publish(&packed).unwrap());
    drop((publisher, transport));
    detach(&mut server, 0);
    let report = &server.finish()[0];
    assert_eq!(report.accepted + report.incoming_lost, 2 + 1_000 + 9);
}

#[test]
fn a_successor_continues_with_the_unread_messages() {
    let mut server = TransportServer::new("unit-continues").start(&[angles(64)]).unwrap();
    let mut first = attach(&mut server, "unit-continues", "ros").unwrap();
    publish(&mut server, 0, 5);
    assert_eq!(numbers(&mut first), [0, 1, 2, 3, 4]);
    publish(&mut server, 5, 5);
    // As if it were killed: the kernel closes its socket.
    drop(first);
    detach(&mut server, 0);
    publish(&mut server, 10, 5);
    let mut other = attach(&mut server, "unit-continues", "zenoh").unwrap();
    assert_eq!(numbers(&mut other), [], "another transport starts with the next message");
    let mut second = attach(&mut server, "unit-continues", "ros").unwrap();
    assert_eq!(numbers(&mut second), (5..15).collect::<Vec<_>>());
    let reports = server.finish();
    let ros = reports.iter().find(|report| report.name == "ros").unwrap();
    assert_eq!((ros.attached, ros.taken, ros.lost), (2, 15, 0));
}

#[test]
fn losses_before_and_after_a_death_are_counted_once() {
    let mut server = TransportServer::new("unit-dies").start(&[angles(64)]).unwrap();
    let first = attach(&mut server, "unit-dies", "ros").unwrap();
    publish(&mut server, 0, 1_000);
    // It dies without having read anything.
    drop(first);
    detach(&mut server, 0);
    publish(&mut server, 1_000, 1_000);
    let mut second = attach(&mut server, "unit-dies", "ros").unwrap();
    let taken = numbers(&mut second).len() as u64;
    let ros = &server.finish()[0];
    assert_eq!((ros.taken, ros.taken + ros.lost), (taken, 2_000));
}

#[test]
fn dropped_messages_are_counted_as_lost() {
    let mut server = TransportServer::new("unit-drops").start(&[angles(64)]).unwrap();
    let mut transport = attach(&mut server, "unit-drops", "ros").unwrap();
    publish(&mut server, 0, 10);
    assert_eq!(numbers(&mut transport).len(), 10);
    transport.count_dropped(0, 3);
    // A topic that does not exist.
    transport.count_dropped(1, 1);
    assert_eq!(transport.lost(0), 3);
    let report = server.seats[0].report(&server.rings);
    assert_eq!((report.taken, report.lost), (7, 3));
    // More than it has taken.
    transport.count_dropped(0, u64::MAX);
    assert_eq!(server.seats[0].report(&server.rings).lost, 10);
}

#[test]
fn refuses_transports_without_a_seat_or_with_a_name_in_use() {
    let server = TransportServer::new("unit-seats").max_seats(2);
    let mut server = server.start(&[angles(16)]).unwrap();
    let first = attach(&mut server, "unit-seats", "a").unwrap();
    let error = attach(&mut server, "unit-seats", "a").unwrap_err();
    assert_eq!(error.to_string(), "the app refuses the transport: a transport named a is attached");
    let _second = attach(&mut server, "unit-seats", "b").unwrap();
    let error = attach(&mut server, "unit-seats", "c").unwrap_err();
    assert_eq!(error.to_string(), "the app refuses the transport: all 2 seats are taken");
    assert_eq!(server.refused.count, 2);
    drop(first);
    detach(&mut server, 1);
    attach(&mut server, "unit-seats", "c").unwrap();
    assert!(matches!(Attachment::open("unit-none", "a").unwrap_err(), AttachError::NoApp(_)));
    assert!(matches!(Attachment::open("unit-seats", "a b").unwrap_err(), AttachError::Name(_)));
}

#[test]
fn the_number_of_remembered_names_is_bounded() {
    let mut server = TransportServer::new("unit-names").max_seats(1).start(&[]).unwrap();
    let _attached = attach(&mut server, "unit-names", "attached").unwrap();
    for number in 0..1_000 {
        server.remember(&format!("transport-{number}"));
    }
    assert_eq!(server.names.len(), MAX_NAMES + 1);
    let report = &server.finish()[0];
    assert_eq!((report.name.as_str(), report.attached), ("attached", 1), "it is not forgotten");
}

#[test]
fn transports_of_other_users_are_closed() {
    let mut server = TransportServer::new("unit-users").start(&[]).unwrap();
    let name = server.listener.socket.local_addr().unwrap();
    let connect = move || UnixStream::connect_addr(&name).unwrap();
    let test = "transport::server::tests::transports_of_other_users_are_closed";
    let Some(theirs) = as_another_user(test, connect) else { return };
    server.supervise(Instant::now());
    assert_eq!((server.pending.len(), server.refused.count), (0, 1));
    assert!(socket::has_ended(&theirs));
}

#[test]
fn connections_without_a_greeting_are_closed() {
    let mut server = TransportServer::new("unit-greeting").start(&[]).unwrap();
    let name = server.listener.socket.local_addr().unwrap();
    let connect = || UnixStream::connect_addr(&name).unwrap();
    let silent: Vec<_> = (0..20).map(|_| connect()).collect();
    let now = Instant::now();
    server.supervise(now);
    assert_eq!((server.pending.len(), server.refused.count), (MAX_PENDING, 0));
    let later = now + GREETING_TIMEOUT + Duration::from_millis(1);
    server.supervise(later);
    assert_eq!(server.refused.count, MAX_PENDING as u64);
    drop(silent);
    let talking = connect();
    io::Write::write_all(&mut &talking, b"GET / HTTP/1.1\r\n\r\n").unwrap();
    run_until(&mut server, |server| (server.refused.count > MAX_PENDING as u64).then_some(()));
    assert!(server.pending.is_empty(), "a process that looks for another app is not refused");
}

#[test]
fn a_stopped_transport_is_reported_until_it_continues() {
    let mut server = TransportServer::new("unit-stops").start(&[angles(16)]).unwrap();
    let mut transport = attach(&mut server, "unit-stops", "slow").unwrap();
    transport.beat();
    let now = Instant::now();
    server.supervise(now);
    server.supervise(now + Duration::from_millis(499));
    assert!(server.seats[0].silent_since.is_none());
    publish(&mut server, 0, 1_000);
    server.supervise(now + Duration::from_millis(500));
    assert!(server.seats[0].silent_since.is_some());
    let report = server.seats[0].report(&server.rings);
    let capacity = server.topics[0].capacity as u64;
    assert_eq!(
        (report.taken, report.lost),
        (0, 1_000 - (capacity - 1)),
        "losses are counted during the stop"
    );
    let taken = numbers(&mut transport).len() as u64;
    server.supervise(now + Duration::from_millis(600));
    assert!(server.seats[0].silent_since.is_none());
    let report = server.seats[0].report(&server.rings);
    assert_eq!(report.taken, taken);
    assert_eq!(report.taken + report.lost, 1_000);
}

#[test]
fn warns_once_about_a_stopped_transport() {
    if is_child() {
        let mut server = TransportServer::new("unit-warns").start(&[]).unwrap();
        let transport = attach(&mut server, "unit-warns", "slow").unwrap();
        transport.beat();
        let now = Instant::now();
        for ms in [0, 500, 510, 520] {
            server.supervise(now + Duration::from_millis(ms));
        }
        assert!(server.seats[0].silent_since.is_some());
        return;
    }
    let test = "transport::server::tests::warns_once_about_a_stopped_transport";
    let output = again(test).output_within(TEST_LIMIT).unwrap();
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{warnings}");
    assert_eq!(warnings.matches("has not responded").count(), 1, "{warnings}");
}

#[test]
fn a_transport_that_talks_after_its_greeting_is_detached() {
    let mut server = TransportServer::new("unit-talks").start(&[]).unwrap();
    let transport = attach(&mut server, "unit-talks", "chatty").unwrap();
    transport.send_raw(b"hello");
    detach(&mut server, 0);
}

#[test]
fn hostile_seats_affect_neither_the_app_nor_other_transports() {
    static WANTED: Incoming<Vector3> = Incoming::new("/wanted", ZERO);
    let server = TransportServer::new("unit-hostile").subscribe(WANTED.subscribe().unwrap());
    let mut server = server.start(&[angles(64)]).unwrap();
    let hostile = attach(&mut server, "unit-hostile", "hostile").unwrap();
    let mut honest = attach(&mut server, "unit-hostile", "honest").unwrap();
    let words = hostile.seat_words();
    let mut random = 7_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random.rotate_left(23)
    };
    for round in 0..300 {
        for word in words {
            let value = next() >> (next() % 64);
            word.store(if round % 2 == 0 { value } else { !value }, Ordering::Relaxed);
        }
        publish(&mut server, round, 1);
        server.end_round(0);
        server.supervise(Instant::now() + Duration::from_secs(u64::from(round)));
        assert_eq!(numbers(&mut honest), [round]);
        let report = server.seats[0].report(&server.rings);
        assert!(report.taken + report.lost <= u64::from(round) + 1, "claims are limited: {report:?}");
    }
    // Every position: the successor starts somewhere inside of the ring, or at its end.
    let capacity = server.topics[0].capacity as u64;
    for position in [0, 1, 299, 300, 301, u64::MAX, u64::MAX / 2] {
        words[seat::COUNTS].store(position, Ordering::Relaxed);
        let _ = server.seats[0].report(&server.rings);
        let behind = 300_u64.wrapping_sub(server.seats[0].positions(&server.rings)[0]);
        assert!(behind < capacity || behind > u64::MAX / 2, "{position}");
    }
    words[seat::COUNTS].store(u64::MAX / 3, Ordering::Relaxed);
    drop(hostile);
    detach(&mut server, 1);
    let mut successor = attach(&mut server, "unit-hostile", "hostile").unwrap();
    publish(&mut server, 300, 1);
    assert_eq!(numbers(&mut successor), [300]);
    let reports = server.finish();
    let honest = reports.iter().find(|report| report.name == "honest").unwrap();
    assert_eq!((honest.taken, honest.lost, honest.rejected), (300, 0, 0));
}

#[test]
fn the_topics_file_cannot_be_changed_by_a_transport() {
    let server = TransportServer::new("unit-sealed").start(&[angles(16)]).unwrap();
    Mapping::new(server.file.as_fd(), 4096, Access::ReadWrite).unwrap_err();
    rustix::io::pwrite(&server.file, &[1], 0).unwrap_err();
    Mapping::new(server.file.as_fd(), 4096, Access::Read).unwrap();
}

#[test]
fn takes_the_last_messages_of_a_transport_at_the_end() {
    static WANTED: Incoming<Vector3> = Incoming::new("/wanted", ZERO);
    let server = TransportServer::new("unit-last").subscribe(WANTED.subscribe().unwrap());
    let mut server = server.start(&[]).unwrap();
    let mut transport = attach(&mut server, "unit-last", "sender").unwrap();
    transport.publisher("/wanted").unwrap().publish(&bytes(0.5)).unwrap();
    assert_eq!(server.finish()[0].accepted, 1);
    assert_eq!(WANTED.reader().unwrap().read().message.x, 0.5);
}

#[test]
fn rejects_a_name_that_two_apps_have() {
    let servers = [(); 2].map(|()| TransportServer::new("unit-twice").start(&[]).unwrap());
    let error = Attachment::open("unit-twice", "reader").unwrap_err();
    assert!(matches!(&error, AttachError::Several { found, .. } if found.len() == servers.len()), "{error}");
}

#[test]
fn listens_at_a_path_and_replaces_the_socket_of_a_killed_app() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("topics");
    let start = || TransportServer::new("unit-path").path(&path).start(&[angles(16)]);
    let server = start().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    assert!(start().err().unwrap().to_string().contains("topics"), "another app listens there");
    drop(server);
    assert!(!path.exists());
    // As a killed app leaves it.
    drop(UnixListener::bind(&path).unwrap());
    let mut server = start().unwrap();
    let text: &'static str = Box::leak(path.to_str().unwrap().to_owned().into_boxed_str());
    attach(&mut server, text, "reader").unwrap();
    drop(server);
    fs::write(&path, "a file").unwrap();
    assert!(start().is_err(), "other files are not replaced");
}

#[test]
fn removes_only_its_own_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("topics");
    let start = || TransportServer::new("unit-removed").path(&path).start(&[angles(16)]).unwrap();
    let first = start();
    fs::remove_file(&path).unwrap();
    let second = start();
    drop(first);
    UnixStream::connect(&path).unwrap();
    drop(second);
    assert!(!path.exists());
}

#[test]
fn changes_no_file_that_has_replaced_its_socket() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let mode = |name: &str| fs::metadata(place(name)).unwrap().permissions().mode() & 0o777;
    fs::write(place("victim"), "a secret").unwrap();
    fs::set_permissions(place("victim"), fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("victim", place("link")).unwrap();
    let _socket = UnixListener::bind(place("socket")).unwrap();
    std::os::unix::fs::symlink("socket", place("link to socket")).unwrap();
    fs::set_permissions(place("socket"), fs::Permissions::from_mode(0o600)).unwrap();
    for replaced in ["victim", "link", "link to socket"] {
        assert!(admit_group(&place(replaced)).is_err(), "{replaced}");
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(place("socket"), Some(65534), None).unwrap();
        assert!(admit_group(&place("socket")).is_err(), "it belongs to the attacker");
        std::os::unix::fs::chown(place("socket"), Some(0), None).unwrap();
    }
    assert_eq!((mode("victim"), mode("socket")), (0o600, 0o600));
    admit_group(&place("socket")).unwrap();
    assert_eq!(mode("socket"), 0o660);
}

#[test]
fn rejects_invalid_names() {
    for name in ["", "7", "a/b", "a b"] {
        let error = TransportServer::new(name).start(&[]).err().unwrap();
        assert!(error.to_string().contains("is not a valid app name"), "{error}");
    }
}

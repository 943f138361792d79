//! Clients that are slow or silent, too many clients, and clients that send too much.

use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::thread;

use rustix::net::sockopt::set_socket_send_buffer_size;

use super::super::protocol::MARK;
use super::super::tests::Gains;
use super::super::{Tunable, Tuning, TuningServer};
use super::*;

fn server(tunable: &'static Tunable<Gains>) -> TuningServer<Gains> {
    Tuning::new(tunable).start("unit-connections").expect("it can start")
}

/// Returns the two ends of a connection: the client's and the server's.
fn pair(now: Instant, server: &TuningServer<Gains>) -> (UnixStream, Connection) {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let connection = Connection::new(far, now, TIMEOUT, server.store()).expect("it is of this user");
    (near, connection)
}

#[test]
fn drops_late_request() {
    static GAINS: Tunable<Gains> = Tunable::new();
    let (server, now) = (server(&GAINS), Instant::now());
    let (mut near, mut connection) = pair(now, &server);
    for byte in MARK.bytes() {
        near.write_all(&[byte]).unwrap();
        assert!(connection.advance(now, server.store()));
    }
    assert!(connection.advance(now + TIMEOUT - Duration::from_nanos(1), server.store()));
    assert_eq!(server.report().malformed, 0);
    assert!(!connection.advance(now + TIMEOUT, server.store()));
    assert_eq!(server.report().malformed, 1);
}

#[test]
fn drops_client_that_does_not_read_answer_in_time() {
    static GAINS: Tunable<Gains> = Tunable::new();
    let (server, now) = (server(&GAINS), Instant::now());
    let (mut near, mut connection) = pair(now, &server);
    set_socket_send_buffer_size(&connection.stream, 1).unwrap();
    // Rejected with more reasons than the socket buffer holds.
    let names: String = (0..1000).map(|name| format!("unknown{name}=1\n")).collect();
    near.write_all(format!("{MARK}\nset\n{names}").as_bytes()).unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let late = now + TIMEOUT / 2;
    assert!(connection.advance(late, server.store()), "the answer is not read");
    assert!(connection.advance(late + TIMEOUT - Duration::from_nanos(1), server.store()));
    assert!(!connection.advance(late + TIMEOUT, server.store()));
    assert_eq!((server.report().refused, server.report().malformed), (1, 0));
}

#[test]
fn sends_a_long_answer_in_parts() {
    let (mut near, mut far) = UnixStream::pair().unwrap();
    far.set_nonblocking(true).unwrap();
    set_socket_send_buffer_size(&far, 1).unwrap();
    let answer: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    let (mut sent, mut received, mut part) = (0, vec![], [0; 1000]);
    while send(&mut far, &answer, &mut sent) {
        let length = near.read(&mut part).unwrap();
        received.extend_from_slice(&part[..length]);
        assert!(answer.starts_with(&received), "a part was sent twice");
    }
    drop(far);
    near.read_to_end(&mut received).unwrap();
    assert!(received == answer, "{} of {} bytes, or others", received.len(), answer.len());
}

#[test]
fn drops_overlong_request() {
    static GAINS: Tunable<Gains> = Tunable::new();
    let (server, now) = (server(&GAINS), Instant::now());
    let (mut near, mut connection) = pair(now, &server);
    let mut sent = 0;
    loop {
        sent += near.write(&[b'a'; 4096]).unwrap_or(0);
        if !connection.advance(now, server.store()) {
            break;
        }
        assert!(sent <= 2 * MAX_BYTES, "it has no limit");
    }
    assert!(sent > MAX_BYTES);
    assert_eq!(server.report().malformed, 1);
}

#[test]
fn answers_despite_silent_connections() {
    static GAINS: Tunable<Gains> = Tunable::new();
    let server = server(&GAINS);
    let name = format!("punctual-unit-silent/{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    listener.set_nonblocking(true).unwrap();
    let (stop, stops) = UnixStream::pair().unwrap();
    let hour = Duration::from_secs(3600);
    thread::scope(|scope| {
        // No timeout expires during the test.
        scope.spawn(|| serve(&listener, &stops, hour, server.store()));
        let connect = || UnixStream::connect_addr(&address).unwrap();
        let silent: Vec<_> = (0..2 * MAX_CONNECTIONS).map(|_| connect()).collect();
        let mut client = connect();
        client.set_read_timeout(Some(hour / 12)).unwrap();
        client.write_all(format!("{MARK}\nget\n").as_bytes()).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it is answered");
        assert!(answer.starts_with(&format!("{MARK}\nlisted\npan.kp\t")), "{answer}");
        // The oldest were closed to make room, and count as requests that did not arrive.
        let is_closed = |mut stream: &UnixStream| {
            stream.set_nonblocking(true).unwrap();
            matches!(stream.read(&mut [0]), Ok(0))
        };
        assert!(silent[..=MAX_CONNECTIONS].iter().all(is_closed));
        assert!(!silent[MAX_CONNECTIONS + 1..].iter().any(is_closed));
        assert_eq!(server.report().malformed, MAX_CONNECTIONS as u64 + 1);
        drop(stop);
    });
}

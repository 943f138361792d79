//! Requests, valid and corrupted, without a thread.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use punctual::Instant as Released;

use super::super::connections::Connection;
use super::super::protocol::{MAX_BYTES, Request, receive};
use super::super::tests::Gains;
use super::super::{Parameters, Tunable, TunableReader, Tuning};
use super::*;
use crate::peer::tests::as_another_user;

/// A server whose thread is not used: the tests access its store.
struct Served {
    server: TuningServer<Gains>,
    reader: TunableReader<Gains>,
}

impl Served {
    fn new(tunable: &'static Tunable<Gains>) -> Self {
        let reader = tunable.reader().expect("the reader is free");
        let server = Tuning::new(tunable).check(|gains| match gains.pan.kp {
            7.0 => Err("seven is refused".into()),
            8.0 => panic!("an error in the app"),
            _ => Ok(()),
        });
        Self { server: server.start("unit-test").expect("it can start"), reader }
    }

    /// Returns the answer to these bytes.
    fn ask(&self, bytes: &[u8]) -> String {
        let (mut near, far) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            // Bytes in excess of the socket buffer are sent while they are received.
            scope.spawn(|| {
                (&near).write_all(bytes).unwrap();
                near.shutdown(Shutdown::Write).unwrap();
            });
            self.serve(far);
        });
        let mut answer = String::new();
        near.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Serves a connection until its end.
    fn serve(&self, stream: UnixStream) {
        let (now, end) = (Instant::now(), patiently());
        let Some(mut connection) = Connection::new(stream, now, TIMEOUT, &self.server.store) else { return };
        while connection.advance(now, &self.server.store) {
            assert!(Instant::now() < end, "the request has no end");
            std::thread::yield_now();
        }
    }

    fn kp(&mut self) -> f64 {
        self.reader.read().value.pan.kp
    }
}

/// A deadline that is sufficient on a busy machine.
fn patiently() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

/// Without the connections of other users, who may connect at any time.
fn counts(server: &TuningServer<Gains>) -> TuningReport {
    TuningReport { strangers: 0, ..server.report() }
}

fn set(assignments: &[(&str, &str)]) -> String {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    Request::Set(assignments.iter().map(owned).collect()).text()
}

#[test]
fn applies_valid_requests_and_rejects_invalid_ones_whole() {
    static GAINS: Tunable<Gains> = Tunable::new();
    let mut served = Served::new(&GAINS);
    assert!(served.reader.read().is_new && served.kp() == 1.25, "the values of the start");
    let granted = served.ask(set(&[("pan.kp", "2.5"), ("on", "true")]).as_bytes());
    assert_eq!(granted, "punctual-parameters/1\nchanged\npan.kp\t1.25\t2.5\non\tfalse\ttrue\n");
    assert_eq!(served.kp(), 2.5);
    let refused = served.ask(set(&[("pan.kp", "3.5"), ("gain", "NaN")]).as_bytes());
    assert!(
        refused.starts_with("punctual-parameters/1\nrefused\ngain: \"NaN\" is not a number"),
        "{refused}"
    );
    for (kp, why) in [("7", "seven is refused"), ("8", "the app's check panicked")] {
        let refused = served.ask(set(&[("pan.kp", kp)]).as_bytes());
        assert_eq!(refused, format!("punctual-parameters/1\nrefused\n{why}\n"));
    }
    assert_eq!(served.kp(), 2.5, "they keep what they had");
    let again = served.ask(set(&[("on", "true")]).as_bytes());
    assert_eq!(again, "punctual-parameters/1\nchanged\n");
    assert!(!served.reader.read().is_new, "values that stay as they are are not new");
    let report = served.server.report();
    assert_eq!((report.accepted, report.refused, report.malformed), (2, 3, 0));
}

#[test]
fn counts_invalid_requests_and_keeps_values() {
    static GAINS: Tunable<Gains> = Tunable::new();
    let mut served = Served::new(&GAINS);
    let good = set(&[("pan.kp", "2.5")]);
    let mut expected = 0;
    // Each byte of a request corrupted, and each length of it.
    for index in 0..good.len() {
        let mut damaged = good.clone().into_bytes();
        damaged[index] ^= 0x80;
        let answer = served.ask(&damaged);
        assert!(answer.contains("refused\nmalformed request: not text"), "{answer}");
        expected += 1;
        if index > 0 {
            served.ask(&good.as_bytes()[..index]);
        }
    }
    assert_eq!(served.kp(), 1.25);
    let report = counts(&served.server);
    // A request that was truncated between two lines is valid and empty, or is malformed.
    assert_eq!(report.malformed + report.refused, expected + good.len() as u64 - 1);
    assert_eq!((report.refused, report.accepted), (1, 0));
    assert_eq!(served.ask(b""), "", "a mere connection is not counted");
    assert_eq!(counts(&served.server), report);
}

#[test]
fn truncates_endless_requests() {
    let (mut near, mut far) = UnixStream::pair().unwrap();
    near.write_all(b"punctual-parameters/1\n").unwrap();
    let kind = receive(&mut far, Instant::now()).unwrap_err().kind();
    assert_eq!(kind, io::ErrorKind::TimedOut, "its time is over before it begins");
    let flood = std::thread::spawn(move || near.write_all(&vec![b'a'; 2 * MAX_BYTES]).is_err());
    assert_eq!(receive(&mut far, patiently()).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    drop(far);
    assert!(flood.join().unwrap(), "nobody takes the rest");
}

#[test]
fn abandoned_request_changes_nothing() {
    static GAINS: Tunable<Gains> = Tunable::new();
    let mut served = Served::new(&GAINS);
    let (mut near, far) = UnixStream::pair().unwrap();
    near.write_all(set(&[("pan.kp", "2.5")]).as_bytes()).unwrap();
    drop(near);
    served.serve(far);
    assert_eq!((served.kp(), served.server.report().abandoned), (1.25, 1));
}

#[test]
fn another_user_is_not_even_read() {
    static GAINS: Tunable<Gains> = Tunable::new();
    let test = "parameters::server::tests::another_user_is_not_even_read";
    let theirs = as_another_user(test, || UnixStream::pair().unwrap());
    let Some((mut near, far)) = theirs else { return };
    let mut served = Served::new(&GAINS);
    near.write_all(set(&[("pan.kp", "2.5")]).as_bytes()).unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let before = served.server.report().strangers;
    served.serve(far);
    let mut bytes = Vec::new();
    // Closed without reading, which the kernel may report as a reset.
    let _ = near.read_to_end(&mut bytes);
    assert!(bytes.is_empty() && served.server.report().strangers > before);
    assert_eq!((served.kp(), counts(&served.server)), (1.25, TuningReport::default()));
}

#[test]
fn rejects_megabyte_of_assignments_in_linear_time() {
    use std::cell::Cell;

    thread_local!(static READS: Cell<usize> = const { Cell::new(0) });

    /// A name that counts its reads.
    struct Name(String);

    impl AsRef<str> for Name {
        fn as_ref(&self) -> &str {
            READS.set(READS.get() + 1);
            &self.0
        }
    }

    static GAINS: Tunable<Gains> = Tunable::new();
    let served = Served::new(&GAINS);
    let name = |number: usize| Name(format!("n{number}"));
    let assignments: Vec<(Name, &str)> = (0..MAX_BYTES / 10).map(|number| (name(number), "1")).collect();
    let refused = served.server.set(&assignments).unwrap_err();
    assert!(READS.get() <= 3 * assignments.len(), "{}", READS.get());
    assert_eq!(refused.0.len(), 101);
    assert!(refused.0[0].starts_with("there is no parameter n0; there are pan.kp, "), "{refused}");
    assert_eq!(refused.0[100], format!("{} more reasons", assignments.len() - 100));
    // Of a name, a value, a line or a verb of a megabyte only the beginning is returned.
    let long = "x".repeat(MAX_BYTES / 2);
    for request in [
        set(&[(&long, "1")]),
        set(&[("pan.kp", &long)]),
        set(&[("pan.kp", &"9".repeat(300))]),
        format!("punctual-parameters/1\nset\n{long}\n"),
        format!("punctual-parameters/1\n{long}\n"),
        format!("punctual-parameters/{long}\n"),
    ] {
        let answer = served.ask(request.as_bytes());
        assert!(answer.starts_with("punctual-parameters/1\nrefused\n"), "{answer}");
        assert!(answer.len() < 400 && answer.contains('…'), "{answer}");
    }
}

#[test]
fn rejects_invalid_assignments_without_locking_store() {
    /// A name that can be read only while the store is unlocked.
    struct Name<'a>(&'a Mutex<Store<Gains>>);

    impl AsRef<str> for Name<'_> {
        fn as_ref(&self) -> &str {
            assert!(self.0.try_lock().is_ok(), "the store is held");
            "unknown"
        }
    }

    static GAINS: Tunable<Gains> = Tunable::new();
    let served = Served::new(&GAINS);
    let refused = served.server.set(&[(Name(&served.server.store), "1")]).unwrap_err();
    assert!(refused.to_string().starts_with("there is no parameter unknown"), "{refused}");
    assert_eq!(served.server.report().refused, 1);
}

#[test]
fn second_file_keeps_values_of_the_first() {
    static GAINS: Tunable<Gains> = Tunable::new();
    let mut tuning = Tuning::new(&GAINS);
    let file = tempfile::NamedTempFile::new().unwrap();
    for text in ["pan.kp = 2.5\n", "on = true\n"] {
        std::fs::write(&file, text).unwrap();
        tuning = tuning.file(file.path()).unwrap();
    }
    let given = tuning.start("unit-test").unwrap().parameters();
    assert_eq!((given.pan.kp, given.on), (2.5, true));
}

#[test]
fn checks_initial_values() {
    static GAINS: Tunable<Gains> = Tunable::new();
    static TOPIC: crate::Topic<Gains, 4> = crate::Topic::new("/gains");
    for name in ["", "a b", "a/b", "12", "ä", &"x".repeat(crate::local::MAX_NAME + 1)] {
        assert!(matches!(Tuning::new(&GAINS).start(name), Err(StartError::Name(_))), "{name}");
    }
    let refusing = Tuning::new(&GAINS).check(|_| Err("never".into())).start("unit-test");
    assert_eq!(refusing.unwrap_err().to_string(), "the initial parameters: never");
    let mut publisher = TOPIC.publisher().unwrap();
    publisher.publish(Released::from_ticks(0), Gains::DEFAULT);
    let taken = Tuning::new(&GAINS).record(&TOPIC).start("unit-test");
    assert!(matches!(taken, Err(StartError::TopicTaken)));
    drop(publisher);
    let first = Tuning::new(&GAINS).record(&TOPIC).start("unit-test").expect("a failed start takes nothing");
    assert!(matches!(Tuning::new(&GAINS).start("unit-test"), Err(StartError::Taken)));
    assert_eq!(counts(&first), TuningReport::default());
    first.finish();
    Tuning::new(&GAINS).start("unit-test").expect("it is free again");
}

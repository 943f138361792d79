//! Parameters end to end: found, read and changed over the socket, seen by readers, recorded.

#[path = "support/counted.rs"]
mod counted;
#[path = "../examples/tuning.rs"]
mod tuning;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use counted::{calls, counted};
use mcap::MessageStream;
use punctual_bridge::parameters::{FileError, Remote, Remotes, RequestError, list};
use punctual_bridge::{Bridge, Parameters, Recording, Topic, Tunable, Tuning};
use tempfile::NamedTempFile;

#[derive(Debug, Clone, Copy, PartialEq, Parameters)]
#[message(name = "demo_msgs/msg/Limits")]
struct Limits {
    #[parameter(default = 1.0, range = -10.0..=10.0, unit = "rad")]
    low: f64,
    #[parameter(default = 2.0, range = -10.0..=10.0, unit = "rad")]
    high: f64,
}

/// Returns a name that is unique to this run of the tests.
fn name(of: &str) -> String {
    format!("{of}.{}", std::process::id())
}

/// Creates a file with this text.
fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("there is room for a file");
    file.write_all(text.as_bytes()).expect("there is room for it");
    file
}

fn remote(name: &str) -> Remote {
    Remotes::running().expect("the kernel tells").named(name).expect("it is there").clone()
}

#[test]
fn example_prints_its_expected_output() {
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let out = Shared::default();
    tuning::tune(Box::new(out.clone())).expect("it can start");
    let out = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
    assert_eq!(out, include_str!("../examples/expected/tuning.txt"));
}

#[test]
fn is_changed_from_outside_and_recorded() {
    static LIMITS: Tunable<Limits, 2> = Tunable::new();
    static CHANGES: Topic<Limits, 16> = Topic::new("/limits");
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run.mcap");
    let file = file("low = 0.5 # rad\n");
    let bridge = Bridge::new().topic(&CHANGES).sink(Recording::create(&path).unwrap()).start().unwrap();
    let name = name("whole");
    let tuning = Tuning::new(&LIMITS).file(file.path()).unwrap().record(&CHANGES);
    let ordered = |limits: &Limits| match limits.low < limits.high {
        true => Ok(()),
        false => Err("low has to be below high".to_owned()),
    };
    let server = tuning.check(ordered).start(&name).expect("it can start");
    let mut readers = [LIMITS.reader().unwrap(), LIMITS.reader().unwrap()];
    LIMITS.reader().expect_err("there are two");

    let remote = remote(&name);
    assert_eq!(remote.process(), std::process::id());
    assert_eq!(remote.list().unwrap(), list(&Limits { low: 0.5, high: 2.0 }));
    let changes = remote.set(&[("high", "9.5"), ("low", "9")]).unwrap();
    assert_eq!(changes.len(), 2);
    for wrong in [("low", "9.75"), ("low", "11"), ("low", "nan"), ("lower", "1")] {
        let refused = remote.set(&[("high", "9.25"), wrong]).unwrap_err();
        assert!(matches!(refused, RequestError::Refused(_)), "{refused}");
    }
    for reader in &mut readers {
        assert_eq!(reader.read().value, Limits { low: 9.0, high: 9.5 });
    }
    assert_eq!(server.parameters(), Limits { low: 9.0, high: 9.5 });
    let report = server.finish();
    assert_eq!((report.accepted, report.refused, report.malformed), (1, 4, 0));
    assert!(matches!(remote.list(), Err(RequestError::Gone(_))));
    assert!(matches!(
        Remotes::running().unwrap().named(&name),
        Err(RequestError::Unknown { .. } | RequestError::NoApp(_))
    ));

    assert!(bridge.finish().is_complete());
    let bytes = std::fs::read(&path).unwrap();
    let messages: Vec<_> = MessageStream::new(&bytes).unwrap().map(Result::unwrap).collect();
    let number = |bytes: &[u8], at: usize| f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let recorded: Vec<_> = messages.iter().map(|it| (number(&it.data, 4), number(&it.data, 12))).collect();
    assert_eq!(recorded, [(0.5, 2.0), (9.0, 9.5)], "the recording has no refused values");
    let schema = messages[0].channel.schema.as_ref().expect("it has a schema");
    let definition = "float64 low  # rad\nfloat64 high  # rad\n";
    assert_eq!(
        (schema.name.as_str(), str::from_utf8(&schema.data)),
        ("demo_msgs/msg/Limits", Ok(definition))
    );
}

#[test]
fn distinguishes_apps_of_one_name_by_process() {
    static ONE: Tunable<Limits> = Tunable::new();
    static TWO: Tunable<Limits> = Tunable::new();
    let name = name("twice");
    let _one = Tuning::new(&ONE).start(&name).expect("it can start");
    let _two = Tuning::new(&TWO).start(&name).expect("it can start as well");
    let error = Remotes::running().unwrap().named(&name).unwrap_err();
    assert!(matches!(&error, RequestError::Several { found, .. } if found.len() == 2), "{error}");
}

#[test]
fn rejects_whole_file_for_one_error() {
    static LIMITS: Tunable<Limits> = Tunable::new();
    for (text, why) in [
        ("low = 0.5\nhigh = 10.5\n", "high: 10.5 rad is out of range"),
        ("high = nan\n", "high: \"NaN\" is not a number"),
        ("[limit]\nhigh = 1\n", "there is no parameter limit.high; there are low, high"),
        ("high = \"1\"\n", "high is of type string"),
    ] {
        let file = file(text);
        let error = Tuning::new(&LIMITS).file(file.path()).unwrap_err();
        assert!(matches!(error, FileError::Refused { .. }), "{error}");
        let error = error.to_string();
        assert!(error.starts_with(&format!("{}: ", file.path().display())) && error.contains(why), "{error}");
    }
    let empty = file("# nothing\n");
    let _ = Tuning::new(&LIMITS).file(empty.path()).expect("the defaults are right");
}

#[test]
fn reading_does_not_allocate_during_changes() {
    static LIMITS: Tunable<Limits> = Tunable::new();
    let server = Tuning::new(&LIMITS).start(&name("reading")).expect("it can start");
    let mut reader = LIMITS.reader().unwrap();
    let setting = std::thread::spawn(move || {
        for number in 0..1000 {
            let (low, high) = (f64::from(number) / 128.0, f64::from(number) / 128.0 + 1.0);
            server.set(&[("low", low.to_string()), ("high", high.to_string())]).expect("it is in range");
        }
    });
    loop {
        let ended = setting.is_finished();
        let limits = counted(|| reader.read().value);
        assert_eq!(limits.high - limits.low, 1.0, "both are of one change");
        if ended {
            assert_eq!(limits.low, 999.0 / 128.0, "the last one is there");
            break;
        }
    }
    setting.join().unwrap();
    assert_eq!(calls(), 0);
    counted(|| drop(Box::new(1)));
    assert!(calls() > 0, "allocations are counted");
}

//! Recordings: their content, the number of files, and the remainder after the program is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs};

use mcap::read::Options;
use mcap::{MessageStream, Summary};
use punctual::Instant;
use punctual_bridge::{Bridge, Message, ReadError, Recording, Topic, recover};
use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use tempfile::TempDir;
use test_skip::{Need, skip};

#[path = "../../examples/recording.rs"]
mod recording;

#[derive(Clone, Copy, Message)]
struct Number {
    number: u64,
}

/// Stores written data.
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

/// A process that is killed.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.end_at_once();
    }
}

/// Returns the numbers of the messages in a file, complete or not.
fn numbers(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).expect("it is there");
    let stream =
        MessageStream::new_with_options(&bytes, Options::IgnoreEndMagic.into()).expect("it begins well");
    // A truncated record is an error, and comes last.
    let messages = stream.map_while(Result::ok);
    messages.map(|message| u64::from_le_bytes(message.data[4..12].try_into().unwrap())).collect()
}

#[test]
fn records_messages_of_the_example() {
    let place = tempfile::tempdir().expect("there is room for a directory");
    let (path, table) = (place.path().join("run.mcap"), Shared::default());
    let report = recording::record(&path, Box::new(table.clone())).expect("there is room for it");
    assert!(report.is_complete(), "{report}");
    assert_eq!(report.sinks.iter().map(|sink| sink.written).collect::<Vec<_>>(), [40, 20]);
    let table = String::from_utf8(table.0.lock().unwrap().clone()).unwrap();
    assert_eq!(table, include_str!("../../examples/expected/recording.csv"));

    let bytes = fs::read(&path).unwrap();
    let summary = Summary::read(&bytes).expect("it is whole").expect("it has a summary");
    let statistics = summary.stats.as_ref().expect("it has statistics");
    let taken = |topic: &str| report.topic(topic).expect("it is carried").taken;
    assert_eq!((taken("/motor/state"), taken("/motor/currents")), (20, 20), "one in 10 ms");
    assert_eq!(statistics.message_count, 40);
    assert!(statistics.channel_message_counts.values().eq(&[20, 20]), "{statistics:?}");
    let channels: BTreeMap<&str, _> = summary.channels.values().map(|it| (it.topic.as_str(), it)).collect();
    let state = channels["/motor/state"];
    assert_eq!((state.message_encoding.as_str(), state.metadata["hz"].as_str()), ("cdr", "100"));
    let schema = state.schema.as_ref().expect("it has a schema");
    assert_eq!((schema.name.as_str(), schema.encoding.as_str()), ("motor_msgs/msg/State", "ros2msg"));
    let definition = "float64 angle  # rad\nfloat64 speed  # rad/s\nbool settled\n";
    assert_eq!(str::from_utf8(&schema.data), Ok(definition));

    // The angles in the recording are those of the table, at the same times.
    let lines = table.lines().skip(1).map(|line| line.splitn(4, ',').collect::<Vec<_>>());
    let messages = MessageStream::new(&bytes).unwrap().map(Result::unwrap);
    let states = messages.filter(|message| message.channel.topic == "/motor/state");
    let mut count = 0;
    for (message, line) in states.zip(lines) {
        let angle = f64::from_le_bytes(message.data[4..12].try_into().unwrap());
        let read = [message.log_time.to_string(), message.sequence.to_string(), angle.to_string()];
        assert_eq!(read, line[..3]);
        count += 1;
    }
    assert_eq!(count, 20);
    let metadata: BTreeSet<&str> = summary.metadata_indexes.iter().map(|it| it.name.as_str()).collect();
    let expected = ["punctual.clock", "punctual.clock.end", "punctual.losses", "punctual.start"];
    assert_eq!(metadata, BTreeSet::from(expected));
    python(&path, "whole", 40);
}

#[test]
fn splits_recordings_into_complete_files() {
    static BY_SIZE: Topic<Number, 1024> = Topic::new("/by_size");
    static BY_TIME: Topic<Number, 1024> = Topic::new("/by_time");
    let place = tempfile::tempdir().expect("there is room for a directory");
    // Each takes 47 bytes in addition to its 12 bytes: 16 per file.
    let by_size = Recording::create(place.path().join("size.mcap")).unwrap().rotate_at(1000);
    let by_time =
        Recording::create(place.path().join("time.mcap")).unwrap().rotate_every(Duration::from_micros(300));
    let sizes = Bridge::new().topic(&BY_SIZE).sink(by_size).start().expect("it can start");
    let times = Bridge::new().topic(&BY_TIME).sink(by_time).start().expect("it can start");
    let (mut size, mut time) = (BY_SIZE.publisher().unwrap(), BY_TIME.publisher().unwrap());
    for number in 0..1000 {
        let released = Instant::from_ticks(number * 1000);
        size.publish(released, Number { number });
        time.publish(released, Number { number });
    }
    for (bridge, stem, length) in [(sizes, "size", 16), (times, "time", 300)] {
        let report = bridge.finish();
        assert!(report.is_complete(), "{report}");
        let parts = 1000_usize.div_ceil(length);
        let mut seen = Vec::new();
        for part in 1..=parts {
            let name = if part == 1 { format!("{stem}.mcap") } else { format!("{stem}-{part}.mcap") };
            let bytes = fs::read(place.path().join(&name)).expect("there are so many parts");
            let summary = Summary::read(&bytes).expect("it is whole").expect("it has a summary");
            assert_eq!((summary.channels.len(), summary.schemas.len()), (1, 1), "{name}");
            let numbers = numbers(&place.path().join(&name));
            assert!(numbers.len() == length || part == parts, "{name}: {}", numbers.len());
            seen.extend(numbers);
        }
        assert!(!place.path().join(format!("{stem}-{}.mcap", parts + 1)).exists());
        assert_eq!(seen, (0..1000).collect::<Vec<_>>());
    }
}

#[test]
fn recording_is_readable_up_to_last_chunk_after_kill() {
    const CHILD: &str = "PUNCTUAL_TEST_CHILD";
    static NUMBERS: Topic<Number, 64> = Topic::new("/numbers");
    if let Some(path) = std::env::var_os(CHILD) {
        let recording = Recording::create(path).expect("there is room for a file");
        let _bridge = Bridge::new().topic(&NUMBERS).sink(recording).start().expect("it can start");
        let mut numbers = NUMBERS.publisher().unwrap();
        // Long enough to be killed, but not infinite if that fails.
        for number in 0..60_000 {
            numbers.publish(punctual::now(), Number { number });
            std::thread::park_timeout(Duration::from_millis(1));
        }
        return;
    }
    let place = tempfile::tempdir().expect("there is room for a directory");
    let path = place.path().join("killed.mcap");
    let mut child = Command::new("/proc/self/exe");
    child
        .args(["--exact", "recordings::recording_is_readable_up_to_last_chunk_after_kill"])
        .env(CHILD, &path);
    let mut child = Killed(child.stdout(Stdio::null()).spawn().expect("this program can be started again"));
    // Until two chunks have been written.
    let (mut first, mut last) = (0, 0);
    let begun = std::time::Instant::now();
    while first == 0 || last == first {
        assert!(begun.elapsed() < Duration::from_secs(60), "the child writes no chunks");
        std::thread::park_timeout(Duration::from_millis(20));
        assert!(child.0.try_wait().unwrap().is_none(), "it goes on until it is killed");
        last = if path.exists() && fs::metadata(&path).unwrap().len() > 8 { numbers(&path).len() } else { 0 };
        if first == 0 {
            first = last;
        }
    }
    drop(child);
    let left = numbers(&path);
    assert!(left.len() >= last, "{} of {last}", left.len());
    assert!(left.windows(2).all(|pair| pair[0] < pair[1]));
    python(&path, "killed", left.len());

    let whole = place.path().join("whole.mcap");
    let recovered = recover(&path, &whole).expect("it has complete chunks");
    assert_eq!(recovered.messages, left.len() as u64);
    assert_eq!(numbers(&whole), left);
    python(&whole, "whole", left.len());
    let again = recover(&whole, place.path().join("again.mcap")).unwrap_err();
    assert!(matches!(again, ReadError::Complete(_)), "{again}");
    assert!(!place.path().join("again.mcap").exists());
}

/// Writes a complete recording with several chunks; returns its bytes.
fn recorded(place: &TempDir, topic: &'static Topic<Number, 8192>) -> Vec<u8> {
    let path = place.path().join("complete.mcap");
    let bridge = Bridge::new().topic(topic).sink(Recording::create(&path).unwrap()).start().unwrap();
    let mut publisher = topic.publisher().unwrap();
    (0..8000).for_each(|number| publisher.publish(Instant::from_ticks(number * 1000), Number { number }));
    assert!(bridge.finish().is_complete());
    fs::read(path).unwrap()
}

#[test]
fn records_wall_time_and_monotonic_time() {
    static TIMES: Topic<Number, 8192> = Topic::new("/times");
    let place = tempfile::tempdir().expect("there is room for a directory");
    let bytes = recorded(&place, &TIMES);
    let summary = Summary::read(&bytes).unwrap().unwrap();
    let index = summary.metadata_indexes.iter().find(|it| it.name == "punctual.clock").unwrap();
    let clock = mcap::read::metadata(&bytes, index).unwrap().metadata;
    let offset: u64 = clock["offset_ns"].parse().unwrap();
    for (number, message) in MessageStream::new(&bytes).unwrap().map(Result::unwrap).enumerate() {
        assert_eq!(message.publish_time, number as u64 * 1000);
        assert_eq!(message.log_time, message.publish_time + offset);
    }
}

#[test]
fn recovers_complete_chunks_of_recording_cut_anywhere() {
    static CUT: Topic<Number, 8192> = Topic::new("/cut");
    let place = tempfile::tempdir().expect("there is room for a directory");
    let bytes = recorded(&place, &CUT);
    let (path, whole) = (place.path().join("cut.mcap"), place.path().join("recovered.mcap"));
    let mut counts = BTreeSet::new();
    let repeats = env::var("PUNCTUAL_REPEATS");
    let repeats = repeats.map_or(1, |times| times.parse().expect("PUNCTUAL_REPEATS is a number"));
    for length in (0..bytes.len()).step_by(9_973 / repeats).chain([bytes.len() - 8, bytes.len() - 1]) {
        fs::write(&path, &bytes[..length]).unwrap();
        let _ = fs::remove_file(&whole);
        match recover(&path, &whole) {
            Ok(recovered) => {
                assert_eq!(numbers(&whole), (0..recovered.messages).collect::<Vec<_>>(), "{length}");
                assert!(Summary::read(&fs::read(&whole).unwrap()).unwrap().is_some(), "{length}");
                counts.insert(recovered.messages);
            }
            Err(error) => {
                let is_short = matches!(error, ReadError::Foreign(_) | ReadError::Empty(_));
                assert!(is_short && !whole.exists(), "{length}: {error}");
            }
        }
    }
    assert_eq!(counts.last(), Some(&8000), "an index that is cut off loses nothing");
    assert!(counts.len() >= 3, "each chunk counts: {counts:?}");
}

#[test]
fn recovery_ends_at_damage_and_rejects_foreign_files() {
    static DAMAGED: Topic<Number, 8192> = Topic::new("/damaged");
    let place = tempfile::tempdir().expect("there is room for a directory");
    let bytes = recorded(&place, &DAMAGED);
    let (path, whole) = (place.path().join("bad.mcap"), place.path().join("good.mcap"));
    let recovered = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let _ = fs::remove_file(&whole);
        recover(&path, &whole)
    };
    // The tail of a file that was never written to disk.
    let mut zeros = bytes[..bytes.len() * 2 / 3].to_vec();
    zeros.resize(bytes.len(), 0);
    let found = recovered(&zeros).unwrap();
    assert!(found.messages > 0 && found.messages < 8000, "{found:?}");
    // A changed byte in the second chunk, which follows 64 KiB and their index of 24 KiB.
    let mut flipped = bytes[..bytes.len() - 1].to_vec();
    flipped[100_000] ^= 1;
    let found = recovered(&flipped).unwrap();
    assert!(found.messages > 0 && found.messages < 8000 && found.damage.contains("CRC"), "{found:?}");
    // A length beyond any memory.
    let mut huge = bytes[..200].to_vec();
    huge.extend([6, 255, 255, 255, 255, 255, 255, 255, 127, 0, 0]);
    assert!(matches!(recovered(&huge), Err(ReadError::Empty(_))));
    for foreign in [&b""[..], b"text", &[0; 4096]] {
        assert!(matches!(recovered(foreign), Err(ReadError::Foreign(_))), "{foreign:?}");
    }
    assert!(matches!(recover(place.path().join("none.mcap"), "new"), Err(ReadError::Io { .. })));
    assert!(matches!(recover(place.path(), "new"), Err(ReadError::Io { .. })), "a directory");
}

#[test]
fn overwrites_no_recording() {
    let place = tempfile::tempdir().expect("there is room for a directory");
    let path = place.path().join("run.mcap");
    fs::write(&path, "valuable").unwrap();
    let error = Recording::create(&path).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    let expected = format!(
        "{}: File exists (os error 17); recordings are not overwritten, name or move it",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(fs::read_to_string(&path).unwrap(), "valuable");
    let error = Recording::create(place.path().join("none/run.mcap")).unwrap_err();
    assert!(error.to_string().contains("none/run.mcap: No such file"), "{error}");
}

/// Reads a recording with other implementations: `pip install mcap rosbags`.
fn python(path: &Path, state: &str, expected: usize) {
    const PROGRAM: &str = "
import sys
try:
    from mcap.reader import make_reader
    from mcap.stream_reader import StreamReader
    from mcap.records import Message
except ImportError:
    sys.exit(77)
path, state = sys.argv[1:]
with open(path, 'rb') as file:
    if state == 'whole':
        reader = make_reader(file, validate_crcs=True)
        found = [message.log_time for _, _, message in reader.iter_messages()]
        assert found == sorted(found)
        count = len(found)
        try:
            from pathlib import Path
            from rosbags.highlevel import AnyReader
        except ImportError:
            pass
        else:
            with AnyReader([Path(path)]) as bag:
                assert count == sum(1 for _ in bag.messages())
    else:
        count = 0
        try:
            for record in StreamReader(file, validate_crcs=True).records:
                count += isinstance(record, Message)
        except Exception as error:
            print('ends with', type(error).__name__, file=sys.stderr)
print(count)
";
    let run = Command::new("python3").args(["-c", PROGRAM]).arg(path).arg(state).output_within(TEST_LIMIT);
    match run {
        Ok(output) if output.status.success() => {
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected.to_string());
        }
        Ok(output) if output.status.code() != Some(77) => {
            panic!("the other reader fails: {}", String::from_utf8_lossy(&output.stderr));
        }
        _ => skip(Need::PythonModule("mcap"), path.display()),
    }
}

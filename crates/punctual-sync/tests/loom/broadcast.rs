//! Models of a broadcast: every message that a reader gets is complete, and every other one is
//! counted.
//!
//! Bound: three preemptions; the merge gate explores two. A torn message needs one preemption of
//! the reader between its check of the tail and the end of its copy, and one of the writer in the
//! message that overwrites it. The third starts the writer, since the reader is first.

use std::ops::RangeInclusive;

use crate::model::share;
use loom::sync::atomic::AtomicU64;
use loom::thread::spawn;
use punctual_sync::Instant;
use punctual_sync::shared::{BroadcastLayout, BroadcastReader, BroadcastWriter};

/// Two slots, so that the third message overwrites the first one.
const LAYOUT: BroadcastLayout = BroadcastLayout::new(2, 8).unwrap();

fn memory() -> Vec<AtomicU64> {
    (0..LAYOUT.words()).map(|_| AtomicU64::new(0)).collect()
}

/// Publishes the messages `numbers`, in which instant, sequence number and bytes agree.
///
/// The writer is created before the threads start: its load of the tail would hide the reader's
/// preceding load from loom, which considers only the last access of each atomic.
fn publish(writer: &mut BroadcastWriter<'_>, numbers: RangeInclusive<u64>) {
    for number in numbers {
        writer.publish(Instant::from_ticks(number), number as u32, &number.to_ne_bytes()).unwrap();
    }
}

/// Reads one message, if there is one, and checks it.
fn read(reader: &mut BroadcastReader<'_>) -> Option<u64> {
    let mut buffer = [0; 1];
    let message = reader.read(&mut buffer)?;
    let number = message.instant.as_ticks();
    assert_eq!((u64::from(message.sequence), message.bytes), (number, &number.to_ne_bytes()[..]), "torn");
    Some(number)
}

#[test]
fn message_is_complete_during_next_publish() {
    share(memory).check(3, |memory| {
        let mut reader = BroadcastReader::new(memory, LAYOUT).unwrap();
        let mut writer = BroadcastWriter::new(memory, LAYOUT).unwrap();
        let publishing = spawn(move || publish(&mut writer, 1..=1));
        let early = read(&mut reader);
        publishing.join().unwrap();
        let late = read(&mut reader);
        assert_eq!(early.or(late), Some(1));
        assert_eq!((reader.lost(), reader.malformed()), (0, 0));
    });
}

#[test]
fn overwritten_message_is_complete_or_lost() {
    share(memory).check(3, |memory| {
        let mut reader = BroadcastReader::new(memory, LAYOUT).unwrap();
        let mut writer = BroadcastWriter::new(memory, LAYOUT).unwrap();
        publish(&mut writer, 1..=1);
        let publishing = spawn(move || publish(&mut writer, 2..=3));
        let mut count = 0;
        let mut last = 0;
        let mut take = |reader: &mut BroadcastReader<'_>| {
            if let Some(number) = read(reader) {
                assert!(number > last, "in order");
                (last, count) = (number, count + 1);
            }
        };
        take(&mut reader);
        publishing.join().unwrap();
        (0..3).for_each(|_| take(&mut reader));
        assert_eq!(count + reader.lost(), 3, "every message is read or counted");
        assert_eq!((last, reader.malformed()), (3, 0));
    });
}

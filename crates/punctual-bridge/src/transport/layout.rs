//! The layout of the two shared files, which the documentation of the module [`super`] specifies.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use punctual_sync::shared::BroadcastLayout;

use super::memory::{WORD, load_bytes, store_bytes};
use crate::message::{Description, Dialect, Kind, Scalar};
use crate::qos::Qos;
use crate::sink::Channel;

/// "PunctTop".
pub(super) const TOPICS_MAGIC: u64 = u64::from_le_bytes(*b"PunctTop");
/// "PunctSea".
pub(super) const SEAT_MAGIC: u64 = u64::from_le_bytes(*b"PunctSea");
/// The version of both files and of the greeting.
pub(super) const VERSION: u64 = 1;
/// The maximum number of topics.
pub(super) const MAX_TOPICS: usize = 1024;
/// The maximum size of a topics file, in bytes.
pub(super) const MAX_LENGTH: usize = 1 << 30;

/// Words of a topics file.
pub(super) mod topics {
    pub(in super::super) const MAGIC: usize = 0;
    pub(in super::super) const VERSION: usize = 1;
    pub(in super::super) const LENGTH: usize = 2;
    pub(in super::super) const SEAT_LENGTH: usize = 3;
    pub(in super::super) const COUNT: usize = 4;
    /// The instant of the last round of the app's thread, in ns of `CLOCK_MONOTONIC`.
    pub(in super::super) const HEARTBEAT: usize = 16;
    /// The offset of the time since 1970 from `CLOCK_MONOTONIC`, in ns, modulo 2⁶⁴.
    pub(in super::super) const CLOCK: usize = 17;
    /// Its low half is a futex that changes after each round with messages.
    pub(in super::super) const BELL: usize = 18;
    /// 1 if the app has ended.
    pub(in super::super) const ENDED: usize = 19;
    pub(in super::super) const TABLE: usize = 32;
}

/// Words of a seat file.
pub(super) mod seat {
    pub(in super::super) const MAGIC: usize = 0;
    pub(in super::super) const VERSION: usize = 1;
    pub(in super::super) const LENGTH: usize = 2;
    /// A count that the transport increments.
    pub(in super::super) const HEARTBEAT: usize = 16;
    /// The encoding of the transport's messages: 0 for CDR, or [`super::ENCODING_ROS1`].
    pub(in super::super) const ENCODING: usize = 17;
    /// For each topic: position, number of messages taken, number lost, and an unused word.
    pub(in super::super) const COUNTS: usize = 32;
    pub(in super::super) const COUNT_WORDS: usize = 4;
}

/// Words of an entry of the table of topics.
const ENTRY: usize = 16;
/// Words to which rings are aligned: 128 bytes.
const RING_ALIGN: usize = 16;
/// The number of slots of the ring of an incoming topic.
const INCOMING_CAPACITY: usize = 64;
/// The maximum size of the ring of an outgoing topic, in bytes.
const MAX_RING_BYTES: usize = 16 << 20;
/// The time for which rings hold messages, if the rate is declared and the size permits.
const HISTORY_SECONDS: usize = 1;

/// The direction of a topic, seen from the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The app publishes, and transports read.
    Outgoing,
    /// Transports publish, and the app reads.
    Incoming,
}

/// The value of [`seat::ENCODING`] for messages in the layout of ROS 1. CDR is 0.
pub(super) const ENCODING_ROS1: u64 = 1;

/// A topic, as described by the topics file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicInfo {
    /// The name.
    pub name: String,
    /// The name of the type, such as `geometry_msgs/msg/Vector3`.
    pub type_name: String,
    /// The definition in the interface language of ROS 2 (`ros2msg`), with those of the messages in
    /// it.
    pub definition: String,
    /// A hash of the type and the definition: FNV-1a of both, one after the other.
    pub hash: u64,
    /// The direction.
    pub direction: Direction,
    /// The declared number of messages per second.
    pub hz: Option<u32>,
    /// The maximum length of a message in CDR, in bytes.
    pub max_bytes: usize,
    /// The number of slots of its ring.
    pub capacity: usize,
    /// The quality of service that a transport offers or requests.
    pub qos: Qos,
    /// The first word of its ring, in the topics file or the seat file.
    pub(super) ring: usize,
}

impl TopicInfo {
    pub(super) fn new(direction: Direction, name: &str, description: &'static Description, qos: Qos) -> Self {
        let definition = Dialect::Ros2.definition(description);
        let hash = hash([description.name(), &definition]);
        let (name, type_name) = (name.to_owned(), description.name().to_owned());
        let max_bytes = max_bytes(description);
        let (hz, capacity) = (None, INCOMING_CAPACITY);
        Self { name, type_name, definition, hash, direction, hz, max_bytes, capacity, qos, ring: 0 }
    }

    /// Describes an outgoing topic of the bridge.
    pub(super) fn outgoing(channel: &Channel) -> Self {
        let Channel { topic, hz, qos, description, .. } = *channel;
        let topic = Self::new(Direction::Outgoing, topic, description, qos);
        let capacity = outgoing_capacity(channel.capacity, hz, topic.max_bytes);
        Self { hz, capacity, ..topic }
    }

    /// Describes an incoming topic.
    pub(super) fn incoming(name: &str, description: &'static Description, qos: Qos) -> Self {
        Self::new(Direction::Incoming, name, description, qos)
    }

    /// Returns the layout of its ring; `None` if it is impossible.
    pub(super) fn layout(&self) -> Option<BroadcastLayout> {
        BroadcastLayout::new(self.capacity, self.max_bytes)
    }
}

/// Returns the number of slots that hold about a second of messages, and at least twice the number
/// that may be queued.
fn outgoing_capacity(queued: usize, hz: Option<u32>, max_bytes: usize) -> usize {
    let second = hz.map_or(queued * 8, |hz| hz as usize * HISTORY_SECONDS);
    let wanted = second.max(queued * 2).next_power_of_two();
    let slot = max_bytes + 2 * WORD;
    // Rounded down to a power of two.
    let room = ((MAX_RING_BYTES / slot).max(1) + 1).next_power_of_two() / 2;
    wanted.min(room).max((queued * 2).next_power_of_two())
}

/// FNV-1a (Fowler, Noll, Vo) of all texts, one after the other.
pub(crate) fn hash(texts: [&str; 2]) -> u64 {
    let bytes = texts.into_iter().flat_map(str::bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns the length of the longest message, in CDR with its header or in the layout of ROS 1.
///
/// Padding depends on the length of earlier values, but a longer value never ends earlier, so the
/// longest message has every sequence and text at its capacity.
fn max_bytes(description: &Description) -> usize {
    fn add(kind: Kind, at: usize) -> usize {
        let scalar = |size: usize| at.next_multiple_of(size) + size;
        match kind {
            Kind::Scalar(Scalar::Bool | Scalar::I8 | Scalar::U8 | Scalar::Byte) => scalar(1),
            Kind::Scalar(Scalar::I16 | Scalar::U16) => scalar(2),
            Kind::Scalar(Scalar::I32 | Scalar::U32 | Scalar::F32) => scalar(4),
            Kind::Scalar(Scalar::I64 | Scalar::U64 | Scalar::F64) => scalar(8),
            Kind::Array(element, length) => (0..length).fold(at, |at, _| add(*element, at)),
            Kind::Sequence(element, length) => (0..length).fold(scalar(4), |at, _| add(*element, at)),
            Kind::Text(length) => scalar(4) + length + 1,
            Kind::Message(inner) => fields(inner, at),
        }
    }

    fn fields(description: &Description, at: usize) -> usize {
        // The sequence number of a header in ROS 1.
        let number = if description.name() == crate::messages::HEADER { 4 } else { 0 };
        description.fields().iter().fold(at + number, |at, field| add(field.kind(), at))
    }

    const HEADER: usize = 4;
    HEADER + fields(description, 0)
}

/// Places the texts and rings of `topics`; returns the lengths of the topics file and of a seat
/// file, in bytes. `None` if they are too large.
pub(super) fn place(topics: &mut [TopicInfo]) -> Option<[usize; 2]> {
    let texts: usize = topics.iter().flat_map(texts).map(|text| text.len().div_ceil(WORD)).sum();
    let mut in_topics = topics::TABLE + topics.len() * ENTRY + texts;
    let mut in_seat = seat::COUNTS + topics.len() * seat::COUNT_WORDS;
    for topic in topics.iter_mut() {
        let next = match topic.direction {
            Direction::Outgoing => &mut in_topics,
            Direction::Incoming => &mut in_seat,
        };
        topic.ring = next.next_multiple_of(RING_ALIGN);
        *next = topic.ring.checked_add(topic.layout()?.words())?;
    }
    let lengths = [in_topics, in_seat].map(|words| (words * WORD).next_multiple_of(4096));
    lengths.iter().all(|&length| length <= MAX_LENGTH).then_some(lengths)
}

fn texts(topic: &TopicInfo) -> [&str; 3] {
    [&topic.name, &topic.type_name, &topic.definition]
}

/// Writes the header and the table, except for the magic number, which comes last.
pub(super) fn write(words: &[AtomicU64], topics: &[TopicInfo], lengths: [usize; 2]) {
    let set = |word: usize, value: usize| words[word].store(value as u64, Ordering::Relaxed);
    set(topics::VERSION, VERSION as usize);
    set(topics::LENGTH, lengths[0]);
    set(topics::SEAT_LENGTH, lengths[1]);
    set(topics::COUNT, topics.len());
    let mut text_at = topics::TABLE + topics.len() * ENTRY;
    for (index, topic) in topics.iter().enumerate() {
        let entry = topics::TABLE + index * ENTRY;
        for (field, text) in texts(topic).into_iter().enumerate() {
            set(entry + 2 * field, text_at * WORD);
            set(entry + 2 * field + 1, text.len());
            store_bytes(words, text_at, text.as_bytes());
            text_at += text.len().div_ceil(WORD);
        }
        words[entry + 6].store(topic.hash, Ordering::Relaxed);
        set(entry + 7, topic.direction as usize);
        set(entry + 8, topic.hz.map_or(0, |hz| hz as usize));
        set(entry + 9, topic.max_bytes);
        set(entry + 10, topic.capacity);
        set(entry + 11, topic.ring * WORD);
        words[entry + 12].store(topic.qos.to_word(), Ordering::Relaxed);
    }
    words[topics::MAGIC].store(TOPICS_MAGIC, Ordering::Release);
}

/// Reads the table of a topics file for a seat file with `seat_words`; `Err` with the reason if it
/// is malformed.
pub(super) fn read(words: &[AtomicU64], seat_words: usize) -> Result<Vec<TopicInfo>, &'static str> {
    let get = |word: usize| {
        let value = words.get(word).ok_or("it is too short")?.load(Ordering::Relaxed);
        usize::try_from(value).map_err(|_| "a number is too large")
    };
    if words.first().map(|magic| magic.load(Ordering::Relaxed)) != Some(TOPICS_MAGIC) {
        return Err("it is no topics file");
    }
    // Pairs with the release store in `write`. Not an acquire load, which is undefined in a mapping
    // for reading.
    fence(Ordering::Acquire);
    if get(topics::VERSION)? as u64 != VERSION {
        return Err("it has another version");
    }
    let count = get(topics::COUNT)?;
    if count > MAX_TOPICS {
        return Err("it has too many topics");
    }
    (0..count)
        .map(|index| {
            let entry = topics::TABLE + index * ENTRY;
            let text = |field: usize| {
                let (offset, length) = (get(entry + 2 * field)?, get(entry + 2 * field + 1)?);
                let bytes = load_bytes(words, offset, length).ok_or("a text is outside of it")?;
                String::from_utf8(bytes).map_err(|_| "a text is not UTF-8")
            };
            let direction = match get(entry + 7)? {
                0 => Direction::Outgoing,
                1 => Direction::Incoming,
                _ => return Err("a topic has an unknown direction"),
            };
            let topic = TopicInfo {
                name: text(0)?,
                type_name: text(1)?,
                definition: text(2)?,
                hash: get(entry + 6)? as u64,
                direction,
                hz: u32::try_from(get(entry + 8)?).ok().filter(|&hz| hz > 0),
                max_bytes: get(entry + 9)?,
                capacity: get(entry + 10)?,
                ring: get(entry + 11)? / WORD,
                qos: Qos::from_word(get(entry + 12)? as u64),
            };
            let room = match direction {
                Direction::Outgoing => words.len(),
                Direction::Incoming => seat_words,
            };
            let end = topic.layout().and_then(|layout| layout.words().checked_add(topic.ring));
            match end {
                Some(end) if end <= room && topic.ring.is_multiple_of(RING_ALIGN) => Ok(topic),
                _ => Err("a ring is outside of the files"),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use crate::message::{Encoder, Sequence, Text};
    use crate::messages::{DiagnosticArray, Header, JointState, Vector3};

    #[derive(Clone, Copy, Message)]
    struct Padded {
        name: Text<5>,
        wide: Sequence<f64, 3>,
        flags: [bool; 3],
        last: u16,
    }

    #[derive(Clone, Copy, Message)]
    struct Named {
        name: Text<3>,
    }

    fn topics() -> Vec<TopicInfo> {
        vec![
            TopicInfo {
                hz: Some(100),
                capacity: 16,
                ..TopicInfo::new(Direction::Outgoing, "/angles", Vector3::DESCRIPTION, Qos::SENSOR_DATA)
            },
            TopicInfo::incoming("/setpoint", JointState::<3>::DESCRIPTION, Qos::BEST_AVAILABLE),
            TopicInfo {
                capacity: 2,
                ..TopicInfo::new(
                    Direction::Outgoing,
                    "/odd",
                    Padded::DESCRIPTION,
                    Qos::DEFAULT.depth(u32::MAX),
                )
            },
        ]
    }

    fn written() -> (Vec<AtomicU64>, Vec<TopicInfo>, [usize; 2]) {
        let mut topics = topics();
        let lengths = place(&mut topics).unwrap();
        let words: Vec<AtomicU64> = (0..lengths[0] / WORD).map(|_| AtomicU64::new(0)).collect();
        write(&words, &topics, lengths);
        (words, topics, lengths)
    }

    #[test]
    fn reads_the_written_table() {
        let (words, topics, lengths) = written();
        assert_eq!(read(&words, lengths[1] / WORD).unwrap(), topics);
        assert!(topics[1].definition.contains("float64[] effort") && topics[0].ring % 16 == 0);
    }

    #[test]
    fn rejects_or_reads_every_corrupted_table() {
        let (words, _, lengths) = written();
        let seat = lengths[1] / WORD;
        let end = words.iter().rposition(|word| word.load(Ordering::Relaxed) != 0).unwrap();
        for word in 0..=end {
            let before = words[word].load(Ordering::Relaxed);
            for value in [0, 1, 7, 1 << 31, 1 << 40, u64::MAX, before.wrapping_add(8), !before] {
                words[word].store(value, Ordering::Relaxed);
                for topic in read(&words, seat).unwrap_or_default() {
                    let room = if topic.direction == Direction::Outgoing { words.len() } else { seat };
                    assert!(topic.ring.is_multiple_of(RING_ALIGN), "{word} {value}: {topic:?}");
                    assert!(
                        topic.ring + topic.layout().unwrap().words() <= room,
                        "{word} {value}: {topic:?}"
                    );
                }
            }
            words[word].store(before, Ordering::Relaxed);
        }
        for length in 0..end {
            assert!(read(&words[..length], seat).is_err());
        }
    }

    #[test]
    fn the_longest_message_has_full_sequences_and_texts() {
        let full =
            Padded { name: Text::new("abcde").unwrap(), wide: [1.0; 3].into(), flags: [true; 3], last: 1 };
        assert_eq!(Encoder::default().encode(0, &full).len(), max_bytes(Padded::DESCRIPTION));
        for (name, count) in [("", 0), ("a", 1), ("abcd", 3), ("abcde", 2)] {
            let wide = Sequence::from_slice(&[1.0; 3][..count]).unwrap();
            let shorter = Padded { name: Text::new(name).unwrap(), wide, ..full };
            assert!(Encoder::default().encode(0, &shorter).len() <= max_bytes(Padded::DESCRIPTION));
        }
        assert_eq!(max_bytes(Vector3::DESCRIPTION), 28);
        let named = Named { name: Text::new("abc").unwrap() };
        assert_eq!(Encoder::default().encode(0, &named).len(), max_bytes(Named::DESCRIPTION));
        // In the layout of ROS 1, a header has a sequence number, too.
        assert_eq!(max_bytes(Header::<3>::DESCRIPTION), 4 + 4 + 8 + 4 + 3 + 1);
        let array = DiagnosticArray::<2, 3>::default();
        assert!(Encoder::default().encode(0, &array).len() < max_bytes(DiagnosticArray::<2, 3>::DESCRIPTION));
    }

    #[test]
    fn documentation_specifies_every_word() {
        let page = include_str!("mod.rs").replace("//! ", "");
        let section = |name: &str| page.split("\n# ").find(|part| part.starts_with(name)).unwrap();
        let has = |name: &str, word: usize, content: &str| {
            let row = format!("| {word} | {content}");
            assert!(section(name).contains(&row), "{name} has no row {row:?}");
        };
        let text = |magic: u64| String::from_utf8(magic.to_le_bytes().into()).unwrap();
        for (word, content) in [
            (topics::MAGIC, format!("`{}`", text(TOPICS_MAGIC))),
            (topics::VERSION, format!("version: {VERSION}")),
            (topics::LENGTH, "length of the topics file".into()),
            (topics::SEAT_LENGTH, "length of a seat file".into()),
            (topics::COUNT, "number of topics".into()),
            (topics::HEARTBEAT, "heartbeat".into()),
            (topics::CLOCK, "offset of the time".into()),
            (topics::BELL, "bell".into()),
            (topics::ENDED, "1 after the app has ended".into()),
            (topics::TABLE, "table of topics".into()),
        ] {
            has("The topics file", word, &content);
        }
        for (word, content) in [
            (seat::MAGIC, format!("`{}`", text(SEAT_MAGIC))),
            (seat::VERSION, format!("version: {VERSION}")),
            (seat::LENGTH, "length".into()),
            (seat::HEARTBEAT, "heartbeat".into()),
            (seat::ENCODING, format!("encoding of the transport's messages: 0 for CDR, {ENCODING_ROS1} for")),
            (seat::COUNTS, "for each topic of the table, four words".into()),
        ] {
            has("The seat file", word, &content);
        }
        assert_eq!((seat::COUNT_WORDS, ENTRY), (4, 16));
        assert!(page.contains("An entry of the table has 16 words"));
        assert!(page.contains(&format!("more than {} messages of a topic per ms", INCOMING_CAPACITY - 1)));
    }

    #[test]
    fn rings_hold_a_second_within_their_limit() {
        assert_eq!(outgoing_capacity(64, Some(100), 28), 128);
        assert_eq!(outgoing_capacity(2048, Some(10_000), 76), 16_384);
        assert_eq!(outgoing_capacity(64, None, 28), 512);
        assert_eq!(outgoing_capacity(64, Some(1_000_000), 4080), 4096, "16 MiB");
        assert_eq!(outgoing_capacity(4, Some(1), 1 << 24), 8, "at least twice the queue");
    }
}

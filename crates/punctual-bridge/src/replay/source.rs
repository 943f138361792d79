//! The content of a recording, as far as a replay needs it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcap::records::Record;

use crate::recording::{CLOCK, START, part_path};
use crate::records::{ReadError, Records};
use crate::replay;

/// The limit of the inputs of a replay, in bytes, since they are held in memory.
const MAX_INPUT_BYTES: usize = 1 << 30;

/// The limit of the topics of a recording, which are compared with each other.
const MAX_TOPICS: usize = 4_096;

/// A recorded message.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    /// The index of its topic in [`Messages::topics`].
    pub(super) topic: usize,
    pub(super) sequence: u32,
    /// Its time in ns since 1970.
    pub(super) time_ns: u64,
    /// Its time in ns by the monotonic clock of the recording.
    pub(super) monotonic_ns: u64,
    pub(super) payload: Vec<u8>,
}

/// A recorded topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedTopic {
    pub(super) name: String,
    /// The name and the definition of its type.
    pub(super) message: Arc<(String, String)>,
    /// `true` if the recording declares it as an input.
    pub(super) is_input: bool,
}

/// The messages of all parts of a recording, in the order of the files.
pub(super) struct Messages {
    path: PathBuf,
    part: u32,
    records: Records,
    schemas: HashMap<u16, Arc<(String, String)>>,
    /// The topics of the present part, by channel.
    channels: HashMap<u16, usize>,
    pub(super) topics: Vec<RecordedTopic>,
    /// The entries of the metadata records [`CLOCK`] and [`START`] of the first part.
    metadata: HashMap<String, String>,
}

impl Messages {
    pub(super) fn open(path: &Path) -> Result<Self, ReadError> {
        Ok(Self {
            path: path.into(),
            part: 1,
            records: Records::open(path)?,
            schemas: HashMap::new(),
            channels: HashMap::new(),
            topics: vec![],
            metadata: HashMap::new(),
        })
    }

    /// Returns the next message, `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Recorded>, ReadError> {
        loop {
            match self.records.next()? {
                Some(Record::Schema { header, data }) => {
                    let definition = String::from_utf8_lossy(&data).into_owned();
                    self.schemas.insert(header.id, Arc::new((header.name, definition)));
                }
                Some(Record::Channel(channel)) => {
                    let message = self.schemas.get(&channel.schema_id).cloned().unwrap_or_default();
                    let is_input = channel.metadata.get("direction").is_some_and(|it| it == "in");
                    let topic = RecordedTopic { name: channel.topic, message, is_input };
                    let known = self.topics.iter().position(|other| *other == topic);
                    if known.is_none() && self.topics.len() == MAX_TOPICS {
                        let error = io::Error::other(format!("more than {MAX_TOPICS} topics"));
                        return Err(ReadError::Io { path: self.path.clone(), error });
                    }
                    let index = known.unwrap_or_else(|| {
                        self.topics.push(topic);
                        self.topics.len() - 1
                    });
                    self.channels.insert(channel.id, index);
                }
                Some(Record::Message { header, data }) => {
                    // A message of an undeclared channel has no topic.
                    let Some(&topic) = self.channels.get(&header.channel_id) else { continue };
                    return Ok(Some(Recorded {
                        topic,
                        sequence: header.sequence,
                        time_ns: header.log_time,
                        monotonic_ns: header.publish_time,
                        payload: data.into_owned(),
                    }));
                }
                Some(Record::Metadata(metadata)) if [CLOCK, START].contains(&&*metadata.name) => {
                    for (key, value) in metadata.metadata {
                        self.metadata.entry(key).or_insert(value);
                    }
                }
                Some(_) => {}
                None => {
                    let next = part_path(&self.path, self.part + 1);
                    if self.damage().is_some() || !next.exists() {
                        return Ok(None);
                    }
                    self.part += 1;
                    self.records = Records::open(&next)?;
                    self.channels.clear();
                    self.schemas.clear();
                }
            }
        }
    }

    /// Returns the reason if the recording ends prematurely.
    pub(super) fn damage(&self) -> Option<&str> {
        self.records.damage()
    }
}

/// The frame of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// The origin of the periodic releases.
    grid_ns: u64,
    /// The time since 1970 at that origin, modulo 2⁶⁴.
    pub(super) offset_ns: u64,
    /// `true` if the recorded app ran in virtual time.
    pub(super) is_virtual: bool,
    /// The hash of the task set.
    pub(super) task_set: String,
    /// The time of the last message, in ns of virtual time.
    pub(super) last_ns: u64,
    /// The number of messages of each topic.
    pub(super) counts: Vec<u64>,
    pub(super) topics: Vec<RecordedTopic>,
    pub(super) damage: Option<String>,
}

impl Frame {
    /// Reads the whole recording.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let mut messages = Messages::open(path).map_err(|error| error.to_string())?;
        let (mut counts, mut last) = (vec![], None);
        while let Some(message) = messages.next().map_err(|error| error.to_string())? {
            counts.resize(messages.topics.len(), 0);
            counts[message.topic] += 1_u64;
            last = last.max(Some(message.monotonic_ns));
        }
        counts.resize(messages.topics.len(), 0);
        let last = last.ok_or_else(|| ReadError::Empty(path.into()).to_string())?;
        let number = |key: &str| messages.metadata.get(key)?.parse::<u64>().ok();
        if number("part").is_some_and(|part| part > 1) {
            return Err(format!("{} is a later part of a recording; give the first one", path.display()));
        }
        let (Some(grid_ns), Some(offset)) = (number("grid_ns"), number("offset_ns")) else {
            return Err(format!(
                "{} does not state the start of an app; record by the bridge that `init` starts, for longer \
                 than 250 ms",
                path.display()
            ));
        };
        Ok(Self {
            grid_ns,
            offset_ns: offset.wrapping_add(grid_ns),
            is_virtual: number("virtual_time") == Some(1),
            task_set: messages.metadata.get("task_set").cloned().unwrap_or_default(),
            last_ns: last.saturating_sub(grid_ns),
            counts,
            damage: messages.damage().map(str::to_owned),
            topics: messages.topics,
        })
    }

    /// Returns the instant of a message, in ns of virtual time. Everything before the start of the
    /// app happens at its start.
    pub(super) fn instant_ns(&self, message: &Recorded) -> u64 {
        message.monotonic_ns.saturating_sub(self.grid_ns)
    }

    /// Returns the messages of the inputs that the app has registered, in the order of their
    /// instants, and of the recording at the same instant.
    pub(super) fn inputs(&self, path: &Path) -> Result<Vec<Recorded>, String> {
        let mut messages = Messages::open(path).map_err(|error| error.to_string())?;
        let (mut found, mut bytes) = (vec![], 0);
        while let Some(message) = messages.next().map_err(|error| error.to_string())? {
            if replay::find_input(&messages.topics[message.topic].name).is_none() {
                continue;
            }
            bytes += message.payload.len() + size_of::<Recorded>();
            if bytes > MAX_INPUT_BYTES {
                return Err(format!("the inputs of {} exceed 1 GiB; record a shorter run", path.display()));
            }
            found.push(message);
        }
        found.sort_by_key(|message| self.instant_ns(message));
        Ok(found)
    }
}

/// Checks that a file is a recording that can be replayed, before an app is started for it.
///
/// # Errors
/// The reason why it cannot, and the remedy.
pub fn check_replay(path: impl AsRef<Path>) -> Result<(), String> {
    Frame::read(path.as_ref()).map(drop)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::BufWriter;

    use super::*;
    use crate::recording::{new_file, writer};

    #[test]
    fn rejects_recording_with_topics_without_end() {
        let write = |topics: usize| {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("topics.mcap");
            let mut writer = writer(BufWriter::new(new_file(&path).unwrap())).unwrap();
            let schema = writer.add_schema("a/msg/B", "ros2msg", b"").unwrap();
            for topic in 0..topics {
                writer.add_channel(schema, &format!("/{topic}"), "cdr", &BTreeMap::new()).unwrap();
            }
            writer.finish().unwrap();
            Messages::open(&path).unwrap().next().map(|message| message.is_none())
        };
        assert!(write(MAX_TOPICS).unwrap());
        let error = write(MAX_TOPICS + 1).unwrap_err();
        assert!(error.to_string().contains("more than 4096 topics"), "{error}");
    }
}

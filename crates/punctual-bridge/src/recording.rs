//! Recordings in the MCAP format.
//!
//! Messages are collected in chunks of 64 KiB, each of which is written as a whole, after at most
//! 250 ms: the file of a killed program is readable up to its last chunk. There is no compression,
//! which would be too slow at 10 kHz on a small board.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcap::records::{MessageHeader, Metadata};
use mcap::write::NoSeek;
use mcap::{McapError, WriteOptions, Writer};

use punctual::RunningApp;

use crate::message::ros2msg::Dialect;
use crate::transport::hash;
use crate::{Channel, Clock, Sample, Sink};

/// The metadata record of the clocks.
pub(crate) const CLOCK: &str = "punctual.clock";
/// The metadata record of the start of the app.
pub(crate) const START: &str = "punctual.start";
const CHUNK_BYTES: u64 = 64 * 1024;
/// The size of a message in a file in addition to its bytes: its record, and its entry in the index
/// of its chunk.
const OVERHEAD_BYTES: u64 = 31 + 16;

/// Returns the hash of the app's task set, as text.
pub(crate) fn task_set(app: &RunningApp) -> String {
    format!("{:016x}", hash([&app.task_set(), ""]))
}

/// A recording for viewers such as Foxglove: all topics of a bridge, with their schemas (`ros2msg`,
/// messages in CDR).
///
/// The times of a message are those of its release: `log_time` in ns since 1970, and `publish_time`
/// in ns of `CLOCK_MONOTONIC`, which is not affected by setting the system clock. A metadata record
/// `punctual.clock` contains the difference at the start, `punctual.clock.end` at the end,
/// `punctual.losses` the number of lost messages of each topic, and `punctual.start` the origin of
/// the periodic releases, for replays.
///
/// The file of a killed program lacks its index, which many readers require: [`recover`] adds it.
///
/// [`recover`]: crate::recover
///
/// ```no_run
/// use std::time::Duration;
/// use punctual_bridge::Recording;
///
/// // run.mcap, run-2.mcap, run-3.mcap, each complete in itself.
/// let recording = Recording::create("run.mcap")?.rotate_at(512 << 20).rotate_every(Duration::from_secs(3600));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Recording {
    path: PathBuf,
    limit_bytes: u64,
    limit_ns: u64,
    part: u32,
    file: Option<File>,
    writer: Option<Writer<NoSeek<BufWriter<File>>>>,
    ids: Vec<u16>,
    /// The approximate size of the present part.
    bytes: u64,
    first_ns: Option<u64>,
    /// The number of messages since the last flush.
    pending: u64,
    setup: Option<(Vec<Channel>, Clock)>,
    app: Option<RunningApp>,
    /// `true` if the present part states the start of the app.
    has_start: bool,
}

impl Recording {
    /// Creates a recording in a new file.
    ///
    /// # Errors
    /// If the file exists, since recordings are never overwritten, or cannot be created.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let file = Some(new_file(&path)?);
        Ok(Self {
            path,
            limit_bytes: u64::MAX,
            limit_ns: u64::MAX,
            part: 1,
            file,
            writer: None,
            ids: Vec::new(),
            bytes: 0,
            first_ns: None,
            pending: 0,
            setup: None,
            app: None,
            has_start: false,
        })
    }

    /// Continues in a new file when the file has about this many bytes.
    #[must_use]
    pub fn rotate_at(self, bytes: u64) -> Self {
        Self { limit_bytes: bytes, ..self }
    }

    /// Continues in a new file when the first message of the file is this old.
    #[must_use]
    pub fn rotate_every(self, time: Duration) -> Self {
        Self { limit_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), ..self }
    }

    /// Writes the start of the app, on which a replay depends, once it is known.
    fn write_start(&mut self) -> io::Result<()> {
        let (Some(app), Some(writer)) = (&self.app, &mut self.writer) else { return Ok(()) };
        let Some(grid) = app.grid().filter(|_| !self.has_start) else { return Ok(()) };
        let start = [
            ("grid_ns", grid.as_ticks().to_string()),
            ("virtual_time", u8::from(app.is_virtual()).to_string()),
            ("task_set", task_set(app)),
        ];
        let start = start.map(|(key, value)| (key.to_owned(), value));
        self.has_start = true;
        writer.write_metadata(&metadata(START, start)).map_err(to_io)
    }

    /// Starts a part in `file`.
    fn open(&mut self, file: File) -> io::Result<()> {
        let (channels, clock) = self.setup.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let mut writer = writer(BufWriter::new(file))?;
        let text = |key: &str, value: u64| (key.to_owned(), value.to_string());
        let clock = [text("offset_ns", clock.offset_ns()), text("part", self.part.into())];
        writer.write_metadata(&metadata(CLOCK, clock)).map_err(to_io)?;
        self.ids.clear();
        for channel in channels {
            let definition = Dialect::Ros2.definition(channel.description);
            let name = channel.description.name();
            let schema = writer.add_schema(name, "ros2msg", definition.as_bytes()).map_err(to_io)?;
            let rate = channel.hz.map(|hz| ("hz".to_owned(), hz.to_string()));
            let direction = channel.is_input.then(|| ("direction".to_owned(), "in".to_owned()));
            let entries = BTreeMap::from_iter(rate.into_iter().chain(direction));
            self.ids.push(writer.add_channel(schema, channel.topic, "cdr", &entries).map_err(to_io)?);
        }
        writer.flush().map_err(to_io)?;
        self.writer = Some(writer);
        (self.bytes, self.first_ns, self.has_start) = (0, None, false);
        self.write_start()
    }

    /// Completes the present part.
    fn close(&mut self) -> io::Result<()> {
        self.write_start()?;
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        if let Some((_, clock)) = &self.setup {
            let now = ("offset_ns".to_owned(), clock.offset_now_ns().to_string());
            writer.write_metadata(&metadata("punctual.clock.end", [now])).map_err(to_io)?;
        }
        writer.finish().map_err(to_io)?;
        let file = writer.into_inner().into_inner();
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()
    }
}

impl Sink for Recording {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn begin(&mut self, channels: &[Channel], clock: Clock) -> io::Result<()> {
        self.setup = Some((channels.to_vec(), clock));
        self.app = RunningApp::current();
        let file = self.file.take().ok_or(io::ErrorKind::AlreadyExists)?;
        self.open(file)
    }

    fn write(&mut self, _: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        let bytes = sample.payload.len() as u64 + OVERHEAD_BYTES;
        if let Some(first) = self.first_ns
            && (self.bytes + bytes > self.limit_bytes
                || sample.time_ns.saturating_sub(first) >= self.limit_ns)
        {
            self.close()?;
            self.part += 1;
            let file = new_file(&part_path(&self.path, self.part))?;
            self.open(file)?;
        }
        let writer = self.writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let header = MessageHeader {
            channel_id: self.ids[sample.channel],
            sequence: sample.sequence,
            log_time: sample.time_ns,
            publish_time: sample.monotonic_ns,
        };
        let written = writer.write_to_known_channel(&header, sample.payload);
        written.map_err(|error| incomplete(error, self.pending))?;
        self.pending += 1;
        self.bytes += bytes;
        self.first_ns.get_or_insert(sample.time_ns);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_start().map_err(|error| incomplete(error.into(), self.pending))?;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.flush().map_err(|error| incomplete(error, self.pending))?;
        self.pending = 0;
        Ok(())
    }

    fn end(&mut self, lost: &[(&'static str, u64)]) -> io::Result<()> {
        if let Some(writer) = &mut self.writer {
            let lost = lost.iter().map(|(topic, lost)| ((*topic).to_owned(), lost.to_string()));
            writer.write_metadata(&metadata("punctual.losses", lost)).map_err(to_io)?;
        }
        self.close()
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording")
            .field("path", &self.path)
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

/// Returns the path of a part of the recording `path`.
pub(crate) fn part_path(path: &Path, part: u32) -> PathBuf {
    if part == 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{part}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Returns a writer of chunks without compression.
pub(crate) fn writer(file: BufWriter<File>) -> io::Result<Writer<NoSeek<BufWriter<File>>>> {
    let options = WriteOptions::new()
        .compression(None)
        .chunk_size(Some(CHUNK_BYTES))
        // A chunk is collected in memory and then written, rather than written and then patched.
        .disable_seeking(true)
        .profile("ros2")
        .library(concat!("punctual-bridge ", env!("CARGO_PKG_VERSION")));
    options.create(NoSeek::new(file)).map_err(to_io)
}

pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    punctual_files::create_new(path).map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::AlreadyExists => "; recordings are not overwritten, name or move it",
            io::ErrorKind::NotFound => "; make the directory first",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; name a directory that this user can write to"
            }
            io::ErrorKind::StorageFull => "; make room, or name another disk",
            _ => "",
        };
        io::Error::new(error.kind(), format!("{}: {error}{advice}", path.display()))
    })
}

fn metadata(name: &str, entries: impl IntoIterator<Item = (String, String)>) -> Metadata {
    Metadata { name: name.into(), metadata: entries.into_iter().collect() }
}

/// Describes an error of a recording, and its consequence for the content.
fn incomplete(error: McapError, pending: u64) -> io::Error {
    let error = to_io(error);
    let before = match pending {
        0 => String::new(),
        _ => format!(", without up to {pending} messages that were taken before"),
    };
    let advice = match error.kind() {
        io::ErrorKind::StorageFull => "; make room, or name another disk, for the next run",
        _ => "",
    };
    io::Error::new(error.kind(), format!("{error}; it can be read to its last chunk{before}{advice}"))
}

pub(crate) fn to_io(error: McapError) -> io::Error {
    match error {
        McapError::Io(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use crate::messages::Vector3;

    #[test]
    fn counts_messages_since_the_last_flush() {
        let place = tempfile::tempdir().unwrap();
        let mut recording = Recording::create(place.path().join("pending.mcap")).unwrap();
        let description = Vector3::DESCRIPTION;
        let qos = crate::Qos::DEFAULT;
        let channel = Channel { topic: "/angles", hz: None, capacity: 4, qos, description, is_input: false };
        recording.begin(&[channel], Clock::of_virtual_time(0)).unwrap();
        let sample = Sample { channel: 0, time_ns: 0, monotonic_ns: 0, sequence: 0, payload: &[0; 28] };
        for _ in 0..2 {
            recording.write(&channel, &sample).unwrap();
            recording.write(&channel, &sample).unwrap();
            assert_eq!(recording.pending, 2);
            recording.flush().unwrap();
            assert_eq!(recording.pending, 0);
        }
        recording.end(&[]).unwrap();
    }
}

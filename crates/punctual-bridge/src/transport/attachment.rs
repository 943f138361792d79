//! The transport's side: attaching to an app, reading its topics, and publishing on them.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use punctual_sync::shared::{BroadcastReader, BroadcastWriter};
use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::layout::{
    Direction, ENCODING_ROS1, MAX_LENGTH, SEAT_MAGIC, TopicInfo, VERSION, read, seat, topics,
};
use super::memory::{Access, Mapping, WORD};
use super::socket::{self, SOCKETS};
use crate::local::{LIST, app_of, dial, dial_address, sockets};
use crate::peer::Peer;

/// The time limit for the app's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which a waiting transport beats, and checks whether the app still runs.
const BEAT_INTERVAL: Duration = Duration::from_millis(100);

/// The error of [`Attachment::open`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// There is no such app.
    #[error(
        "no running app of this user named {0} admits transports: start it, or pass the path of its socket"
    )]
    NoApp(String),
    /// Several apps match.
    #[error("{} match {wanted}: pass a process number", .found.join(" and "))]
    Several {
        /// The requested name.
        wanted: String,
        /// The matching apps.
        found: Vec<String>,
    },
    /// The name of the transport is invalid.
    #[error(
        "{0:?} is not a valid name of a transport: it must consist of up to 48 letters, digits, `-`, `_` and `.`, not only digits"
    )]
    Name(String),
    /// The app refuses the transport.
    #[error("the app refuses the transport: {0}")]
    Refused(String),
    /// The app does not answer.
    #[error("the app does not answer within {} s: it may be stopped", ANSWER_TIMEOUT.as_secs())]
    Silent,
    /// The app and this program do not agree on the interface.
    #[error(
        "the app's topics file cannot be used: {0}; build the app and the transport with one version of punctual-bridge"
    )]
    Incompatible(&'static str),
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// The object of the call.
        what: String,
        /// The reason.
        error: io::Error,
    },
}

/// A connection of a transport to an app, which lasts until either process ends.
///
/// ```no_run
/// use std::time::Duration;
/// use punctual_bridge::transport::Attachment;
///
/// let mut app = Attachment::open("gimbal", "printer")?;
/// while app.wait(Duration::from_secs(1)) {
///     app.read(|topic, message| println!("{}: {} bytes", topic.name, message.payload.len()));
/// }
/// # Ok::<(), punctual_bridge::transport::AttachError>(())
/// ```
///
/// A transport that does not call [`read`](Self::read) or [`wait`](Self::wait) for half a second is
/// reported by the app as stopped. One that is started again under the same name continues with the
/// messages that its predecessor has not read, as far as they have not been overwritten. Messages
/// of the last reading before a kill can arrive again.
pub struct Attachment {
    topics: Arc<[TopicInfo]>,
    /// The reader and the counts of each outgoing topic. Dropped before the memory.
    readers: Vec<Option<Reader>>,
    /// `true` for each topic with a publisher.
    published: Vec<bool>,
    buffer: Vec<u64>,
    stream: UnixStream,
    process: u32,
    /// The value of the bell when the last reading began.
    bell: u32,
    file: Arc<Mapping>,
    seat: Arc<Mapping>,
}

struct Reader {
    end: BroadcastReader<'static>,
    capacity: usize,
    taken: u64,
    /// Messages that were taken, but not forwarded.
    dropped: u64,
}

impl Reader {
    /// Shows the app the position and the counts.
    fn store_counts(&self, seat: &Mapping, topic: usize) {
        let (taken, lost) = (self.taken - self.dropped, self.lost());
        for (offset, value) in [self.end.position(), taken, lost].into_iter().enumerate() {
            store(seat, seat::COUNTS + topic * seat::COUNT_WORDS + offset, value);
        }
    }

    const fn lost(&self) -> u64 {
        self.end.lost().wrapping_add(self.dropped)
    }
}

/// A message of an outgoing topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutgoingMessage<'a> {
    /// The index of its topic in [`Attachment::topics`].
    pub topic: usize,
    /// The release of the job that published it, in ns of `CLOCK_MONOTONIC`.
    pub released_ns: u64,
    /// The same in ns since 1970, by the app's clock.
    pub time_ns: u64,
    /// Its sequence number in the topic. Lost messages leave a gap.
    pub sequence: u32,
    /// Its bytes: CDR with its header, as in ROS 2.
    pub payload: &'a [u8],
}

impl Attachment {
    /// Attaches to an app as the transport `name`. `app` is the app's name, its process number, or
    /// the path of its socket if it contains `/`.
    ///
    /// Waits for the app's answer for at most 5 s.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn open(app: &str, name: &str) -> Result<Self, AttachError> {
        if !crate::local::is_name(name) {
            return Err(AttachError::Name(name.to_owned()));
        }
        let system = |error| AttachError::System { what: app.to_owned(), error };
        let stream = if app.contains('/') {
            let address = SocketAddrUnix::new(Path::new(app)).map_err(|error| system(error.into()))?;
            dial_address(&address).map_err(system)?
        } else {
            find(app)?
        };
        let process = Peer::of(&stream).map_err(system)?.process;
        Self::greet(stream, process, name, ANSWER_TIMEOUT)
    }

    fn greet(stream: UnixStream, process: u32, name: &str, limit: Duration) -> Result<Self, AttachError> {
        let system = |error| AttachError::System { what: "the app's socket".to_owned(), error };
        stream.set_nonblocking(false).map_err(system)?;
        stream.set_read_timeout(Some(limit)).map_err(system)?;
        stream.set_write_timeout(Some(limit)).map_err(system)?;
        io::Write::write_all(&mut &stream, socket::greeting(name).as_bytes()).map_err(system)?;
        let answer = socket::receive_answer(&stream).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => AttachError::Silent,
            _ => system(error),
        })?;
        let [file, seat] = answer.map_err(AttachError::Refused)?;
        let map = |file: &dyn AsFd, access| {
            let length = rustix::fs::fstat(file.as_fd()).map_or(0, |file| file.st_size);
            let length = usize::try_from(length).ok().filter(|&length| length <= MAX_LENGTH);
            Mapping::new(file.as_fd(), length.unwrap_or_default(), access).map_err(system)
        };
        let (file, seat) = (map(&file, Access::Read)?, map(&seat, Access::ReadWrite)?);
        Self::new(stream, process, file, seat)
    }

    fn new(stream: UnixStream, process: u32, file: Mapping, seat: Mapping) -> Result<Self, AttachError> {
        let incompatible = AttachError::Incompatible;
        let (file, seat) = (Arc::new(file), Arc::new(seat));
        let topics = read(file.words(), seat.words().len()).map_err(incompatible)?;
        let seat_header = [seat::MAGIC, seat::VERSION].map(|word| load(&seat, word));
        let counts_end = seat::COUNTS + topics.len() * seat::COUNT_WORDS;
        if seat_header != [SEAT_MAGIC, VERSION] || counts_end > seat.words().len() {
            return Err(incompatible("the seat file is malformed"));
        }
        // SAFETY: the readers are dropped before the memory, a later field of the same structure,
        // and are not moved out of it.
        let words: &'static [AtomicU64] = unsafe { file.unbounded_words() };
        let reader = |(index, topic): (usize, &TopicInfo)| {
            if topic.direction == Direction::Incoming {
                return Some(None);
            }
            let mut end = BroadcastReader::new(words.get(topic.ring..)?, topic.layout()?)?;
            end.resume(load(&seat, seat::COUNTS + index * seat::COUNT_WORDS));
            Some(Some(Reader { end, capacity: topic.capacity, taken: 0, dropped: 0 }))
        };
        let readers = topics.iter().enumerate().map(reader).collect::<Option<Vec<_>>>();
        let readers = readers.ok_or(incompatible("a ring is outside of the files"))?;
        let buffer = topics.iter().map(|topic| topic.max_bytes.div_ceil(WORD)).max().unwrap_or_default();
        let bell = file.futex(topics::BELL).map_or(0, |bell| bell.load(Ordering::Relaxed)).wrapping_sub(1);
        let published = vec![false; topics.len()];
        let buffer = vec![0; buffer];
        Ok(Self { topics: topics.into(), readers, published, buffer, stream, process, bell, file, seat })
    }

    /// Returns the topics.
    pub fn topics(&self) -> &[TopicInfo] {
        &self.topics
    }

    /// Returns the app's process number; 0 if it is in another PID namespace.
    pub const fn process(&self) -> u32 {
        self.process
    }

    /// Passes all messages that have arrived to `take`, topic by topic, and returns their number.
    ///
    /// At most as many of each topic as its ring holds, so that a fast topic does not delay the
    /// others.
    pub fn read(&mut self, mut take: impl FnMut(&TopicInfo, &OutgoingMessage<'_>)) -> usize {
        self.beat();
        // Before the messages, so that a message published after this makes `wait` return.
        self.bell = self.file.futex(topics::BELL).map_or(0, |bell| bell.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let clock = load(&self.file, topics::CLOCK);
        let mut count = 0;
        let parts = self.readers.iter_mut().zip(self.topics.iter()).enumerate();
        for (topic, (reader, info)) in parts {
            let Some(reader) = reader else { continue };
            for _ in 0..reader.capacity {
                let Some(message) = reader.end.read(&mut self.buffer) else { break };
                let released_ns = message.instant.as_ticks();
                let time_ns = released_ns.wrapping_add(clock);
                let (sequence, payload) = (message.sequence, message.bytes);
                reader.taken += 1;
                take(info, &OutgoingMessage { topic, released_ns, time_ns, sequence, payload });
                count += 1;
            }
            reader.store_counts(&self.seat, topic);
        }
        count
    }

    /// Counts messages of a topic as lost that were read, but that the network has not accepted.
    pub fn count_dropped(&mut self, topic: usize, count: u64) {
        if let Some(Some(reader)) = self.readers.get_mut(topic) {
            reader.dropped = reader.dropped.saturating_add(count).min(reader.taken);
            reader.store_counts(&self.seat, topic);
        }
    }

    /// Returns the number of messages of a topic that were overwritten before this transport read
    /// them, or [dropped](Self::count_dropped).
    pub fn lost(&self, topic: usize) -> u64 {
        self.readers.get(topic).and_then(Option::as_ref).map_or(0, Reader::lost)
    }

    /// Waits until messages have been published since the last reading began, for at most `limit`.
    /// Returns `false` if the app has ended; then a last reading gets its last messages.
    pub fn wait(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            self.beat();
            if self.has_ended() {
                return false;
            }
            let left = end.saturating_duration_since(Instant::now()).min(BEAT_INTERVAL);
            let Some(bell) = self.file.futex(topics::BELL) else { return false };
            let Ok(timeout) = Timespec::try_from(left) else { return false };
            let flags = rustix::thread::futex::Flags::empty();
            let result = rustix::thread::futex::wait(bell, flags, self.bell, Some(&timeout));
            if result == Err(Errno::AGAIN) || bell.load(Ordering::Relaxed) != self.bell {
                return true;
            }
            if Instant::now() >= end {
                return true;
            }
        }
    }

    /// Shows the app that this transport is alive; [`read`](Self::read) and [`wait`](Self::wait) do
    /// so, too.
    pub fn beat(&self) {
        let beats = load(&self.seat, seat::HEARTBEAT);
        store(&self.seat, seat::HEARTBEAT, beats.wrapping_add(1));
    }

    /// Returns `true` if the app has ended.
    pub fn has_ended(&self) -> bool {
        load(&self.file, topics::ENDED) != 0 || socket::has_ended(&self.stream)
    }

    /// Declares that this transport publishes in the layout of ROS 1, see
    /// [`Layout::Packed`](crate::message::Layout::Packed), instead of CDR.
    pub fn publish_packed(&mut self) {
        store(&self.seat, seat::ENCODING, ENCODING_ROS1);
    }

    /// Returns the publishing end of an incoming topic; `None` if there is no such topic, or after
    /// the first call.
    pub fn publisher(&mut self, name: &str) -> Option<IncomingPublisher> {
        let is_named = |topic: &TopicInfo| topic.direction == Direction::Incoming && topic.name == name;
        let index = self.topics.iter().position(is_named)?;
        if std::mem::replace(self.published.get_mut(index)?, true) {
            return None;
        }
        let topic = &self.topics[index];
        // SAFETY: the writer is dropped before the memory, a later field of the same structure, and
        // is not moved out of it.
        let words: &'static [AtomicU64] = unsafe { self.seat.unbounded_words() };
        let writer = BroadcastWriter::new(words.get(topic.ring..)?, topic.layout()?)?;
        Some(IncomingPublisher { writer, max_bytes: topic.max_bytes, _memory: Arc::clone(&self.seat) })
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut attachment = f.debug_struct("Attachment");
        attachment.field("process", &self.process).field("topics", &self.topics).finish_non_exhaustive()
    }
}

/// The message is longer than any message of its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of {length} bytes was not published: the topic's type has at most {max_bytes}")]
#[non_exhaustive]
pub struct TooLong {
    /// Its length, in bytes.
    pub length: usize,
    /// The maximum, in bytes.
    pub max_bytes: usize,
}

/// The publishing end of an incoming topic of an [`Attachment`]. It may be used by another thread.
pub struct IncomingPublisher {
    // Dropped before the memory.
    writer: BroadcastWriter<'static>,
    max_bytes: usize,
    _memory: Arc<Mapping>,
}

impl IncomingPublisher {
    /// Publishes a message: CDR with its header. The app takes it within about a millisecond,
    /// checks it, and counts it. Of more than 63 messages in this time, the oldest ones are lost
    /// and counted by the app.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn publish(&mut self, payload: &[u8]) -> Result<(), TooLong> {
        let Self { writer, max_bytes, .. } = self;
        let sequence = writer.position() as u32;
        let published = writer.publish(punctual::now(), sequence, payload);
        published.map_err(|_| TooLong { length: payload.len(), max_bytes: *max_bytes })
    }
}

impl fmt::Debug for IncomingPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingPublisher").field("writer", &self.writer).finish_non_exhaustive()
    }
}

fn load(memory: &Mapping, word: usize) -> u64 {
    memory.words().get(word).map_or(0, |word| word.load(Ordering::Relaxed))
}

fn store(memory: &Mapping, word: usize, value: u64) {
    if let Some(word) = memory.words().get(word) {
        word.store(value, Ordering::Relaxed);
    }
}

/// Connects to the app of this user with this name or process number.
fn find(wanted: &str) -> Result<UnixStream, AttachError> {
    let list = fs::read(LIST).map_err(|error| AttachError::System { what: LIST.into(), error })?;
    let mut found = vec![];
    for socket in sockets(&String::from_utf8_lossy(&list), SOCKETS) {
        let Some(app) = app_of(socket, SOCKETS) else { continue };
        // Names are not numbers.
        if app != wanted && wanted.parse::<u32>().is_err() {
            continue;
        }
        // It has ended, or its backlog is full. Any user may listen under any name.
        let Ok(stream) = dial(socket) else { continue };
        let Ok(peer) = Peer::of(&stream) else { continue };
        if peer.is_own() && (app == wanted || peer.process.to_string() == wanted) {
            found.push((stream, format!("{app} (process {})", peer.process)));
        }
    }
    match found.pop() {
        Some((stream, _)) if found.is_empty() => Ok(stream),
        Some((_, last)) => {
            let mut found: Vec<String> = found.into_iter().map(|(_, app)| app).collect();
            found.push(last);
            Err(AttachError::Several { wanted: wanted.to_owned(), found })
        }
        None => Err(AttachError::NoApp(wanted.to_owned())),
    }
}

#[cfg(test)]
impl Attachment {
    /// Returns the seat file, as a hostile transport sees it.
    pub(super) fn seat_words(&self) -> &[AtomicU64] {
        self.seat.words()
    }

    pub(super) fn send_raw(&self, bytes: &[u8]) {
        io::Write::write_all(&mut &self.stream, bytes).unwrap();
    }
}

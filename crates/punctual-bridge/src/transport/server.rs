//! The app's side: the topics file, its socket, and the seats of transports.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use punctual::background::{Traffic, warn};
use punctual_sync::shared::BroadcastWriter;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::SocketAddrUnix;

use super::TransportReport;
use super::layout::{MAX_TOPICS, TopicInfo, place, topics, write};
use super::memory::{Mapping, create, seal};
use super::seat::Seat;
use super::socket::{self, Greeting, SOCKETS};
use crate::message::{Description, Layout};
use crate::peer::Peer;
use crate::qos::Qos;
use crate::sink::Channel;
use crate::{Message, Subscription};

/// The interval of the bridge's thread while it serves transports.
pub(crate) const INTERVAL: Duration = Duration::from_millis(1);
/// The interval at which connections and heartbeats are checked.
const SUPERVISION_INTERVAL: Duration = Duration::from_millis(10);
/// The time in which a new connection has to send its greeting.
const GREETING_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of connections without a greeting; further ones wait in the kernel's queue.
const MAX_PENDING: usize = 8;
/// The interval of warnings about refused connections.
const NOTICE_INTERVAL: Duration = Duration::from_secs(1);
const DEFAULT_SEATS: usize = 4;
/// The maximum number of names whose counts are remembered, in addition to the attached ones.
const MAX_NAMES: usize = 16;

/// Admits transports, which are separate processes, to the topics of a [`Bridge`](crate::Bridge).
///
/// ```no_run
/// use punctual_bridge::messages::Vector3;
/// use punctual_bridge::{Bridge, Incoming, Topic, TransportServer};
///
/// static ANGLES: Topic<Vector3, 64> = Topic::new("/angles").hz(100);
/// static SETPOINT: Incoming<Vector3> = Incoming::new("/setpoint", Vector3 { x: 0.0, y: 0.0, z: 0.0 });
///
/// let setpoint = SETPOINT.subscribe().expect("the subscription is free");
/// let transports = TransportServer::new("gimbal").subscribe(setpoint);
/// let bridge = Bridge::new().topic(&ANGLES).transports(transports).start()?;
/// # Ok::<(), punctual_bridge::StartError>(())
/// ```
///
/// Processes of the same user then attach by the name `gimbal`. With [`path`](Self::path) every
/// process that may open that socket can attach: other users, systemd units, and containers.
///
/// A transport is not trusted. It can read the outgoing topics, and publish on the incoming ones,
/// whose messages are decoded and checked like those of any sender. It can neither change the
/// topics file, nor delay a task: tasks never access memory that a transport can write. A transport
/// that stops, floods or dies is reported within a second, and counted in [`TransportReport`].
pub struct TransportServer {
    name: String,
    path: Option<PathBuf>,
    max_seats: usize,
    incoming: Vec<Box<dyn Receive>>,
}

impl TransportServer {
    /// Creates a server for the app `name`: up to 48 letters, digits, `-`, `_` and `.`, not only
    /// digits.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), path: None, max_seats: DEFAULT_SEATS, incoming: vec![] }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the incoming topics.
    pub(crate) fn incoming_mut(&mut self) -> &mut Vec<Box<dyn Receive>> {
        &mut self.incoming
    }

    /// Listens at a socket in the file system instead of an abstract one. Its mode is 0660. The
    /// directory must be writable by its owner only, such as a `RuntimeDirectory` of systemd. The
    /// socket of a killed app is replaced. At the end the app removes its socket, and not that of
    /// another app that has replaced it. The file system cannot check and remove in one step: start
    /// only one app at a path at a time.
    #[must_use]
    pub fn path(self, path: impl AsRef<Path>) -> Self {
        Self { path: Some(path.as_ref().to_owned()), ..self }
    }

    /// Sets the maximum number of transports that are attached at a time, 4 by default.
    #[must_use]
    pub fn max_seats(self, max_seats: usize) -> Self {
        Self { max_seats, ..self }
    }

    /// Receives the messages of this topic from transports. Its check and its release run on the
    /// bridge's thread.
    #[must_use]
    pub fn subscribe<T: Message>(mut self, subscription: Subscription<T>) -> Self {
        self.incoming.push(Box::new(subscription));
        self
    }

    /// Creates the topics file and the socket.
    pub(crate) fn start(self, channels: &[Channel]) -> io::Result<Server> {
        let Self { name, path, max_seats, incoming } = self;
        let invalid = |text: String| io::Error::new(ErrorKind::InvalidInput, text);
        if !crate::local::is_name(&name) {
            return Err(invalid(format!(
                "{name:?} is not a valid app name: it must consist of up to 48 letters, digits, `-`, `_` and \
                 `.`, not only digits"
            )));
        }
        let mut topics: Vec<TopicInfo> = channels.iter().map(TopicInfo::outgoing).collect();
        topics.extend(
            incoming.iter().map(|topic| TopicInfo::incoming(topic.name(), topic.description(), topic.qos())),
        );
        let too_large = || invalid("the topics do not fit in shared memory: reduce capacities".into());
        if topics.len() > MAX_TOPICS {
            return Err(invalid(format!("a bridge with transports has at most {MAX_TOPICS} topics")));
        }
        let lengths = place(&mut topics).ok_or_else(too_large)?;
        let (file, memory) = create(&format!("punctual-topics:{name}"), lengths[0])?;
        write(memory.words(), &topics, lengths);
        seal(&file, true)?;
        // SAFETY: the writers are dropped before the memory, a later field of `Server`, and are not
        // moved out of it.
        let words: &'static [AtomicU64] = unsafe { memory.unbounded_words() };
        let rings = topics.iter().enumerate().map(|(index, topic)| {
            let is_outgoing = index < channels.len();
            let ring = || Ring::new(words.get(topic.ring..)?, topic);
            if is_outgoing { ring().ok_or_else(too_large).map(Some) } else { Ok(None) }
        });
        let rings = rings.collect::<io::Result<Vec<_>>>()?;
        let buffer = topics.iter().map(|topic| topic.max_bytes.div_ceil(8)).max().unwrap_or_default();
        let listener = Listener::new(&name, path)?;
        let now = Instant::now();
        Ok(Server {
            listener,
            max_seats,
            rings,
            seats: vec![],
            pending: vec![],
            names: vec![],
            incoming,
            buffer: vec![0; buffer],
            has_new: false,
            supervised: now,
            refused: Refused { count: 0, logged: None },
            topics,
            seat_length: lengths[1],
            file,
            memory,
        })
    }
}

impl fmt::Debug for TransportServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut server = f.debug_struct("TransportServer");
        server.field("name", &self.name).field("path", &self.path).finish_non_exhaustive()
    }
}

/// A subscription to messages of any type.
pub(crate) trait Receive: Send {
    fn name(&self) -> &'static str;
    fn description(&self) -> &'static Description;
    fn qos(&self) -> Qos;
    /// Decodes and accepts the message, or counts why not.
    fn take(&mut self, bytes: &[u8], layout: Layout, sender: &str) -> Result<(), ()>;
}

impl<T: Message> Receive for Subscription<T> {
    fn name(&self) -> &'static str {
        self.topic()
    }

    fn description(&self) -> &'static Description {
        T::DESCRIPTION
    }

    fn qos(&self) -> Qos {
        Self::qos(self)
    }

    fn take(&mut self, bytes: &[u8], layout: Layout, sender: &str) -> Result<(), ()> {
        Self::take(self, bytes, layout, &sender).map_err(drop)
    }
}

/// The ring of an outgoing topic.
pub(super) struct Ring {
    writer: BroadcastWriter<'static>,
    capacity: u64,
}

impl Ring {
    fn new(words: &'static [AtomicU64], topic: &TopicInfo) -> Option<Self> {
        let writer = BroadcastWriter::new(words, topic.layout()?)?;
        Some(Self { writer, capacity: topic.capacity as u64 })
    }

    pub(super) const fn position(&self) -> u64 {
        self.writer.position()
    }

    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }
}

/// A connection that has not sent its greeting.
struct Pending {
    stream: UnixStream,
    process: u32,
    received: Vec<u8>,
    end: Instant,
}

/// The counts of a name, and the positions of its last transport.
struct Name {
    report: TransportReport,
    positions: Option<Vec<u64>>,
    traffic: Traffic,
}

/// Connections that were refused.
struct Refused {
    count: u64,
    logged: Option<Instant>,
}

impl Refused {
    fn add(&mut self, reason: &str) {
        self.count += 1;
        if self.logged.is_none_or(|logged| logged.elapsed() >= NOTICE_INTERVAL) {
            self.logged = Some(Instant::now());
            warn(format_args!("a transport was refused: {reason}; {} so far", self.count));
        }
    }
}

/// The running server, on the bridge's thread.
pub(crate) struct Server {
    listener: Listener,
    max_seats: usize,
    /// For each topic, the ring if it is outgoing. Dropped before the memory.
    rings: Vec<Option<Ring>>,
    seats: Vec<Seat>,
    pending: Vec<Pending>,
    names: Vec<Name>,
    incoming: Vec<Box<dyn Receive>>,
    /// Room for any message.
    buffer: Vec<u64>,
    /// `true` if messages have been published since the bell last rang.
    has_new: bool,
    supervised: Instant,
    refused: Refused,
    topics: Vec<TopicInfo>,
    seat_length: usize,
    file: OwnedFd,
    memory: Mapping,
}

impl Server {
    /// Publishes a message, released at this time of `CLOCK_MONOTONIC`.
    pub(crate) fn publish(&mut self, topic: usize, released_ns: u64, sequence: u32, payload: &[u8]) {
        let Some(Some(ring)) = self.rings.get_mut(topic) else { return };
        let released = punctual::Instant::from_ticks(released_ns);
        // Slots have the size of the longest message.
        let published = ring.writer.publish(released, sequence, payload);
        debug_assert_eq!(published, Ok(()));
        self.has_new = true;
    }

    /// Ends a round of the bridge's thread: wakes waiting transports, and takes their messages.
    pub(crate) fn end_round(&mut self, clock_offset_ns: u64) {
        let set = |word: usize, value: u64| self.memory.words()[word].store(value, Ordering::Relaxed);
        set(topics::HEARTBEAT, punctual::now().as_ticks());
        set(topics::CLOCK, clock_offset_ns);
        if std::mem::take(&mut self.has_new) {
            self.ring();
        }
        for seat in &mut self.seats {
            seat.receive(&mut self.incoming, &mut self.buffer);
        }
        let now = Instant::now();
        if now.duration_since(self.supervised) >= SUPERVISION_INTERVAL {
            self.supervised = now;
            self.supervise(now);
        }
    }

    /// Wakes all transports that wait for messages.
    fn ring(&self) {
        let Some(bell) = self.memory.futex(topics::BELL) else { return };
        // Release: a transport that sees the new value sees the messages.
        bell.fetch_add(1, Ordering::Release);
        // It fails only for an unreadable address.
        let _ = rustix::thread::futex::wake(bell, rustix::thread::futex::Flags::empty(), i32::MAX as u32);
    }

    fn supervise(&mut self, now: Instant) {
        // First, so that the successor of a dead transport finds its position.
        let Self { rings, names, incoming, buffer, .. } = self;
        self.seats.retain_mut(|seat| {
            let stays = seat.supervise(rings, incoming, buffer, now);
            if let Some(name) = names.iter_mut().find(|name| name.report.name == seat.name) {
                name.report = seat.report(rings);
                let TransportReport { taken, lost, incoming_lost, rejected, .. } = name.report;
                name.traffic.set(taken, lost.wrapping_add(incoming_lost), rejected);
                name.positions = (!stays).then(|| seat.positions(rings));
            }
            stays
        });
        self.accept(now);
        let mut index = 0;
        while let Some(pending) = self.pending.get_mut(index) {
            match socket::receive_greeting(&pending.stream, &mut pending.received) {
                Greeting::Incomplete if now < pending.end => index += 1,
                Greeting::Complete(name) => {
                    let Pending { stream, process, .. } = self.pending.remove(index);
                    self.admit(name, stream, process);
                }
                Greeting::Incomplete | Greeting::Failed => {
                    self.pending.remove(index);
                    self.refused.add("it sent no valid greeting");
                }
                Greeting::None => drop(self.pending.remove(index)),
            }
        }
    }

    fn accept(&mut self, now: Instant) {
        // A limit of attempts, because connections of other users are closed at once.
        for _ in self.pending.len()..MAX_PENDING {
            let stream = match self.listener.socket.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Such as a lack of descriptors: the next round tries again.
                Err(error) => return self.refused.add(&error.to_string()),
            };
            let peer = Peer::of(&stream);
            // A socket in the file system admits all processes that may open it.
            if self.listener.path.is_none() && !peer.as_ref().is_ok_and(|peer| peer.is_own()) {
                self.refused.add("it belongs to another user");
                continue;
            }
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let process = peer.map_or(0, |peer| peer.process);
            self.pending.push(Pending { stream, process, received: vec![], end: now + GREETING_TIMEOUT });
        }
    }

    fn admit(&mut self, name: String, stream: UnixStream, process: u32) {
        let refusal = if self.seats.len() >= self.max_seats {
            Some(format!("all {} seats are taken", self.max_seats))
        } else if self.seats.iter().any(|seat| seat.name == name) {
            Some(format!("a transport named {name} is attached"))
        } else {
            None
        };
        if let Some(reason) = refusal {
            socket::refuse(&stream, &reason);
            return self.refused.add(&reason);
        }
        let index = self.remember(&name);
        let Name { report, positions, .. } = &mut self.names[index];
        let newest = || self.rings.iter().map(|ring| ring.as_ref().map_or(0, Ring::position)).collect();
        let positions = positions.clone().unwrap_or_else(newest);
        let before = TransportReport { attached: report.attached + 1, ..report.clone() };
        let table = (&self.file, &*self.topics, self.seat_length);
        match Seat::hand_over(name, stream, process, before, table, &positions) {
            Ok(seat) => self.seats.push(seat),
            Err(error) => self.refused.add(&error.to_string()),
        }
    }

    /// Returns the index of the counts of `name`. The counts of a detached transport may be
    /// forgotten.
    fn remember(&mut self, name: &str) -> usize {
        if let Some(index) = self.names.iter().position(|known| known.report.name == name) {
            return index;
        }
        if self.names.len() >= MAX_NAMES + self.max_seats {
            let is_free = |known: &Name| self.seats.iter().all(|seat| seat.name != known.report.name);
            if let Some(index) = self.names.iter().position(is_free) {
                self.names.remove(index);
            }
        }
        let report = TransportReport { name: name.to_owned(), ..TransportReport::default() };
        let traffic = Traffic::new(&format!("transport {name}"));
        self.names.push(Name { report, positions: None, traffic });
        self.names.len() - 1
    }

    /// Marks the app as ended, and returns the counts.
    pub(crate) fn finish(mut self) -> Vec<TransportReport> {
        let buffer = &mut self.buffer;
        self.seats.iter_mut().for_each(|seat| seat.receive(&mut self.incoming, buffer));
        self.memory.words()[topics::ENDED].store(1, Ordering::Release);
        self.ring();
        for seat in &self.seats {
            if let Some(name) = self.names.iter_mut().find(|name| name.report.name == seat.name) {
                name.report = seat.report(&self.rings);
            }
        }
        self.names.drain(..).map(|name| name.report).collect()
    }
}

/// The listening socket.
struct Listener {
    socket: UnixListener,
    /// Its file, removed at the end.
    path: Option<PathBuf>,
    /// The device and the number of that file. The socket reserves the number.
    file: Option<(u64, u64)>,
}

impl Listener {
    fn new(name: &str, path: Option<PathBuf>) -> io::Result<Self> {
        let Some(path) = path else {
            return Ok(Self { socket: crate::local::listen(SOCKETS, name)?, path, file: None });
        };
        let context = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let socket = match UnixListener::bind(&path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_abandoned(&path) => {
                fs::remove_file(&path).map_err(context)?;
                UnixListener::bind(&path)
            }
            result => result,
        }
        .map_err(context)?;
        let file = file_at(&path);
        let admitted = admit_group(&path).map_err(context);
        let listener = Self { socket, path: Some(path), file };
        admitted?;
        listener.socket.set_nonblocking(true)?;
        Ok(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && self.file.is_some()
            && file_at(path) == self.file
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the device and the number of the file at a path.
fn file_at(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Lets the group connect to the socket at a path. Another user who can write the directory may
/// have replaced it since it was bound, so it follows no link and changes no other file.
fn admit_group(path: &Path) -> io::Result<()> {
    let socket = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let stat = rustix::fs::fstat(&socket)?;
    let is_socket = FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
    if !is_socket || stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("another user has replaced the socket; choose a directory of your own"));
    }
    // A descriptor that only names a file accepts no other call.
    let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
    fs::set_permissions(link, fs::Permissions::from_mode(0o660))
}

/// Returns `true` for a socket at which no process listens.
fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let dialed =
        || SocketAddrUnix::new(path).map_err(io::Error::from).and_then(|to| crate::local::dial_address(&to));
    is_socket && dialed().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

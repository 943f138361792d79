//! A transport as seen by the app. Nothing in its file is trusted.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use punctual::background::warn;
use punctual_sync::shared::BroadcastReader;

use super::TransportReport;
use super::layout::{Direction, ENCODING_ROS1, SEAT_MAGIC, TopicInfo, VERSION, seat};
use super::memory::{Mapping, create, seal};
use super::server::{Receive, Ring};
use super::socket;
use crate::message::Layout;

/// The time without a heartbeat after which a transport is reported as stopped.
pub(super) const SILENCE_LIMIT: Duration = Duration::from_millis(500);
/// The interval of warnings about continuing losses.
const NOTICE_INTERVAL: Duration = Duration::from_secs(1);

/// The seat of an attached transport.
pub(super) struct Seat {
    pub(super) name: String,
    stream: UnixStream,
    process: u32,
    /// The ring of each incoming topic. Dropped before the memory.
    rings: Vec<Incoming>,
    /// The positions of the outgoing topics when this seat was created.
    first: Vec<u64>,
    /// The counts when this seat was created, by the previous transports of this name.
    before: TransportReport,
    heartbeat: u64,
    /// The time of the last change of the heartbeat.
    alive: Instant,
    pub(super) silent_since: Option<Instant>,
    /// The number of lost messages that were reported, and the time of the last report.
    logged: (u64, Option<Instant>),
    memory: Mapping,
}

/// The ring of an incoming topic.
struct Incoming {
    capacity: usize,
    reader: BroadcastReader<'static>,
    accepted: u64,
    rejected: u64,
}

impl Seat {
    /// Creates a seat, and hands it to the transport, which continues at these positions of the
    /// outgoing topics.
    pub(super) fn hand_over(
        name: String,
        stream: UnixStream,
        process: u32,
        before: TransportReport,
        table: (&OwnedFd, &[TopicInfo], usize),
        positions: &[u64],
    ) -> io::Result<Self> {
        let (topics_file, topics, length) = table;
        let (file, memory) = create("punctual-seat", length)?;
        seal(&file, false)?;
        // SAFETY: the readers are dropped before the memory, which is a later field of the same
        // structure, and are not moved out of it.
        let words: &'static [AtomicU64] = unsafe { memory.unbounded_words() };
        let set = |word: usize, value: u64| words[word].store(value, Ordering::Relaxed);
        set(seat::VERSION, VERSION);
        set(seat::LENGTH, length as u64);
        for (index, &position) in positions.iter().enumerate() {
            set(seat::COUNTS + index * seat::COUNT_WORDS, position);
        }
        let incoming = topics.iter().filter(|topic| topic.direction == Direction::Incoming);
        let rings = incoming.map(|topic| {
            let reader = BroadcastReader::new(words.get(topic.ring..)?, topic.layout()?)?;
            Some(Incoming { capacity: topic.capacity, reader, accepted: 0, rejected: 0 })
        });
        let rings = rings.collect::<Option<Vec<_>>>().ok_or(io::ErrorKind::InvalidData)?;
        words[seat::MAGIC].store(SEAT_MAGIC, Ordering::Release);
        socket::admit(&stream, [topics_file.as_fd(), file.as_fd()])?;
        let (alive, logged) = (Instant::now(), (before.lost.wrapping_add(before.incoming_lost), None));
        Ok(Self {
            name,
            stream,
            process,
            rings,
            first: positions.to_vec(),
            before,
            heartbeat: 0,
            alive,
            silent_since: None,
            logged,
            memory,
        })
    }

    /// Passes the messages that have arrived to the incoming topics: at most one ring of each, so a
    /// flood does not delay the other transports.
    pub(super) fn receive(&mut self, incoming: &mut [Box<dyn Receive>], buffer: &mut [u64]) {
        let layout = match self.load(seat::ENCODING) {
            ENCODING_ROS1 => Layout::Packed,
            // Messages with an unknown encoding are malformed CDR.
            _ => Layout::Cdr,
        };
        for (ring, topic) in self.rings.iter_mut().zip(incoming) {
            for _ in 0..ring.capacity {
                let Some(message) = ring.reader.read(buffer) else { break };
                match topic.take(message.bytes, layout, &self.name) {
                    Ok(()) => ring.accepted += 1,
                    Err(()) => ring.rejected += 1,
                }
            }
        }
    }

    /// Checks the heartbeat, and reports losses and silence. Returns `false` if the transport has
    /// ended.
    pub(super) fn supervise(
        &mut self,
        outgoing: &[Option<Ring>],
        incoming: &mut [Box<dyn Receive>],
        buffer: &mut [u64],
        now: Instant,
    ) -> bool {
        if socket::has_ended(&self.stream) {
            // Its last messages.
            self.receive(incoming, buffer);
            let report = self.report(outgoing);
            let unread = self.unread(outgoing);
            warn(format_args!(
                "the transport {} has detached: {report}; {unread} messages wait for its return",
                self
            ));
            return false;
        }
        let heartbeat = self.load(seat::HEARTBEAT);
        if heartbeat != self.heartbeat {
            (self.heartbeat, self.alive) = (heartbeat, now);
            if let Some(since) = self.silent_since.take() {
                let silence = now.duration_since(since).as_secs_f64();
                warn(format_args!("the transport {self} continues after {silence:.1} s"));
            }
        } else if self.silent_since.is_none() && now.duration_since(self.alive) >= SILENCE_LIMIT {
            self.silent_since = Some(self.alive);
            let unread = self.unread(outgoing);
            warn(format_args!(
                "the transport {self} has not responded for {:.1} s; {unread} messages are unread",
                SILENCE_LIMIT.as_secs_f64()
            ));
        }
        self.tell_losses(outgoing, now);
        true
    }

    fn tell_losses(&mut self, outgoing: &[Option<Ring>], now: Instant) {
        let report = self.report(outgoing);
        let lost = report.lost.wrapping_add(report.incoming_lost);
        let (logged, at) = self.logged;
        // A transport updates its position and its counts one after the other, so the sum may
        // decrease.
        let new = lost.saturating_sub(logged);
        if new > 0 && at.is_none_or(|at| now.duration_since(at) >= NOTICE_INTERVAL) {
            warn(format_args!("the transport {self}: {new} more messages lost: {report}"));
            self.logged = (lost, Some(now));
        }
    }

    /// Returns the counts, including those of the previous transports of this name. The transport
    /// claims some of them: those are limited to the number of published messages.
    pub(super) fn report(&self, outgoing: &[Option<Ring>]) -> TransportReport {
        let mut report = self.before.clone();
        for (index, ring) in outgoing.iter().enumerate() {
            let Some(ring) = ring else { continue };
            let first = self.first.get(index).copied().unwrap_or_default();
            let published = ring.position().wrapping_sub(first);
            let [_, taken, lost] = self.counts(index);
            let taken = taken.min(published);
            let lost = lost.saturating_add(self.overwritten(index, ring)).min(published - taken);
            report.taken = report.taken.wrapping_add(taken);
            report.lost = report.lost.wrapping_add(lost);
        }
        for ring in &self.rings {
            report.accepted = report.accepted.wrapping_add(ring.accepted);
            let rejected = ring.rejected.wrapping_add(ring.reader.malformed());
            report.rejected = report.rejected.wrapping_add(rejected);
            report.incoming_lost = report.incoming_lost.wrapping_add(ring.reader.lost());
        }
        report
    }

    /// Returns the positions that a successor continues at. They exclude overwritten messages,
    /// which the report of this transport counts.
    pub(super) fn positions(&self, outgoing: &[Option<Ring>]) -> Vec<u64> {
        let position = |(index, ring): (usize, &Option<Ring>)| {
            let overwritten = ring.as_ref().map_or(0, |ring| self.overwritten(index, ring));
            self.counts(index)[0].wrapping_add(overwritten)
        };
        outgoing.iter().enumerate().map(position).collect()
    }

    /// Returns the number of messages that are in the rings and that the transport has not read.
    fn unread(&self, outgoing: &[Option<Ring>]) -> u64 {
        let waiting = |(index, ring): (usize, &Option<Ring>)| {
            ring.as_ref().map_or(0, |ring| self.behind(index, ring).min(ring.capacity() - 1))
        };
        outgoing.iter().enumerate().map(waiting).sum()
    }

    /// Returns the number of messages that have been overwritten, but that the transport has not
    /// yet counted.
    fn overwritten(&self, index: usize, ring: &Ring) -> u64 {
        self.behind(index, ring).saturating_sub(ring.capacity() - 1)
    }

    /// Returns the distance of the transport's position from the last message, 0 if it claims to be
    /// ahead.
    fn behind(&self, index: usize, ring: &Ring) -> u64 {
        let behind = ring.position().wrapping_sub(self.counts(index)[0]);
        if behind > u64::MAX / 2 { 0 } else { behind }
    }

    /// Returns the claimed position, messages taken, and messages lost of a topic.
    fn counts(&self, index: usize) -> [u64; 3] {
        let first = seat::COUNTS + index * seat::COUNT_WORDS;
        [first, first + 1, first + 2].map(|word| self.load(word))
    }

    fn load(&self, word: usize) -> u64 {
        self.memory.words().get(word).map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

impl std::fmt::Display for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.process {
            // In another PID namespace.
            0 => f.write_str(&self.name),
            process => write!(f, "{} (process {process})", self.name),
        }
    }
}

//! The connections of clients: read, answered and bounded by one thread that waits for all of them
//! together.
//!
//! A client that sends nothing, sends slowly or does not read its answer delays no other client.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use punctual::background::warn;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::protocol::{Answer, MAX_BYTES, Request};
use super::server::{lock, set};
use super::tuning::Store;
use super::{Parameters, Refused, list};
use crate::peer::Peer;

/// Longest time from the start of a connection until its request has arrived, and from then until
/// its answer has been sent.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of open connections. Another one closes the oldest, so clients that hold
/// connections cannot lock others out.
const MAX_CONNECTIONS: usize = 32;
/// Pause after the kernel has refused a connection, for lack of a descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves clients until `stops` is closed at its other end.
pub(super) fn serve<P: Parameters>(
    listener: &UnixListener,
    stops: &UnixStream,
    timeout: Duration,
    store: &Mutex<Store<P>>,
) {
    let mut connections = VecDeque::new();
    let mut is_failing = false;
    // New connections are accepted only after this time.
    let mut pause_end = None;
    loop {
        let now = Instant::now();
        pause_end = pause_end.filter(|&end| now < end);
        let accepts = if pause_end.is_none() { PollFlags::IN } else { PollFlags::empty() };
        let mut waits = vec![PollFd::new(stops, PollFlags::IN), PollFd::new(listener, accepts)];
        waits.extend(connections.iter().map(Connection::wait));
        let ends = connections.iter().map(|connection| connection.end).chain(pause_end);
        let left = ends.min().map(|end| end.saturating_duration_since(now));
        // Rounded up, so that the deadline has passed when `poll` returns.
        let left = left.and_then(|time| Timespec::try_from(time + Duration::from_millis(1)).ok());
        // Signals are handled by other threads.
        if poll(&mut waits, left.as_ref()).is_err() {
            continue;
        }
        let is_ready = |wait: &PollFd<'_>| !wait.revents().is_empty();
        if is_ready(&waits[0]) {
            return;
        }
        let is_needed = is_ready(&waits[1]);
        connections.retain_mut(|connection| connection.advance(Instant::now(), store));
        if !is_needed {
            continue;
        }
        match accept(listener, &mut connections, timeout, store) {
            Ok(()) => is_failing = false,
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    warn(format_args!("parameters: cannot accept connections: {error}"));
                }
                pause_end = Some(Instant::now() + ACCEPT_PAUSE);
            }
        }
    }
}

/// Accepts waiting clients, up to the maximum number of connections.
fn accept<P: Parameters>(
    listener: &UnixListener,
    connections: &mut VecDeque<Connection>,
    timeout: Duration,
    store: &Mutex<Store<P>>,
) -> io::Result<()> {
    for _ in 0..MAX_CONNECTIONS {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            // After a client that has disconnected there may be others.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        let Some(connection) = Connection::new(stream, Instant::now(), timeout, store) else { continue };
        if connections.len() >= MAX_CONNECTIONS
            && let Some(oldest) = connections.pop_front()
        {
            oldest.give_up(store);
        }
        connections.push_back(connection);
    }
    Ok(())
}

/// One request and its answer.
pub(super) struct Connection {
    stream: UnixStream,
    /// The time limit of each state.
    timeout: Duration,
    /// The deadline of the present state.
    end: Instant,
    state: State,
}

enum State {
    /// The request received so far.
    Receiving(Vec<u8>),
    Answering {
        answer: Vec<u8>,
        sent: usize,
    },
}

impl Connection {
    /// Creates a connection of a client of this user. That of another user is counted and closed
    /// without reading it.
    pub(super) fn new<P: Parameters>(
        stream: UnixStream,
        now: Instant,
        timeout: Duration,
        store: &Mutex<Store<P>>,
    ) -> Option<Self> {
        if !Peer::of(&stream).is_ok_and(Peer::is_own) {
            lock(store).counts.strangers += 1;
            return None;
        }
        stream.set_nonblocking(true).ok()?;
        Some(Self { stream, timeout, end: now + timeout, state: State::Receiving(Vec::new()) })
    }

    /// Returns the event that the connection waits for.
    fn wait(&self) -> PollFd<'_> {
        let event = match self.state {
            State::Receiving(_) => PollFlags::IN,
            State::Answering { .. } => PollFlags::OUT,
        };
        PollFd::new(&self.stream, event)
    }

    /// Receives and sends as much as possible without blocking. Returns `false` if the connection
    /// is to be closed.
    pub(super) fn advance<P: Parameters>(&mut self, now: Instant, store: &Mutex<Store<P>>) -> bool {
        if let State::Receiving(bytes) = &mut self.state {
            let answer = match receive(&mut self.stream, bytes) {
                Received::All => answer(&self.stream, bytes, store),
                Received::Part if now < self.end => return true,
                Received::Part | Received::Wrong => {
                    lock(store).counts.malformed += 1;
                    None
                }
            };
            let Some(answer) = answer else { return false };
            self.state = State::Answering { answer: answer.text().into_bytes(), sent: 0 };
            self.end = now + self.timeout;
        }
        match &mut self.state {
            State::Answering { answer, sent } => {
                // A client that does not read the answer does not get it.
                send(&mut self.stream, answer, sent) && now < self.end
            }
            State::Receiving(_) => false,
        }
    }

    /// Closes the connection early.
    fn give_up<P: Parameters>(self, store: &Mutex<Store<P>>) {
        if let State::Receiving(_) = self.state {
            lock(store).counts.malformed += 1;
        }
    }
}

/// State of a request.
enum Received {
    All,
    Part,
    /// The request is too long, or the connection has failed.
    Wrong,
}

/// Appends the bytes that have arrived.
fn receive(stream: &mut UnixStream, bytes: &mut Vec<u8>) -> Received {
    let mut part = [0; 4096];
    loop {
        match stream.read(&mut part) {
            Ok(0) => return Received::All,
            Ok(length) => bytes.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Received::Part,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Received::Wrong,
        }
        if bytes.len() > MAX_BYTES {
            return Received::Wrong;
        }
    }
}

/// Sends the rest of `answer`. Returns `false` when it is complete, or when the client has
/// disconnected.
fn send(stream: &mut UnixStream, answer: &[u8], sent: &mut usize) -> bool {
    while *sent < answer.len() {
        match stream.write(&answer[*sent..]) {
            Ok(0) => return false,
            Ok(length) => *sent += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    false
}

/// Handles a complete request.
fn answer<P: Parameters>(stream: &UnixStream, bytes: &[u8], store: &Mutex<Store<P>>) -> Option<Answer> {
    // A client that only checks for a listener.
    if bytes.is_empty() {
        return None;
    }
    Some(match Request::parse(bytes) {
        Ok(_) if is_abandoned(stream) => {
            lock(store).counts.abandoned += 1;
            return None;
        }
        Ok(Request::Get) => {
            let now = lock(store).now;
            Answer::Listed(list(&now))
        }
        Ok(Request::Set(assignments)) => match set(store, &assignments) {
            Ok(changes) => Answer::Changed(changes),
            Err(Refused(reasons)) => Answer::Refused(reasons),
        },
        Err(reason) => {
            lock(store).counts.malformed += 1;
            Answer::Refused(vec![format!("malformed request: {reason}")])
        }
    })
}

/// Returns `true` if the client has closed both directions, so it does not wait for an answer.
fn is_abandoned(stream: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().contains(PollFlags::HUP)
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;

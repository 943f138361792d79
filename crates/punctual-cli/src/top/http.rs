//! An HTTP server for one page, with limits on everything that a client can hold.
//!
//! One thread serves all connections, so a client that sends nothing, sends slowly or does not read
//! delays no other client. Each connection serves one request. The thread performs at most one
//! system call for each connection that is ready before it looks at the others, and never blocks in
//! one of them.
//!
//! | limit | of | beyond it |
//! |---|---|---|
//! | [`MAX_CONNECTIONS`] | open connections | the oldest one is closed |
//! | [`Timeouts::header`] | time until a request has arrived | the connection is closed |
//! | [`Timeouts::connection`] | time until an answer has been sent | the connection is closed |
//! | [`MAX_HEADER_BYTES`] | length of a request without its body | status 431 |

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::output::message;

/// Path of the page.
pub(super) const PATH: &str = "/metrics";

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 64;
/// Maximum length of a request without its body.
const MAX_HEADER_BYTES: usize = 8192;
/// Pause after the kernel has refused a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits of the time that a client may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// Maximum time from the start of a connection to the end of its request without the body.
    header: Duration,
    /// Maximum time from the start to the end of a connection.
    connection: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { header: Duration::from_secs(2), connection: Duration::from_secs(10) }
    }
}

/// Serves `page`, a text in the exposition format of Prometheus, at [`PATH`].
///
/// # Errors
/// Returns an error if the thread cannot wait for connections.
pub(super) fn serve(
    listener: &TcpListener,
    timeouts: Timeouts,
    mut page: impl FnMut() -> Arc<str>,
) -> io::Result<Infallible> {
    listener.set_nonblocking(true)?;
    let mut connections: VecDeque<Connection<TcpStream>> = VecDeque::new();
    // The instant until which the kernel is not asked for connections, because it refused one.
    let mut refused_until = None;
    loop {
        let now = Instant::now();
        let is_accepting = refused_until.is_none_or(|until| until <= now);
        let ends = connections.iter().map(|connection| connection.end(timeouts));
        let next = ends.chain(refused_until.filter(|_| !is_accepting)).min();
        let ready = wait(is_accepting.then_some(listener), &connections, next)?;
        let now = Instant::now();
        let mut ready = ready.into_iter();
        let is_incoming = is_accepting && ready.next() == Some(true);
        connections.retain_mut(|connection| {
            let is_ready = ready.next() == Some(true);
            now < connection.end(timeouts) && (!is_ready || connection.step(&mut page))
        });
        if is_incoming {
            match listener.accept().and_then(|(stream, _)| stream.set_nonblocking(true).map(|()| stream)) {
                Ok(stream) => {
                    refused_until = None;
                    // Clients that hold connections keep no other client out.
                    if connections.len() >= MAX_CONNECTIONS {
                        connections.pop_front();
                    }
                    connections.push_back(Connection::new(stream, now));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The process has no descriptor left, or the client has gone.
                Err(error) => {
                    if refused_until.replace(now + ACCEPT_PAUSE).is_none() {
                        message!("warning: cannot accept connections: {error}");
                    }
                }
            }
        }
    }
}

/// Waits until a descriptor is ready, or until `end`. Returns whether each is ready: first the
/// listener, if any.
fn wait(
    listener: Option<&TcpListener>,
    connections: &VecDeque<Connection<TcpStream>>,
    end: Option<Instant>,
) -> io::Result<Vec<bool>> {
    let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(connections.len() + 1);
    fds.extend(listener.map(|listener| PollFd::new(listener, PollFlags::IN)));
    fds.extend(connections.iter().map(|connection| PollFd::new(&connection.stream, connection.wanted())));
    let left = end.map(|end| end.saturating_duration_since(Instant::now()));
    let left = left.map(|left| Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 }));
    match poll(&mut fds, left.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
}

/// A byte stream whose sending direction can be closed.
trait Stream: Read + Write {
    fn finish(&mut self) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn finish(&mut self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// A connection that serves one request.
struct Connection<S> {
    stream: S,
    begun: Instant,
    phase: Phase,
}

enum Phase {
    /// The part of the request that has arrived.
    Request(Vec<u8>),
    /// The answer, and the number of bytes sent.
    Answer(Vec<u8>, usize),
    /// The answer is sent. The rest of the request is read and discarded: a close with unread bytes
    /// would make the client's kernel discard the answer.
    Closing,
}

impl<S> Connection<S> {
    fn new(stream: S, begun: Instant) -> Self {
        Self { stream, begun, phase: Phase::Request(Vec::new()) }
    }

    /// Returns the instant at which the connection is closed.
    fn end(&self, timeouts: Timeouts) -> Instant {
        match self.phase {
            Phase::Request(_) => self.begun + timeouts.header,
            Phase::Answer(..) | Phase::Closing => self.begun + timeouts.connection,
        }
    }

    fn wanted(&self) -> PollFlags {
        match self.phase {
            Phase::Answer(..) => PollFlags::OUT,
            Phase::Request(_) | Phase::Closing => PollFlags::IN,
        }
    }
}

impl<S: Stream> Connection<S> {
    /// Reads or writes once; returns whether the connection remains open.
    fn step(&mut self, page: impl FnMut() -> Arc<str>) -> bool {
        match self.proceed(page) {
            Ok(is_open) => is_open,
            // A client that breaks off is not an error of the server.
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn proceed(&mut self, page: impl FnMut() -> Arc<str>) -> io::Result<bool> {
        let mut bytes = [0; 2048];
        match &mut self.phase {
            Phase::Request(request) => {
                let count = self.stream.read(&mut bytes)?;
                request.extend_from_slice(&bytes[..count]);
                if let Some(answer) = answer(request, page) {
                    self.phase = Phase::Answer(answer, 0);
                    return Ok(true);
                }
                Ok(count > 0)
            }
            Phase::Answer(answer, sent) => {
                let count = self.stream.write(&answer[*sent..])?;
                *sent += count;
                if *sent == answer.len() {
                    self.stream.finish()?;
                    self.phase = Phase::Closing;
                    return Ok(true);
                }
                Ok(count > 0)
            }
            Phase::Closing => Ok(self.stream.read(&mut bytes)? > 0),
        }
    }
}

/// Returns the answer to a request; `None` if its header is not complete. A body is ignored.
fn answer(request: &[u8], mut page: impl FnMut() -> Arc<str>) -> Option<Vec<u8>> {
    let end =
        request.windows(4).position(|bytes| bytes == b"\r\n\r\n").filter(|end| *end <= MAX_HEADER_BYTES);
    // Rejected at once, not when the time is over.
    let is_text = request[..end.unwrap_or(request.len())]
        .iter()
        .all(|byte| byte.is_ascii_graphic() || b"\r\n\t ".contains(byte));
    let header = match end {
        _ if !is_text => None,
        None if request.len() > MAX_HEADER_BYTES => {
            return Some(response(
                "431 Request Header Fields Too Large",
                "",
                true,
                "the request is too long\n",
            ));
        }
        None => return None,
        Some(end) => str::from_utf8(&request[..end]).ok(),
    };
    let Some((method, path)) = header.and_then(target) else {
        return Some(response("400 Bad Request", "", true, "the request is malformed\n"));
    };
    let has_body = method != "HEAD";
    Some(match path {
        _ if !matches!(method, "GET" | "HEAD") => {
            response("405 Method Not Allowed", "allow: GET, HEAD\r\n", true, "use GET or HEAD\n")
        }
        PATH => response("200 OK", "", has_body, &page()),
        _ => response("404 Not Found", "", has_body, &format!("the metrics are at {PATH}\n")),
    })
}

/// Returns the method and the path of a request, without a query; `None` if the header is
/// malformed.
fn target(header: &str) -> Option<(&str, &str)> {
    let mut lines = header.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_valid = words.next().is_none()
        && !method.is_empty()
        && method.bytes().all(|byte| byte.is_ascii_alphabetic())
        && matches!(version, "HTTP/1.0" | "HTTP/1.1")
        && lines.all(|line| line.split_once(':').is_some_and(|(name, _)| !name.is_empty()));
    // A proxy may send the absolute address.
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    (is_valid && path.starts_with('/')).then_some((method, path))
}

/// Returns a response with more `headers`, each of which ends with CRLF.
fn response(status: &str, headers: &str, has_body: bool, body: &str) -> Vec<u8> {
    let length = body.len();
    let body = if has_body { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n\
         content-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "punctual_jobs_total 7\n";

    fn page() -> Arc<str> {
        PAGE.into()
    }

    /// The other end of a connection, in memory.
    #[derive(Default)]
    struct Memory {
        request: VecDeque<u8>,
        /// Number of bytes of the request that one read returns.
        chunk: usize,
        answer: Vec<u8>,
        /// Number of bytes of an answer for which there is room.
        room: usize,
        is_finished: bool,
    }

    impl Read for Memory {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.chunk).min(self.request.len());
            if count == 0 {
                return if self.is_finished { Ok(0) } else { Err(ErrorKind::WouldBlock.into()) };
            }
            self.request.drain(..count).zip(bytes).for_each(|(from, to)| *to = from);
            Ok(count)
        }
    }

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            self.room -= count;
            self.answer.extend(&bytes[..count]);
            if count == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(count) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Stream for Memory {
        fn finish(&mut self) -> io::Result<()> {
            self.is_finished = true;
            Ok(())
        }
    }

    fn connection(request: &[u8], chunk: usize, room: usize) -> Connection<Memory> {
        let stream = Memory { request: request.iter().copied().collect(), chunk, room, ..Memory::default() };
        Connection::new(stream, Instant::now())
    }

    /// Returns the answer to `request`, and whether the connection was closed after it.
    fn talk(request: &[u8], chunk: usize) -> (String, bool) {
        let mut connection = connection(request, chunk, 1 << 16);
        // Each byte needs at most one step.
        let is_closed = (0..request.len() + 1024).any(|_| !connection.step(page));
        (String::from_utf8(connection.stream.answer).unwrap(), is_closed)
    }

    fn ask(request: &[u8]) -> String {
        let (answer, is_closed) = talk(request, usize::MAX);
        assert!(is_closed && !answer.is_empty(), "{answer}");
        assert_eq!(talk(request, 1).0, answer, "one byte at a time");
        answer
    }

    #[test]
    fn serves_page_with_and_without_query() {
        for target in ["/metrics", "/metrics?", "/metrics?collect[]=jobs&x=1", "http://host/metrics?x"] {
            let answer = ask(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(head.contains("content-type: text/plain; version=0.0.4"), "{answer}");
            assert!(head.contains("connection: close"), "{answer}");
            assert_eq!(body, PAGE);
        }
        assert!(ask(b"GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200"));
    }

    #[test]
    fn answers_head_with_length_and_without_page() {
        let answer = ask(b"HEAD /metrics?x HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty(), "{answer}");
        assert!(head.contains(&format!("content-length: {}", PAGE.len())), "{answer}");
    }

    #[test]
    fn rejects_other_paths_and_methods_and_malformed_requests() {
        let long = format!("GET /metrics HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(MAX_HEADER_BYTES));
        let endless = "x".repeat(MAX_HEADER_BYTES + 1);
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"GET http://host HTTP/1.1\r\n\r\n", "404"),
            (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", "404"),
            (b"GET /metrics/ HTTP/1.1\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405"),
            (b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", "405"),
            (b"DELETE / HTTP/1.1\r\n\r\n", "405"),
            (b"GET  /metrics\xff\xff\r\n\r\n", "400"),
            (b"GET  /metrics HTTP/1.1\r\n\r\n", "400"),
            (b"GET /metrics HTTP/2.0\r\n\r\n", "400"),
            (b"GET metrics HTTP/1.1\r\n\r\n", "400"),
            (b"GET /metrics HTTP/1.1\r\nno header\r\n\r\n", "400"),
            (b"GET /metrics\r\n\r\n", "400"),
            (b"\r\n\r\n", "400"),
            (&[0; MAX_HEADER_BYTES + 1], "400"),
            (long.as_bytes(), "431"),
            (endless.as_bytes(), "431"),
        ] {
            let answer = ask(request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
            assert_eq!(status == "405", answer.contains("allow: GET, HEAD\r\n"), "{answer}");
        }
    }

    #[test]
    fn closes_connections_with_late_requests() {
        let timeouts = Timeouts::default();
        // A client that sends nothing, and one that sends a part of a request.
        for request in [&b""[..], b"GET /metrics HTTP/1.1\r\nHost: a"] {
            let mut connection = connection(request, 1, 1 << 16);
            assert!((0..100).all(|_| connection.step(page)));
            assert_eq!(connection.end(timeouts), connection.begun + timeouts.header);
            assert!(connection.stream.answer.is_empty());
        }
    }

    #[test]
    fn closes_connections_with_unread_answers() {
        let timeouts = Timeouts::default();
        // The answer has more bytes than the connection has room for.
        let mut connection = connection(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", usize::MAX, 64);
        assert!((0..100).all(|_| connection.step(page)));
        assert_eq!(connection.stream.answer.len(), 64);
        assert_eq!(connection.end(timeouts), connection.begun + timeouts.connection);
        assert_eq!(connection.wanted(), PollFlags::OUT);
    }

    #[test]
    fn does_not_wait_for_request_body() {
        for method in ["GET", "POST"] {
            let request = format!("{method} /metrics HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nx");
            assert!(ask(request.as_bytes()).starts_with("HTTP/1.1 "), "{method}");
        }
    }

    #[test]
    fn serves_client_despite_silent_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // No time-out expires during the test. The thread lives as long as the process.
        let hour = Duration::from_secs(3600);
        let timeouts = Timeouts { header: hour, connection: hour };
        std::thread::spawn(move || serve(&listener, timeouts, page));
        let silent: Vec<_> = (0..2 * MAX_CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(hour / 12)).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it is answered");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        // The oldest connections were closed to make room.
        for mut stream in &silent[..=MAX_CONNECTIONS] {
            stream.set_read_timeout(Some(hour / 12)).unwrap();
            assert_eq!(stream.read(&mut [0]).expect("it is closed"), 0);
        }
        for mut stream in &silent[MAX_CONNECTIONS + 1..] {
            stream.set_nonblocking(true).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
    }
}

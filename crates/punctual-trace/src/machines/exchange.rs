//! Messages between two machines that record, marked in the recordings of both.
//!
//! One machine [listens](listen), the other [starts](run). Each message is marked before it is sent
//! and after it has been received, by one `write(2)` to `trace_marker_raw`.

use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(super) use crate::format::exchange::read;
pub use crate::format::exchange::{Message, mark};

/// Prefix of datagrams.
const MAGIC: [u8; 4] = *b"PJx1";
/// A message without an answer within this time is lost.
const REPLY_TIMEOUT: Duration = Duration::from_millis(200);
/// A peer that has started and is silent for this long will send no more.
const SILENCE: Duration = Duration::from_secs(5);
/// Numbers of one exchange differ only in these low bits.
const NUMBERS: u64 = 1 << 24;

/// Purpose of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Message = 0,
    /// No more messages follow.
    End = 1,
}

fn datagram(purpose: Purpose, number: u64) -> [u8; 13] {
    let mut bytes = [0; 13];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4] = purpose as u8;
    bytes[5..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn parse(bytes: &[u8]) -> Option<(Purpose, u64)> {
    let bytes: &[u8; 13] = bytes.try_into().ok()?;
    let purpose = match bytes[4] {
        0 => Purpose::Message,
        1 => Purpose::End,
        _ => return None,
    };
    let number = u64::from_be_bytes(*bytes.last_chunk()?);
    bytes.starts_with(&MAGIC).then_some((purpose, number))
}

/// Answers messages at that socket until the machine that sent the first one ends the exchange or
/// is silent for five seconds. Returns the number of messages.
///
/// Waits for the first message without a limit. After that only its sender is accepted: datagrams
/// of others neither end the exchange nor prolong it, and are not marked.
///
/// # Errors
/// Returns an error if the marks cannot be written, or if the network fails.
pub fn listen(socket: &UdpSocket, marker: &File) -> io::Result<u64> {
    socket.set_read_timeout(None)?;
    let mut buffer = [0; 64];
    let mut count = 0;
    // The sender of the first message, and the time at which its silence ends the exchange.
    let mut peer: Option<(SocketAddr, Instant)> = None;
    loop {
        if let Some((_, end)) = peer {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(count);
            }
            socket.set_read_timeout(Some(left))?;
        }
        let (length, from) = match socket.recv_from(&mut buffer) {
            Err(error) if is_retryable(&error) => continue,
            received => received?,
        };
        if peer.is_some_and(|(peer, _)| peer != from) {
            continue;
        }
        match parse(&buffer[..length]) {
            Some((Purpose::Message, number)) => {
                write(marker, number, false)?;
                let answer = number | 1;
                write(marker, answer, true)?;
                socket.send_to(&datagram(Purpose::Message, answer), from)?;
                peer = Some((from, Instant::now() + SILENCE));
                count += 1;
            }
            Some((Purpose::End, _)) if peer.is_some() => return Ok(count),
            _ => {}
        }
    }
}

/// Sends `count` messages to a listening machine, one every `every`; returns the number of answers.
///
/// # Errors
/// Returns an error if the marks cannot be written, or if the network fails.
pub fn run(to: impl ToSocketAddrs, marker: &File, count: u32, every: Duration) -> io::Result<u64> {
    let to = to.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
    let socket = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.connect(to)?;
    // No two exchanges share numbers, unless they begin in the same nanosecond.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let base = now & !(NUMBERS - 1);
    let mut answered = 0;
    for number in (0..u64::from(count).min(NUMBERS / 2)).map(|number| base | (2 * number)) {
        write(marker, number, true)?;
        socket.send(&datagram(Purpose::Message, number))?;
        let mut buffer = [0; 64];
        let end = Instant::now() + REPLY_TIMEOUT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left))?;
            match socket.recv(&mut buffer) {
                Err(error) if is_retryable(&error) => break,
                // No listener yet.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => break,
                Err(error) => return Err(error),
                Ok(length) => match parse(&buffer[..length]) {
                    Some((Purpose::Message, answer)) if answer == number | 1 => {
                        write(marker, answer, false)?;
                        answered += 1;
                        break;
                    }
                    // A late answer.
                    _ => {}
                },
            }
        }
        std::thread::sleep(every);
    }
    // It may be lost: silence ends the listener, too.
    let _ = socket.send(&datagram(Purpose::End, base));
    Ok(answered)
}

fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn write(mut marker: &File, number: u64, sent: bool) -> io::Result<()> {
    marker.write_all(&mark(number, sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads instead of two machines, and files instead of recordings.
    #[test]
    fn marks_each_message_on_both_sides() {
        let place = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| place.path().join(name));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let file = File::create(&other).unwrap();
        let listener = std::thread::spawn(move || listen(&socket, &file).unwrap());
        let answered = run(address, &File::create(&one).unwrap(), 5, Duration::ZERO).unwrap();
        assert!(listener.join().unwrap() >= answered && answered > 0);
        let marks = |path| {
            let bytes = std::fs::read(path).unwrap();
            let marks = bytes
                .chunks(12)
                .filter_map(|mark| read(u32::from_ne_bytes(*mark.first_chunk()?), &mark[4..]));
            marks.collect::<Vec<_>>()
        };
        let (mine, theirs) = (marks(&one), marks(&other));
        let answers = |marks: &[(u64, bool)], sent| {
            marks.iter().filter(|(n, s)| n % 2 == 1 && *s == sent).count() as u64
        };
        assert_eq!(answers(&mine, false), answered);
        assert!(answers(&theirs, true) >= answered);
        assert!(theirs.iter().filter(|(_, sent)| !sent).all(|(number, _)| mine.contains(&(*number, true))));
    }

    #[test]
    fn accepts_only_first_sender() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let [peer, stranger] = [(), ()].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        for client in [&peer, &stranger] {
            client.connect(socket.local_addr().unwrap()).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        }
        let marker = tempfile::NamedTempFile::new().unwrap();
        let file = marker.reopen().unwrap();
        let listener = std::thread::spawn(move || listen(&socket, &file).unwrap());
        // There is nothing to end yet.
        stranger.send(&datagram(Purpose::End, 0)).unwrap();
        for number in [2, 4] {
            peer.send(&datagram(Purpose::Message, number)).unwrap();
            let mut answer = [0; 64];
            let length = peer.recv(&mut answer).unwrap();
            assert_eq!(parse(&answer[..length]), Some((Purpose::Message, number | 1)));
            stranger.send(&datagram(Purpose::Message, 100)).unwrap();
            stranger.send(&datagram(Purpose::End, 0)).unwrap();
        }
        peer.send(&datagram(Purpose::End, 0)).unwrap();
        assert_eq!(listener.join().unwrap(), 2);
        let expected: Vec<u8> =
            [(2, false), (3, true), (4, false), (5, true)].iter().flat_map(|&(n, s)| mark(n, s)).collect();
        assert_eq!(std::fs::read(marker).unwrap(), expected);
    }

    #[test]
    fn ignores_strange_datagrams() {
        assert_eq!(parse(&datagram(Purpose::Message, 77)), Some((Purpose::Message, 77)));
        for bytes in [&b""[..], b"PJx1", &[0; 13], b"PJx1\x02\0\0\0\0\0\0\0\0"] {
            assert_eq!(parse(bytes), None);
        }
    }
}

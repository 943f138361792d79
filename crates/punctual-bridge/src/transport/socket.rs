//! The socket by which a transport attaches to an app, and the exchange on it.
//!
//! The transport sends one line, `punctual-transport 1 NAME`. The app answers with one byte and two
//! descriptors, of the topics file and of the seat file, or with the reason for refusing it. After
//! that, neither side sends anything: the end of the connection signals the end of the other
//! process.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The prefix of the abstract names of apps' sockets.
pub(super) const SOCKETS: &str = "punctual-topics/";
const GREETING: &str = "punctual-transport 1 ";
/// The first byte of an answer with descriptors.
const ADMITTED: u8 = b'+';
const MAX_GREETING: usize = 80;
const MAX_ANSWER: usize = 256;

/// The state of a greeting.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    /// The transport's name.
    Complete(String),
    Incomplete,
    /// The greeting is malformed.
    Failed,
    /// The connection has ended without one: the process looked for another app.
    None,
}

/// Returns the greeting of the transport `name`.
pub(super) fn greeting(name: &str) -> String {
    format!("{GREETING}{name}\n")
}

/// Appends the bytes that have arrived to `received`, without blocking.
pub(super) fn receive_greeting(mut stream: &UnixStream, received: &mut Vec<u8>) -> Greeting {
    let mut bytes = [0; MAX_GREETING];
    match stream.read(&mut bytes) {
        Ok(0) if received.is_empty() => return Greeting::None,
        Ok(0) => return Greeting::Failed,
        Ok(length) => received.extend_from_slice(&bytes[..length]),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Greeting::Incomplete,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Greeting::Incomplete,
        Err(_) => return Greeting::Failed,
    }
    parse_greeting(received)
}

fn parse_greeting(received: &[u8]) -> Greeting {
    let Some(line) = received.strip_suffix(b"\n") else {
        let is_possible = received.len() < MAX_GREETING && !received.contains(&b'\n');
        return if is_possible { Greeting::Incomplete } else { Greeting::Failed };
    };
    let name = str::from_utf8(line).ok().and_then(|line| line.strip_prefix(GREETING));
    match name.filter(|name| crate::local::is_name(name)) {
        Some(name) => Greeting::Complete(name.to_owned()),
        None => Greeting::Failed,
    }
}

/// Hands over the files.
pub(super) fn admit(stream: &UnixStream, files: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let sent = sendmsg(stream, &[IoSlice::new(&[ADMITTED])], &mut control, SendFlags::NOSIGNAL)?;
    if sent == 1 { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Sends the reason for a refusal, if there is room in the connection.
pub(super) fn refuse(stream: &UnixStream, reason: &str) {
    let _ = rustix::net::send(stream, reason.as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// Receives the answer to a greeting: the files, or the reason for the refusal.
pub(super) fn receive_answer(stream: &UnixStream) -> io::Result<Result<[OwnedFd; 2], String>> {
    let mut bytes = [0; MAX_ANSWER];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let files: Vec<OwnedFd> = files.flatten().collect();
    let bytes = &bytes[..received.bytes];
    match (bytes, <[OwnedFd; 2]>::try_from(files)) {
        (&[ADMITTED], Ok(files)) => Ok(Ok(files)),
        ([], _) => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(Err(String::from_utf8_lossy(bytes).into_owned())),
    }
}

/// Returns `true` if the other side has ended the connection, or has sent something, which is not
/// part of the exchange.
pub(super) fn has_ended(stream: &impl AsFd) -> bool {
    let mut byte = [0];
    match rustix::net::recv(stream, &mut byte, RecvFlags::DONTWAIT) {
        Ok(_) => true,
        Err(error) => !matches!(error, rustix::io::Errno::AGAIN | rustix::io::Errno::INTR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_greeting_or_rejects_it() {
        let complete = |name: &str| Greeting::Complete(name.to_owned());
        assert_eq!(parse_greeting(greeting("ros1").as_bytes()), complete("ros1"));
        for part in ["", "punct", "punctual-transport 1 ros1", "GET / HTTP/1.1"] {
            assert_eq!(parse_greeting(part.as_bytes()), Greeting::Incomplete, "{part:?}");
        }
        let long = "x".repeat(MAX_GREETING);
        for wrong in ["\n", "punctual-transport 2 ros1\n", "punctual-transport 1 \n", "a\nb", &long] {
            assert_eq!(parse_greeting(wrong.as_bytes()), Greeting::Failed, "{wrong:?}");
        }
        assert_eq!(parse_greeting(&[0xff; 20]), Greeting::Incomplete);
        assert_eq!(parse_greeting(b"punctual-transport 1 a\xff\n"), Greeting::Failed);
        assert_eq!(parse_greeting(b"punctual-transport 1 a b\n"), Greeting::Failed);
        assert_eq!(parse_greeting(b"punctual-transport 1 7\n"), Greeting::Failed, "it looks like a process");
    }

    #[test]
    fn hands_over_two_files_or_a_reason() {
        let (app, transport) = UnixStream::pair().unwrap();
        assert!(!has_ended(&app));
        admit(&app, [app.as_fd(), transport.as_fd()]).unwrap();
        let files = receive_answer(&transport).unwrap().unwrap();
        assert_eq!(files.len(), 2);
        refuse(&app, "all seats are taken");
        assert_eq!(receive_answer(&transport).unwrap().unwrap_err(), "all seats are taken");
        drop((app, files));
        assert!(has_ended(&transport));
        assert_eq!(receive_answer(&transport).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}

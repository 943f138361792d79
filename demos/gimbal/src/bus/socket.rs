//! A socket that replaces an SPI device: a datagram to it is the command, a datagram back is the
//! answer of the same transfer.

use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The time limit for the other end. A real bus takes only the time to transfer its bits.
const POLL_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// The maximum number of late answers that one exchange drops, so that it ends regardless of the
/// other end. It exceeds the number that a socket can queue.
const MOST_LATE: u32 = 64;

/// The controller's end.
#[derive(Debug)]
pub(super) struct Socket(UnixDatagram);

impl Socket {
    pub(super) fn connect(path: &Path) -> io::Result<Self> {
        // A name, so that the other end can answer; it disappears with the process.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("gimbal-{}-{now}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
        socket.connect(path)?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// Sends a frame and waits for the answer, for 1 ms at most.
    ///
    /// Real-time safety: enters the kernel and blocks, like every exchange over a bus; does not
    /// allocate.
    pub(super) fn exchange(&mut self, sent: &[u8], answer: &mut [u8]) -> io::Result<()> {
        // Answers to earlier frames, whose exchanges have already timed out.
        for _ in 0..MOST_LATE {
            if self.0.recv(answer).is_err() {
                break;
            }
        }
        let is_sent = match self.0.send(sent) {
            Ok(_) => true,
            // The other end has not received earlier frames yet: wait as long as for an answer.
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => return Err(error),
        };
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        if poll(&mut fds, Some(&POLL_TIMEOUT))? == 0 || !is_sent {
            return Err(ErrorKind::TimedOut.into());
        }
        match self.0.recv(answer)? {
            length if length == answer.len() => Ok(()),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

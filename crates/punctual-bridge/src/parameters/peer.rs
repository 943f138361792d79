//! Who is at the other end of a socket, as the kernel says.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// A process, by the namespaces of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    /// 0 if it is not in this namespace of process ids.
    pub(super) process: u32,
    /// Its effective user when it connected or began to listen.
    pub(super) user: u32,
}

impl Peer {
    pub(super) fn of(stream: &UnixStream) -> io::Result<Self> {
        // Not by `rustix`, whose type does not take process 0.
        let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        let descriptor = stream.as_raw_fd();
        // SAFETY: the kernel writes at most `length` bytes to `peer`, of which every pattern is a value.
        let result = unsafe {
            let (value, length) = ((&raw mut peer).cast(), &raw mut length);
            libc::getsockopt(descriptor, libc::SOL_SOCKET, libc::SO_PEERCRED, value, length)
        };
        match result {
            0 => Ok(Self { process: peer.pid.max(0).unsigned_abs(), user: peer.uid }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Whether it runs for the user that this process runs for.
    pub(super) fn is_own(self) -> bool {
        self.user == rustix::process::geteuid().as_raw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert_eq!(peer.process, std::process::id());
        assert!(peer.is_own());
        assert!(!Peer { user: peer.user.wrapping_add(1), ..peer }.is_own());
    }
}

//! Ethernet: frames to and from the interface of the network.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// Longest Ethernet frame without its check sequence.
pub const MAX_FRAME_BYTES: usize = 1514;
/// Longest wait for a frame at the start.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// EtherCAT's EtherType, as `sockaddr_ll` has it.
const ETHERCAT: u16 = 0x88a4_u16.to_be();

/// Sends and receives frames.
pub trait Link: Send {
    /// Hands a frame to the interface, without waiting.
    ///
    /// # Errors
    /// Returns an error if the interface does not take the frame, as if its queue is full.
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;

    /// Returns the length of the next frame that has arrived; `None` without waiting if none has.
    ///
    /// # Errors
    /// Returns an error if the interface is down.
    fn receive(&mut self, buffer: &mut [u8; MAX_FRAME_BYTES]) -> io::Result<Option<usize>>;

    /// Waits until a frame has arrived, at most a millisecond. Only for threads without real time.
    ///
    /// # Errors
    /// Returns an error if the wait fails.
    fn wait(&mut self) -> io::Result<()>;
}

/// A packet socket, which is bound to one interface and receives EtherCAT only.
#[derive(Debug)]
pub struct RawSocket(OwnedFd);

impl RawSocket {
    /// Opens a socket on an interface, as `eth1`. Needs root or `CAP_NET_RAW`.
    ///
    /// # Errors
    /// Returns an error without the privilege, or if there is no interface of this name.
    pub fn open(interface: &str) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Without a protocol: receives nothing before it is bound.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        let index = name_to_index(&socket, interface)?;
        // Frames pass the queueing discipline by, whose lock other threads hold.
        let on: libc::c_int = 1;
        let size = size_of_val(&on) as libc::socklen_t;
        let option = (libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS);
        // SAFETY: the value outlives the call, which reads as many bytes as it has.
        let set =
            unsafe { libc::setsockopt(socket.as_raw_fd(), option.0, option.1, (&raw const on).cast(), size) };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: ETHERCAT,
            sll_ifindex: index.cast_signed(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let size = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address outlives the call, which only reads as many bytes as it has.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) };
        if bound == 0 { Ok(Self(socket)) } else { Err(io::Error::last_os_error()) }
    }
}

impl Link for RawSocket {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = send(&self.0, frame, SendFlags::DONTWAIT)?;
        if length == frame.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn receive(&mut self, buffer: &mut [u8; MAX_FRAME_BYTES]) -> io::Result<Option<usize>> {
        match recv(&self.0, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((length, _)) => Ok(Some(length)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&POLL_INTERVAL)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_missing_interface_or_privilege() {
        assert!(RawSocket::open("no-such-eth0").is_err());
        assert!(RawSocket::open("nul\0").is_err());
    }
}

//! Raw sockets of the CAN bus: frames with identifiers of 11 bits and up to eight bytes of data.

use std::io;
use std::mem;
use std::num::NonZero;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketFlags, SocketType};

/// Frames without a transport protocol.
const RAW: Protocol = Protocol::from_raw(NonZero::new(libc::CAN_RAW as u32).unwrap());

/// Size of the kernel's `struct can_frame`.
const FRAME_BYTES: usize = 16;

/// The address of an interface, by its index.
struct Interface(u32);

// SAFETY: `f` gets the kernel's address type and its size; the address outlives the call.
unsafe impl SocketAddrArg for Interface {
    unsafe fn with_sockaddr<R>(&self, f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R) -> R {
        // SAFETY: the address consists of integers.
        let mut address: libc::sockaddr_can = unsafe { mem::zeroed() };
        address.can_family = libc::AF_CAN as libc::sa_family_t;
        address.can_ifindex = self.0.cast_signed();
        f((&raw const address).cast(), size_of_val(&address) as SocketAddrLen)
    }
}

/// A socket that is bound to one interface.
#[derive(Debug)]
pub struct CanSocket(OwnedFd);

/// A data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CanFrame {
    id: u32,
    length: u8,
    bytes: [u8; 8],
}

impl CanSocket {
    /// Opens a socket on an interface, as `vcan0`.
    ///
    /// # Errors
    ///
    /// If the kernel has no CAN, or no interface of this name.
    pub fn open(interface: &str) -> io::Result<Self> {
        let (family, kind) = (AddressFamily::CAN, SocketType::RAW);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, Some(RAW))?;
        let index = name_to_index(&socket, interface)?;
        rustix::net::bind(&socket, &Interface(index))?;
        Ok(Self(socket))
    }

    /// Returns the two ends of a simulated bus: each receives the frames of the other.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the sockets.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (one, other) = rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
        Ok((Self(one), Self(other)))
    }

    /// Returns another handle of the same socket.
    ///
    /// # Errors
    ///
    /// If the process has no further descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Sends a frame.
    ///
    /// # Errors
    ///
    /// Those of `send`, as of an interface that is down or whose queue is full: the call does not
    /// block.
    pub fn send(&self, frame: &CanFrame) -> io::Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(&self.0, &frame.encode(), flags)? {
            FRAME_BYTES => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Waits for a frame.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn receive(&self) -> io::Result<CanFrame> {
        let mut bytes = [0; FRAME_BYTES];
        match rustix::io::read(&self.0, &mut bytes)? {
            FRAME_BYTES => Ok(CanFrame::decode(bytes)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl AsFd for CanSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl CanFrame {
    /// Makes a frame.
    ///
    /// # Panics
    ///
    /// If the identifier has more than 11 bits, or there are more than 8 bytes of data.
    #[must_use]
    pub fn new(id: u16, data: &[u8]) -> Self {
        assert!(u32::from(id) <= libc::CAN_SFF_MASK, "the identifier {id:#x} has more than 11 bits");
        let mut bytes = [0; 8];
        bytes[..data.len()].copy_from_slice(data);
        Self { id: id.into(), length: data.len() as u8, bytes }
    }

    /// Returns the identifier.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the data.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns the bytes of a `struct can_frame`: identifier, length, three unused bytes, data.
    fn encode(&self) -> [u8; FRAME_BYTES] {
        let mut bytes = [0; FRAME_BYTES];
        bytes[..4].copy_from_slice(&self.id.to_ne_bytes());
        bytes[4] = self.length;
        bytes[8..].copy_from_slice(&self.bytes);
        bytes
    }

    fn decode(bytes: [u8; FRAME_BYTES]) -> Self {
        let [i0, i1, i2, i3, length, _, _, _, data @ ..] = bytes;
        Self { id: u32::from_ne_bytes([i0, i1, i2, i3]), length: length.min(8), bytes: data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_frame_of_kernel() {
        assert_eq!(size_of::<libc::can_frame>(), FRAME_BYTES);
        assert_eq!(mem::offset_of!(libc::can_frame, can_dlc), 4);
        assert_eq!(mem::offset_of!(libc::can_frame, data), 8);
        let frame = CanFrame::new(0x123, &[1, 2]);
        let mut expected = [0; FRAME_BYTES];
        expected[..4].copy_from_slice(&0x123_u32.to_ne_bytes());
        (expected[4], expected[8], expected[9]) = (2, 1, 2);
        assert_eq!(frame.encode(), expected);
        assert_eq!(CanFrame::decode(expected), frame);
        assert_eq!((frame.id(), frame.data()), (0x123, &[1, 2][..]));
    }

    #[test]
    fn reports_missing_interface() {
        assert!(CanSocket::open("no-such-can0").is_err());
        assert!(CanSocket::open("nul\0").is_err());
    }

    #[test]
    #[should_panic(expected = "the identifier 0x800 has more than 11 bits")]
    fn rejects_long_identifier() {
        let _ = CanFrame::new(0x800, &[]);
    }
}

//! Drops datagrams that would let the memory of rustdds grow.
//!
//! rustdds keeps a record of about 1 KiB for each sender that it has ever heard, whether or not the
//! sender is a participant, and reserves the bytes that a fragment announces, up to 4 GiB. It has
//! no setting for either. A participant announces itself before anything else, so the filter
//!
//! * accepts a new sender only if its datagram names the participant of that sender,
//! * admits [`BURST`] new senders at once, and then one per [`REFILL_INTERVAL`],
//! * rejects fragments of messages that are larger than every topic and every parameter.
//!
//! rustdds accepts no socket and no callback from its users, but receives by `recvmsg`, and nothing
//! else in this process does so from UDP. This module defines that function: the linker prefers the
//! definition of a program to that of the C library.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::libc;

/// The largest message of discovery and parameters, in bytes.
const MIN_LIMIT: usize = 1 << 20;
/// The number of senders that can be admitted at once: more than a domain has participants.
const BURST: u32 = 1024;
/// The interval at which another sender can be admitted.
const REFILL_INTERVAL: Duration = Duration::from_secs(1);
/// The number of senders that the filter knows; the longest silent one makes room for another.
const MAX_SENDERS: usize = 2 * BURST as usize;

const PROTOCOL: &[u8] = b"RTPS";
/// Protocol, version, vendor and sender.
const HEADER_BYTES: usize = 20;
const SENDER_AT: usize = 8;
/// The entity number that follows the sender in the identity of its participant.
const PARTICIPANT: [u8; 4] = [0, 0, 1, 0xc1];
/// Kind, flags, and length of the content.
const SUBMESSAGE_HEADER_BYTES: usize = 4;
const LITTLE_ENDIAN: u8 = 1;
const PAD: u8 = 0x01;
const INFO_TS: u8 = 0x09;
const DATA_FRAG: u8 = 0x16;
/// The place of the size of the whole message in the content of `DATA_FRAG`.
const MESSAGE_BYTES_AT: usize = 28;

type Sender = [u8; 12];

static FILTER: Mutex<Filter> = Mutex::new(Filter::new());

/// Accepts messages of up to `bytes` from now on, or of 1 MiB if that is more.
pub(crate) fn accept_messages_of(bytes: usize) {
    FILTER.lock().unwrap_or_else(PoisonError::into_inner).max_bytes = bytes.max(MIN_LIMIT);
}

struct Filter {
    /// The admitted senders, with the time of the last datagram.
    senders: BTreeMap<Sender, Instant>,
    /// The number of senders that can be admitted, and since when.
    admissions: u32,
    refilled: Option<Instant>,
    /// The size of the largest message.
    max_bytes: usize,
}

impl Filter {
    const fn new() -> Self {
        Self { senders: BTreeMap::new(), admissions: BURST, refilled: None, max_bytes: MIN_LIMIT }
    }

    /// Returns whether rustdds may receive a datagram.
    fn accepts(&mut self, datagram: &[u8], now: Instant) -> bool {
        let Some((header, content)) = datagram.split_at_checked(HEADER_BYTES) else { return false };
        if !header.starts_with(PROTOCOL) || !self.accepts_fragments(content) {
            return false;
        }
        let Ok(sender) = Sender::try_from(&header[SENDER_AT..]) else { return false };
        if let Some(heard) = self.senders.get_mut(&sender) {
            *heard = now;
            return true;
        }
        if !names_participant(content, sender) || !self.admits(now) {
            return false;
        }
        if self.senders.len() == MAX_SENDERS
            && let Some(silent) = self.senders.iter().min_by_key(|(_, heard)| **heard)
        {
            let silent = *silent.0;
            self.senders.remove(&silent);
        }
        self.senders.insert(sender, now);
        true
    }

    /// Returns whether the submessages can be told apart, and no fragment announces too large a
    /// message.
    fn accepts_fragments(&self, mut content: &[u8]) -> bool {
        while let Some((&[kind, flags, low, high], rest)) =
            content.split_first_chunk::<SUBMESSAGE_HEADER_BYTES>()
        {
            let is_little = flags & LITTLE_ENDIAN != 0;
            let length = [low, high];
            let length = if is_little { u16::from_le_bytes(length) } else { u16::from_be_bytes(length) };
            let length = match (length, kind) {
                (0, PAD | INFO_TS) => 0,
                // The last submessage, up to the end.
                (0, _) => rest.len(),
                (length, _) => usize::from(length),
            };
            let Some((body, others)) = rest.split_at_checked(length) else { return false };
            if kind == DATA_FRAG {
                let Some(bytes) = body.get(MESSAGE_BYTES_AT..).and_then(<[u8]>::first_chunk) else {
                    return false;
                };
                let bytes = if is_little { u32::from_le_bytes(*bytes) } else { u32::from_be_bytes(*bytes) };
                if bytes as usize > self.max_bytes {
                    return false;
                }
            }
            content = others;
        }
        content.is_empty()
    }

    /// Takes one admission, if there is one.
    fn admits(&mut self, now: Instant) -> bool {
        let refilled = *self.refilled.get_or_insert(now);
        let due = now.saturating_duration_since(refilled).as_nanos() / REFILL_INTERVAL.as_nanos();
        let due = u32::try_from(due).unwrap_or(u32::MAX);
        self.admissions = self.admissions.saturating_add(due).min(BURST);
        self.refilled = Some(refilled + REFILL_INTERVAL * due);
        let is_left = self.admissions > 0;
        self.admissions -= u32::from(is_left);
        is_left
    }
}

/// Returns whether the datagram contains the identity of its sender's participant, as its
/// announcement does.
fn names_participant(content: &[u8], sender: Sender) -> bool {
    let mut identity = [0; size_of::<Sender>() + PARTICIPANT.len()];
    identity[..sender.len()].copy_from_slice(&sender);
    identity[sender.len()..].copy_from_slice(&PARTICIPANT);
    content.windows(identity.len()).any(|window| window == identity)
}

/// Receives a message as recvmsg(2), but drops datagrams of IPv4 that the filter rejects.
///
/// # Safety
/// As for recvmsg(2): `message` is valid for reads and writes, and so are its buffers.
#[unsafe(no_mangle)]
unsafe extern "C" fn recvmsg(
    socket: libc::c_int,
    message: *mut libc::msghdr,
    flags: libc::c_int,
) -> libc::ssize_t {
    // SAFETY: the caller passes a valid header, or a null pointer.
    let Some(original) = (unsafe { message.as_ref() }).copied() else { return fault() };
    loop {
        // SAFETY: the arguments are those of the caller, who guarantees that the kernel may write.
        let received = unsafe { libc::syscall(libc::SYS_recvmsg, socket, message, flags) } as libc::ssize_t;
        let Ok(length) = usize::try_from(received) else { return received };
        // SAFETY: the kernel has just filled the message.
        let datagram = unsafe { datagram(&*message, length) };
        let is_accepted = |datagram| {
            FILTER.lock().unwrap_or_else(PoisonError::into_inner).accepts(datagram, Instant::now())
        };
        if datagram.is_none_or(is_accepted) {
            return received;
        }
        // The kernel has replaced the sizes of the buffers by those of their contents.
        // SAFETY: as above.
        unsafe { *message = original };
    }
}

fn fault() -> libc::ssize_t {
    nix::errno::Errno::EFAULT.set();
    -1
}

/// Returns the received bytes if they are a datagram of IPv4 in a single buffer.
///
/// # Safety
/// The kernel has filled `message` with `length` bytes, and its buffers are still valid.
unsafe fn datagram(message: &libc::msghdr, length: usize) -> Option<&[u8]> {
    let has_address = !message.msg_name.is_null()
        && message.msg_namelen as usize >= size_of::<libc::sockaddr_in>()
        && message.msg_iovlen == 1;
    if !has_address {
        return None;
    }
    // SAFETY: the kernel has written an address, which begins with its family.
    let family = unsafe { message.msg_name.cast::<libc::sa_family_t>().read_unaligned() };
    if i32::from(family) != libc::AF_INET {
        return None;
    }
    // SAFETY: there is one buffer, by the check above.
    let buffer = unsafe { &*message.msg_iov };
    // SAFETY: the kernel has written that many bytes, unless the buffer was too short.
    Some(unsafe { std::slice::from_raw_parts(buffer.iov_base.cast(), length.min(buffer.iov_len)) })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{MsgFlags, SockaddrIn, recvmsg};

    use super::*;

    fn sender(number: u64) -> Sender {
        let mut sender = [1; 12];
        sender[4..].copy_from_slice(&number.to_be_bytes());
        sender
    }

    fn message(number: u64, content: &[u8]) -> Vec<u8> {
        let mut message = b"RTPS\x02\x03\x01\x0f".to_vec();
        message.extend(sender(number));
        message.extend(content);
        message
    }

    fn submessage(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind, LITTLE_ENDIAN];
        bytes.extend((body.len() as u16).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn announcement(number: u64) -> Vec<u8> {
        let identity = [sender(number).as_slice(), &PARTICIPANT].concat();
        message(number, &submessage(0x15, &identity))
    }

    fn fragment(number: u64, bytes: u32) -> Vec<u8> {
        let mut body = vec![0; MESSAGE_BYTES_AT];
        body.extend(bytes.to_le_bytes());
        message(number, &submessage(DATA_FRAG, &body))
    }

    #[test]
    fn accepts_senders_after_their_announcement() {
        let (mut filter, now) = (Filter::new(), Instant::now());
        let heartbeat = message(1, &submessage(0x07, &[0; 28]));
        assert!(!filter.accepts(&heartbeat, now));
        assert!(filter.accepts(&announcement(1), now));
        assert!(filter.accepts(&heartbeat, now));
        let of_another = [&message(2, &[])[..], &announcement(1)[HEADER_BYTES..]].concat();
        assert!(!filter.accepts(&of_another, now), "it announces another participant");
    }

    #[test]
    fn limits_new_senders_per_time() {
        let (mut filter, now) = (Filter::new(), Instant::now());
        let mut accepted = |range: std::ops::Range<u64>, now| {
            range.filter(|n| filter.accepts(&announcement(*n), now)).count()
        };
        assert_eq!(accepted(0..5000, now), BURST as usize);
        assert_eq!(accepted(5000..6000, now + REFILL_INTERVAL / 2), 0);
        assert_eq!(accepted(6000..7000, now + REFILL_INTERVAL * 3), 3);
        assert_eq!(accepted(0..1000, now + REFILL_INTERVAL * 3), 1000, "known ones");
        let later = now + REFILL_INTERVAL * 100_000;
        assert_eq!(accepted(7000..12_000, later), BURST as usize);
    }

    #[test]
    fn forgets_longest_silent_sender() {
        let (mut filter, mut now) = (Filter::new(), Instant::now());
        for number in 0..MAX_SENDERS as u64 {
            now += REFILL_INTERVAL;
            assert!(filter.accepts(&announcement(number), now));
        }
        now += REFILL_INTERVAL;
        assert!(filter.accepts(&message(0, &[]), now), "the first one is not silent");
        assert!(filter.accepts(&announcement(1 << 40), now));
        assert_eq!(filter.senders.len(), MAX_SENDERS);
        assert!(filter.accepts(&message(0, &[]), now));
        assert!(!filter.accepts(&message(1, &[]), now));
    }

    #[test]
    fn rejects_fragments_of_larger_messages() {
        let (mut filter, now) = (Filter::new(), Instant::now());
        assert!(filter.accepts(&announcement(1), now));
        assert!(filter.accepts(&fragment(1, MIN_LIMIT as u32), now));
        assert!(!filter.accepts(&fragment(1, MIN_LIMIT as u32 + 1), now));
        assert!(!filter.accepts(&fragment(1, u32::MAX), now));
        filter.max_bytes = 2 * MIN_LIMIT;
        assert!(filter.accepts(&fragment(1, MIN_LIMIT as u32 + 1), now));

        let big_endian = |bytes: u32| {
            let body = [&[0; MESSAGE_BYTES_AT][..], &bytes.to_be_bytes()].concat();
            message(1, &[&[DATA_FRAG, 0, 0, body.len() as u8][..], &body].concat())
        };
        assert!(filter.accepts(&big_endian(1), now));
        assert!(!filter.accepts(&big_endian(u32::MAX), now));
        // After other submessages, and without a length.
        let mut last = [submessage(INFO_TS, &[]), submessage(PAD, &[]), submessage(0x0e, &[0; 12])].concat();
        last.extend(&fragment(1, u32::MAX)[HEADER_BYTES..]);
        let length_at = HEADER_BYTES + last.len() - MESSAGE_BYTES_AT - 4 - 2;
        let mut last = message(1, &last);
        assert!(!filter.accepts(&last, now));
        last[length_at..length_at + 2].fill(0);
        assert!(!filter.accepts(&last, now));
    }

    #[test]
    fn rejects_incomplete_datagrams() {
        let (mut filter, now) = (Filter::new(), Instant::now());
        assert!(filter.accepts(&announcement(1), now));
        let whole = fragment(1, 1);
        for length in 0..whole.len() {
            let is_whole = length == HEADER_BYTES;
            assert_eq!(filter.accepts(&whole[..length], now), is_whole, "{length} bytes");
        }
        let mut other = announcement(1);
        other[3] = b'X';
        assert!(!filter.accepts(&other, now));
    }

    #[test]
    fn replaces_function_of_the_c_library() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        let number = 0x5eed_0000_0000_0001;
        let sent = [message(number, &[]), b"junk".to_vec(), announcement(number), message(number, &[])];
        for datagram in &sent {
            socket.send_to(datagram, address).unwrap();
        }
        let receive = || {
            let mut bytes = [0; 128];
            let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
            let received = recvmsg::<SockaddrIn>(socket.as_raw_fd(), &mut parts, None, MsgFlags::empty())
                .map(|message| {
                    assert_eq!(message.address.map(|sender| sender.port()), Some(address.port()));
                    message.bytes
                });
            received.map(|length| bytes[..length].to_vec())
        };
        assert_eq!(receive(), Ok(sent[2].clone()));
        assert_eq!(receive(), Ok(sent[3].clone()));
        assert_eq!(receive(), Err(nix::errno::Errno::EAGAIN));
    }
}

//! Adds type hashes to the announcements of publishers and subscribers.
//!
//! Nodes of ROS 2 since Jazzy read the hash of a topic's type from the policy `USER_DATA` of an
//! announcement. rustdds receives this policy, but cannot send it, and it accepts no socket from
//! its users. It sends by `sendto`, and nothing else in this process does so to UDP. This module
//! defines that function, as [`filter`](crate::filter) does with `recvmsg`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use nix::libc;
use ros2_client::MessageTypeName;

/// The maximum length of a datagram of UDP.
const MAX_DATAGRAM: usize = 65_507;
/// Protocol, version, vendor and sender.
const HEADER_BYTES: usize = 20;
/// Kind, flags, and length of the content.
const SUBMESSAGE_HEADER_BYTES: usize = 4;
const DATA: u8 = 0x15;
/// Flags of `DATA`.
const LITTLE_ENDIAN: u8 = 1;
const INLINE_QOS: u8 = 2;
const HAS_DATA: u8 = 4;
/// Places in the content of `DATA`.
const OFFSET_TO_INLINE_QOS_AT: usize = 2;
const WRITER_AT: usize = 8;
/// The writers that announce publishers and subscribers.
const ANNOUNCERS: [[u8; 4]; 2] = [[0, 0, 3, 0xc2], [0, 0, 4, 0xc2]];
/// The encoding of announcements: a list of parameters, little-endian.
const PL_CDR_LE: [u8; 2] = [0, 3];
const PID_SENTINEL: u16 = 0x0001;
const PID_TYPE_NAME: u16 = 0x0007;
const PID_USER_DATA: u16 = 0x002c;

/// The content of `USER_DATA` for the types with these names in DDS.
static HASHES: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// Announces the hash of a type: `geometry_msgs/msg/Vector3`.
pub(crate) fn announce(type_name: &str, hash: &str) {
    let Some((package, kind)) = type_name.split_once("/msg/") else { return };
    let name = MessageTypeName::new(package, kind).dds_msg_type();
    HASHES.lock().unwrap_or_else(PoisonError::into_inner).insert(name, format!("typehash={hash};"));
}

/// Returns the datagram with the hashes of the announced types, if it announces any.
fn with_hashes(datagram: &[u8], hashes: &BTreeMap<String, String>) -> Option<Vec<u8>> {
    let (header, mut rest) = datagram.split_at_checked(HEADER_BYTES)?;
    if !header.starts_with(b"RTPS") {
        return None;
    }
    // A copy of the part before `rest`, once a hash was added.
    let mut longer: Option<Vec<u8>> = None;
    while !rest.is_empty() {
        let done = datagram.len() - rest.len();
        let (start, others) = rest.split_first_chunk::<SUBMESSAGE_HEADER_BYTES>()?;
        let [kind, flags, low, high] = *start;
        let length = if flags & LITTLE_ENDIAN != 0 { [low, high] } else { [high, low] };
        let length = match usize::from(u16::from_le_bytes(length)) {
            // The last submessage, up to the end.
            0 if kind == DATA => others.len(),
            length => length,
        };
        let (body, others) = others.split_at_checked(length)?;
        let parameter = (kind == DATA).then(|| hash_of(flags, body, hashes)).flatten();
        match parameter {
            Some((at, parameter)) => {
                let longer = longer.get_or_insert_with(|| datagram[..done].to_vec());
                longer.extend(start);
                let begin = longer.len();
                longer.extend(&body[..at]);
                longer.extend(parameter);
                longer.extend(&body[at..]);
                let length = u16::try_from(longer.len() - begin).ok()?;
                longer[begin - 2..begin].copy_from_slice(&length.to_le_bytes());
            }
            None => {
                if let Some(longer) = &mut longer {
                    longer.extend(start);
                    longer.extend(body);
                }
            }
        }
        rest = others;
    }
    longer.filter(|longer| longer.len() <= MAX_DATAGRAM)
}

/// Returns the parameter for the announcement in the content of `DATA`, and its place: before the
/// end of the list.
fn hash_of(flags: u8, body: &[u8], hashes: &BTreeMap<String, String>) -> Option<(usize, Vec<u8>)> {
    let is_announcement = body.get(WRITER_AT..)?.first_chunk().is_some_and(|id| ANNOUNCERS.contains(id));
    if !is_announcement || flags & HAS_DATA == 0 || flags & LITTLE_ENDIAN == 0 {
        return None;
    }
    let word = |at: usize| Some(u16::from_le_bytes(*body.get(at..)?.first_chunk()?));
    let mut at = OFFSET_TO_INLINE_QOS_AT + 2 + usize::from(word(OFFSET_TO_INLINE_QOS_AT)?);
    if flags & INLINE_QOS != 0 {
        while word(at)? != PID_SENTINEL {
            at += 4 + usize::from(word(at + 2)?);
        }
        at += 4;
    }
    if !body.get(at..)?.starts_with(&PL_CDR_LE) {
        return None;
    }
    at += 4;
    let mut hash = None;
    loop {
        let (id, length) = (word(at)?, usize::from(word(at + 2)?));
        match id {
            PID_SENTINEL => break,
            PID_USER_DATA => return None,
            PID_TYPE_NAME => {
                // A length, and a text that ends with zero.
                let name = body.get(at + 8..at + 4 + length)?.split(|byte| *byte == 0).next()?;
                hash = hashes.get(std::str::from_utf8(name).ok()?);
            }
            _ => {}
        }
        at += 4 + length;
    }
    let hash = hash?;
    let filled = hash.len().next_multiple_of(4);
    let mut parameter = Vec::with_capacity(8 + filled);
    parameter.extend(PID_USER_DATA.to_le_bytes());
    parameter.extend(u16::try_from(4 + filled).ok()?.to_le_bytes());
    parameter.extend(u32::try_from(hash.len()).ok()?.to_le_bytes());
    parameter.extend(hash.as_bytes());
    parameter.resize(8 + filled, 0);
    Some((at, parameter))
}

/// Sends a message as sendto(2), but adds type hashes to announcements.
///
/// # Safety
/// As for sendto(2): `buffer` is valid for `length` bytes, and `address` for `address_length`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sendto(
    socket: libc::c_int,
    buffer: *const libc::c_void,
    length: libc::size_t,
    flags: libc::c_int,
    address: *const libc::sockaddr,
    address_length: libc::socklen_t,
) -> libc::ssize_t {
    let send = |buffer: *const libc::c_void, length: usize| {
        // SAFETY: the arguments are those of the caller, or a vector of that length.
        let sent = unsafe {
            libc::syscall(libc::SYS_sendto, socket, buffer, length, flags, address, address_length)
        };
        sent as libc::ssize_t
    };
    if buffer.is_null() {
        return send(buffer, length);
    }
    // SAFETY: the caller guarantees that the bytes are valid.
    let datagram = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) };
    let longer = with_hashes(datagram, &HASHES.lock().unwrap_or_else(PoisonError::into_inner));
    match longer {
        // A datagram is sent as a whole, or not at all.
        Some(longer) => send(longer.as_ptr().cast(), longer.len()).min(length as libc::ssize_t),
        None => send(buffer, length),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    const HASH: &str = "RIHS01_cc12fe83e4c02719f1ce8070bfd14aecd40f75a96696a67a2a1f37f7dbb0765d";

    fn hashes() -> BTreeMap<String, String> {
        [("geometry_msgs::msg::dds_::Vector3_".to_owned(), format!("typehash={HASH};"))].into()
    }

    fn parameter(id: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = [id.to_le_bytes(), (value.len().next_multiple_of(4) as u16).to_le_bytes()].concat();
        bytes.extend(value);
        bytes.resize(4 + value.len().next_multiple_of(4), 0);
        bytes
    }

    fn text(text: &str) -> Vec<u8> {
        [&(text.len() as u32 + 1).to_le_bytes(), text.as_bytes(), &[0]].concat()
    }

    /// The content of `DATA` of a writer, and its submessage.
    fn data(writer: [u8; 4], flags: u8, parameters: &[Vec<u8>]) -> Vec<u8> {
        let mut body = vec![0, 0, 16, 0, 0, 0, 0, 0];
        body.extend(writer);
        body.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        if flags & INLINE_QOS != 0 {
            body.extend([parameter(0x0071, &[0; 4]), parameter(PID_SENTINEL, &[])].concat());
        }
        body.extend([0, 3, 0, 0]);
        body.extend(parameters.concat());
        body.extend(parameter(PID_SENTINEL, &[]));
        [vec![DATA, flags], (body.len() as u16).to_le_bytes().to_vec(), body].concat()
    }

    fn message(submessages: &[Vec<u8>]) -> Vec<u8> {
        [b"RTPS\x02\x04\x01\x12", [7; 12].as_slice(), &submessages.concat()].concat()
    }

    fn announcement() -> Vec<Vec<u8>> {
        vec![
            parameter(0x0005, &text("rt/angles")),
            parameter(PID_TYPE_NAME, &text("geometry_msgs::msg::dds_::Vector3_")),
        ]
    }

    #[test]
    fn announcements_contain_the_type_hash() {
        let value = format!("typehash={HASH};");
        let user_data = [&(value.len() as u32).to_le_bytes(), value.as_bytes()].concat();
        let expected = [announcement(), vec![parameter(PID_USER_DATA, &user_data)]].concat();
        let other = || vec![0x09, LITTLE_ENDIAN, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        for writer in ANNOUNCERS {
            for flags in [LITTLE_ENDIAN | HAS_DATA, LITTLE_ENDIAN | HAS_DATA | INLINE_QOS] {
                let sent = message(&[other(), data(writer, flags, &announcement()), other()]);
                let wanted = message(&[other(), data(writer, flags, &expected), other()]);
                assert_eq!(with_hashes(&sent, &hashes()), Some(wanted));
            }
        }
    }

    #[test]
    fn last_submessage_may_omit_its_length() {
        let flags = LITTLE_ENDIAN | HAS_DATA;
        let mut sent = message(&[data(ANNOUNCERS[0], flags, &announcement())]);
        let with_length = with_hashes(&sent, &hashes());
        sent[HEADER_BYTES + 2..HEADER_BYTES + 4].fill(0);
        assert!(with_length.is_some());
        assert_eq!(with_hashes(&sent, &hashes()), with_length);
    }

    #[test]
    fn other_datagrams_remain() {
        let flags = LITTLE_ENDIAN | HAS_DATA;
        let unknown = vec![parameter(PID_TYPE_NAME, &text("my_msgs::msg::dds_::Unknown_"))];
        let own = [announcement(), vec![parameter(PID_USER_DATA, &[0; 4])]].concat();
        for sent in [
            vec![],
            b"RTPS".to_vec(),
            message(&[]),
            message(&[data([0, 0, 0x12, 0x03], flags, &announcement())]),
            message(&[data(ANNOUNCERS[0], LITTLE_ENDIAN, &announcement())]),
            message(&[data(ANNOUNCERS[0], flags, &unknown)]),
            message(&[data(ANNOUNCERS[0], flags, &own)]),
        ] {
            assert_eq!(with_hashes(&sent, &hashes()), None);
        }
        let whole = message(&[data(ANNOUNCERS[0], flags, &announcement())]);
        for length in 0..whole.len() {
            assert_eq!(with_hashes(&whole[..length], &hashes()), None, "truncated to {length}");
        }
    }

    #[test]
    fn datagrams_are_sent() {
        let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        announce("geometry_msgs/msg/Vector3", HASH);
        let sent = message(&[data(ANNOUNCERS[0], LITTLE_ENDIAN | HAS_DATA, &announcement())]);
        assert_eq!(from.send_to(&sent, to.local_addr().unwrap()).unwrap(), sent.len());
        assert_eq!(from.send_to(b"other", to.local_addr().unwrap()).unwrap(), 5);
        let mut buffer = [0; 1500];
        let length = to.recv(&mut buffer).unwrap();
        assert_eq!(Some(buffer[..length].to_vec()), with_hashes(&sent, &hashes()));
        assert_eq!(to.recv(&mut buffer).unwrap(), 5);
    }
}

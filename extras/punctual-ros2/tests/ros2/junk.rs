//! Datagrams of a hostile host, for the first participant of domain 0.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

/// The ports of discovery and of user traffic, by which every host reaches the participant.
const PORTS: [u16; 2] = [7410, 7411];
/// The writer of announcements of participants, whose messages every participant accepts.
const PARTICIPANT_WRITER: [u8; 4] = [0, 1, 0, 0xc2];
/// The kinds of submessages.
const KINDS: [u8; 12] = [0x01, 0x06, 0x07, 0x08, 0x09, 0x0c, 0x0e, 0x12, 0x13, 0x15, 0x16, 0x30];
const DATA_FRAG: u8 = 0x16;
const LITTLE_ENDIAN: u8 = 1;

fn socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is loopback")
}

fn send(socket: &UdpSocket, datagram: &[u8]) {
    for port in PORTS {
        socket.send_to(datagram, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).expect("there is loopback");
    }
}

/// Returns the header of a message of a sender with this number.
fn header(sender: u64) -> Vec<u8> {
    let mut message = b"RTPS\x02\x03\x01\x0f\x01\x0f\x01\x0f".to_vec();
    message.extend(sender.to_be_bytes());
    message
}

/// Sends ten thousand messages of as many senders, with random submessages.
pub(crate) fn flood() {
    let (socket, mut state) = (socket(), 7_u64);
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    for sender in 0..10_000_u64 {
        let mut message = header(sender);
        for _ in 0..=random() % 4 {
            let kind = KINDS[usize::from(random()) % KINDS.len()];
            let mut body: Vec<u8> = (0..random()).map(|_| random()).collect();
            if body.len() >= 12 && kind != DATA_FRAG {
                // Offset to the payload, reader and writer, as in DATA and HEARTBEAT.
                body[..4].copy_from_slice(&[0, 0, 16, 0]);
                body[4..8].fill(0);
                body[8..12].copy_from_slice(&PARTICIPANT_WRITER);
            }
            let length = if random() % 4 == 0 { 0 } else { body.len() as u16 };
            message.extend([kind, random() | LITTLE_ENDIAN]);
            message.extend(length.to_le_bytes());
            message.extend(body);
        }
        send(&socket, &message);
    }
}

/// Sends one fragment of a message that is announced with 4 GiB.
pub(crate) fn exhaust() {
    const FRAGMENT_BYTES: u16 = 1024;
    let mut body = vec![0, 0, 28, 0, 0, 0, 0, 0];
    body.extend(PARTICIPANT_WRITER);
    // High and low half of the sequence number, number of the first fragment, number of fragments.
    body.extend(0_u32.to_le_bytes());
    body.extend(1_u32.to_le_bytes());
    body.extend(1_u32.to_le_bytes());
    body.extend(1_u16.to_le_bytes());
    body.extend(FRAGMENT_BYTES.to_le_bytes());
    body.extend(u32::MAX.to_le_bytes());
    body.extend(vec![0; usize::from(FRAGMENT_BYTES)]);
    let mut message = header(1 << 40);
    message.extend([DATA_FRAG, LITTLE_ENDIAN]);
    message.extend((body.len() as u16).to_le_bytes());
    message.extend(body);
    send(&socket(), &message);
}

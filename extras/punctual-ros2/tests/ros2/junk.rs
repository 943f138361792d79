//! Datagrams of a hostile host, for the first participant of domain 0.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

/// The ports of discovery and of user traffic, by which every host reaches the participant.
const PORTS: [u16; 2] = [7410, 7411];
/// The writer of announcements of participants, whose messages every participant accepts.
const PARTICIPANT_WRITER: [u8; 4] = [0, 1, 0, 0xc2];
/// The reader of these announcements.
const PARTICIPANT_READER: [u8; 4] = [0, 1, 0, 0xc7];
/// The end of the identity of a participant.
const PARTICIPANT: [u8; 4] = [0, 0, 1, 0xc1];
/// The kinds of submessages.
const KINDS: [u8; 12] = [0x01, 0x06, 0x07, 0x08, 0x09, 0x0c, 0x0e, 0x12, 0x13, 0x15, 0x16, 0x30];
const DATA: u8 = 0x15;
const DATA_FRAG: u8 = 0x16;
/// A flag of `DATA`: it has a payload.
const HAS_DATA: u8 = 4;
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

/// Appends a submessage.
fn add(message: &mut Vec<u8>, kind: u8, flags: u8, body: &[u8]) {
    message.extend([kind, flags | LITTLE_ENDIAN]);
    message.extend((body.len() as u16).to_le_bytes());
    message.extend(body);
}

/// Returns the message by which a sender announces a participant.
fn announcement(sender: u64) -> Vec<u8> {
    let mut message = header(sender);
    // Flags, offset to the payload, reader, writer, sequence number, and encapsulation.
    let mut body = vec![0, 0, 16, 0, 0, 0, 0, 0];
    body.extend(PARTICIPANT_WRITER);
    body.extend([0, 0, 0, 0, 1, 0, 0, 0, 0, 3, 0, 0]);
    // The identity of the participant, and the end of the list.
    body.extend([0x50, 0, 16, 0]);
    body.extend(&message[8..20]);
    body.extend(PARTICIPANT);
    body.extend([1, 0, 0, 0]);
    add(&mut message, DATA, HAS_DATA, &body);
    message
}

/// Sends a hundred thousand messages of as many senders, with random submessages. Every fourth
/// sender announces a participant before.
pub(crate) fn flood() {
    let (socket, mut state) = (socket(), 7_u64);
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    for sender in 0..100_000_u64 {
        if sender % 4 == 0 {
            send(&socket, &announcement(sender));
        }
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

/// Sends the first fragments of many large messages of a participant, which has announced itself.
pub(crate) fn exhaust() {
    const FRAGMENT_BYTES: u16 = 1024;
    const MESSAGE_BYTES: u32 = 1 << 20;
    const SENDER: u64 = 1 << 40;
    let socket = socket();
    send(&socket, &announcement(SENDER));
    for (writer, number) in (0..4).flat_map(|writer| (1..=128_u32).map(move |number| (writer, number))) {
        let mut body = vec![0, 0, 28, 0];
        body.extend(PARTICIPANT_READER);
        body.extend([0, 1, writer, 0xc2]);
        // High and low half of the sequence number, number of the first fragment, number of
        // fragments.
        body.extend(0_u32.to_le_bytes());
        body.extend(number.to_le_bytes());
        body.extend(1_u32.to_le_bytes());
        body.extend(1_u16.to_le_bytes());
        body.extend(FRAGMENT_BYTES.to_le_bytes());
        body.extend(MESSAGE_BYTES.to_le_bytes());
        body.extend(vec![0; usize::from(FRAGMENT_BYTES)]);
        let mut message = header(SENDER);
        add(&mut message, DATA_FRAG, 0, &body);
        send(&socket, &message);
    }
}

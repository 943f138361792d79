//! MAVLink 2 in datagrams. Signatures are not checked, and MAVLink 1 is ignored.

use std::io;
use std::net::UdpSocket;

use mavlink::dialects::common::MavMessage;
use mavlink::{MAV_STX_V2, MAVLinkV2MessageRaw, MavHeader, MavlinkVersion, Message};

/// Longest datagram; a frame has at most 280 bytes, but a datagram may contain several.
const MAX_DATAGRAM_BYTES: usize = 2048;
/// Length of a frame without payload and signature: start, header, check sum.
const OVERHEAD_BYTES: usize = 12;
const SIGNATURE_BYTES: usize = 13;
const SIGNED: u8 = 0x01;

/// An address in a MAVLink network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Vehicle or ground station.
    pub system: u8,
    /// Part of it.
    pub component: u8,
}

/// The autopilot of the first vehicle.
pub const AUTOPILOT: Address = Address { system: 1, component: 1 };
/// The computer on board of that vehicle, on which this app runs.
pub const COMPANION: Address = Address { system: 1, component: 191 };

/// Sends and receives messages, without waiting.
pub trait Link: Send {
    /// Sends a message.
    ///
    /// # Errors
    /// Returns an error if the network does not take the datagram.
    fn send(&mut self, message: &MavMessage) -> io::Result<()>;

    /// Returns the next message of the peer, or `Some(None)` for a datagram without one; `None` if
    /// nothing has arrived.
    fn receive(&mut self) -> Option<Option<MavMessage>>;
}

/// Encodes messages of one sender.
#[derive(Debug)]
pub struct Encoder {
    header: MavHeader,
    raw: MAVLinkV2MessageRaw,
}

impl Encoder {
    /// Returns the encoder of a sender.
    #[must_use]
    pub fn new(sender: Address) -> Self {
        let header =
            MavHeader { system_id: sender.system.into(), component_id: sender.component, sequence: 0 };
        Self { header, raw: MAVLinkV2MessageRaw::new() }
    }

    /// Returns the frame of a message.
    pub fn encode(&mut self, message: &MavMessage) -> &[u8] {
        self.raw = MAVLinkV2MessageRaw::new();
        self.raw.serialize_message(self.header, message);
        self.header.sequence = self.header.sequence.wrapping_add(1);
        self.raw.raw_bytes()
    }
}

/// Decodes the messages of one sender from datagrams.
#[derive(Debug)]
pub struct Decoder {
    sender: Address,
    bytes: Box<[u8; MAX_DATAGRAM_BYTES]>,
    /// Part of `bytes` that is not decoded yet.
    rest: std::ops::Range<usize>,
    rejected: u64,
}

impl Decoder {
    /// Returns the decoder of the messages of `sender`.
    #[must_use]
    pub fn new(sender: Address) -> Self {
        Self { sender, bytes: Box::new([0; MAX_DATAGRAM_BYTES]), rest: 0..0, rejected: 0 }
    }

    /// Returns the place of the next datagram, once the last one is decoded.
    pub fn buffer(&mut self) -> &mut [u8] {
        &mut self.bytes[..]
    }

    /// Starts to decode a datagram of this length.
    pub fn start(&mut self, length: usize) {
        self.rest = 0..length.min(MAX_DATAGRAM_BYTES);
    }

    /// Frames that are damaged, incomplete or of another dialect.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Returns the next message of the sender.
    pub fn decode(&mut self) -> Option<MavMessage> {
        while !self.rest.is_empty() {
            let bytes = &self.bytes[self.rest.clone()];
            let Some(frame) = first_frame(bytes) else {
                self.rejected += 1;
                self.rest = 0..0;
                break;
            };
            self.rest.start += frame.raw_bytes().len();
            // The checksum depends on the message, so that of another dialect is unknown.
            let is_known = MavMessage::default_message_from_id(frame.message_id()).is_some();
            if !is_known || !frame.has_valid_crc::<MavMessage>() {
                self.rejected += 1;
                if is_known {
                    self.rest = 0..0;
                }
                continue;
            }
            let sender = (u32::from(self.sender.system), self.sender.component);
            if (frame.system_id(), frame.component_id()) != sender {
                continue;
            }
            let message = MavMessage::parse(MavlinkVersion::V2, frame.message_id(), frame.payload());
            if let Ok(message) = message {
                return Some(message);
            }
        }
        None
    }
}

/// Returns the frame at the start of `bytes`, whose checksum may be wrong; `None` if it is not
/// complete.
fn first_frame(bytes: &[u8]) -> Option<MAVLinkV2MessageRaw> {
    let &[start, payload, flags, ..] = bytes else { return None };
    let signature = if flags & SIGNED == 0 { 0 } else { SIGNATURE_BYTES };
    let length = OVERHEAD_BYTES + usize::from(payload) + signature;
    if start != MAV_STX_V2 || flags & !SIGNED != 0 {
        return None;
    }
    let mut raw = MAVLinkV2MessageRaw::new();
    raw.as_mut_slice().get_mut(..length)?.copy_from_slice(bytes.get(..length)?);
    Some(raw)
}

/// A link over UDP.
#[derive(Debug)]
pub struct UdpLink {
    socket: UdpSocket,
    encoder: Encoder,
    decoder: Decoder,
}

impl UdpLink {
    /// Returns the link of `own` to `peer`. The socket is connected to the peer's address.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be set not to block.
    pub fn new(socket: UdpSocket, own: Address, peer: Address) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, encoder: Encoder::new(own), decoder: Decoder::new(peer) })
    }

    /// Frames that are damaged, incomplete or of another dialect.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.decoder.rejected()
    }
}

impl Link for UdpLink {
    fn send(&mut self, message: &MavMessage) -> io::Result<()> {
        self.socket.send(self.encoder.encode(message)).map(drop)
    }

    fn receive(&mut self) -> Option<Option<MavMessage>> {
        if let Some(message) = self.decoder.decode() {
            return Some(Some(message));
        }
        // An error, as of a peer that is not there yet, is a link without messages.
        let length = self.socket.recv(self.decoder.buffer()).ok()?;
        self.decoder.start(length);
        Some(self.decoder.decode())
    }
}

#[cfg(test)]
mod tests {
    use mavlink::dialects::common::{COMMAND_ACK_DATA, HEARTBEAT_DATA};

    use super::*;

    fn decode(bytes: &[u8]) -> (Vec<MavMessage>, u64) {
        let mut decoder = Decoder::new(AUTOPILOT);
        decoder.buffer()[..bytes.len()].copy_from_slice(bytes);
        decoder.start(bytes.len());
        let messages = std::iter::from_fn(|| decoder.decode()).collect();
        (messages, decoder.rejected())
    }

    fn heartbeat() -> MavMessage {
        MavMessage::HEARTBEAT(HEARTBEAT_DATA { custom_mode: 6 << 16, ..HEARTBEAT_DATA::DEFAULT })
    }

    #[test]
    fn decodes_all_frames_of_datagram() {
        let mut encoder = Encoder::new(AUTOPILOT);
        let mut datagram = encoder.encode(&heartbeat()).to_vec();
        let ack = MavMessage::COMMAND_ACK(COMMAND_ACK_DATA::DEFAULT);
        datagram.extend(encoder.encode(&ack));
        assert_eq!(decode(&datagram), (vec![heartbeat(), ack], 0));
    }

    #[test]
    fn ignores_other_senders() {
        let frame = Encoder::new(COMPANION).encode(&heartbeat()).to_vec();
        assert_eq!(decode(&frame), (vec![], 0));
    }

    #[test]
    fn skips_frame_of_other_dialect() {
        let mut encoder = Encoder::new(AUTOPILOT);
        let mut datagram = encoder.encode(&heartbeat()).to_vec();
        datagram[7..10].fill(0xff);
        datagram.extend(encoder.encode(&heartbeat()));
        assert_eq!(decode(&datagram), (vec![heartbeat()], 1));
    }

    #[test]
    fn datagram_of_other_sender_does_not_end_reception() {
        let [own, peer] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        own.connect(peer.local_addr().unwrap()).unwrap();
        peer.connect(own.local_addr().unwrap()).unwrap();
        for sender in [COMPANION, AUTOPILOT] {
            peer.send(Encoder::new(sender).encode(&heartbeat())).unwrap();
        }
        let mut link = UdpLink::new(own, COMPANION, AUTOPILOT).unwrap();
        assert_eq!([link.receive(), link.receive()], [Some(None), Some(Some(heartbeat()))]);
        assert_eq!(link.receive(), None);
    }

    #[test]
    fn rejects_each_flipped_bit_and_each_shorter_frame() {
        let good = Encoder::new(AUTOPILOT).encode(&heartbeat()).to_vec();
        for bit in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bad), (vec![], 1), "bit {bit}");
        }
        for length in 1..good.len() {
            assert_eq!(decode(&good[..length]), (vec![], 1), "{length} bytes");
        }
    }
}

//! Marks of messages between two machines, in the recordings of both:
//!
//! | bytes | sent | received |
//! |---|---|---|
//! | 0 to 3 | `0x504a_0010` | `0x504a_0011` |
//! | 4 to 11 | its number | its number |

const SENT: u32 = 0x504a_0010;
const RECEIVED: u32 = 0x504a_0011;

/// A message in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Message number.
    pub number: u64,
    /// Time on the recording's clock.
    pub time: u64,
    /// True for the sender's mark, false for the receiver's.
    pub sent: bool,
}

/// Returns the bytes that mark a message.
#[must_use]
pub fn mark(number: u64, sent: bool) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&if sent { SENT } else { RECEIVED }.to_ne_bytes());
    bytes[4..].copy_from_slice(&number.to_ne_bytes());
    bytes
}

/// Parses a mark of type `id`: its number, and whether the message was sent.
pub(crate) fn read(id: u32, content: &[u8]) -> Option<(u64, bool)> {
    let number = u64::from_ne_bytes(*content.first_chunk()?);
    match id {
        SENT => Some((number, true)),
        RECEIVED => Some((number, false)),
        _ => None,
    }
}

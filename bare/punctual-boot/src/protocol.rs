//! The part of the protocol that the boot loader and `cargo xtask load` share: XMODEM's bytes, its
//! time limits, and the declarations of an image.
//!
//! An image begins with a branch, [`MAGIC`] and the number of its bytes, which the first
//! instructions of `punctual-bare` contain. `cargo xtask load` appends a [`Trailer`], whose end is
//! the end of the last block. Other senders append only padding.

/// Begins a block of 128 bytes.
pub const SOH: u8 = 0x01;
/// Begins a block of 1024 bytes.
pub const STX: u8 = 0x02;
/// Ends the transfer.
pub const EOT: u8 = 0x04;
/// The block was received.
pub const ACK: u8 = 0x06;
/// Requests the block again.
pub const NAK: u8 = 0x15;
/// Cancels the transfer, if there are two in a row.
pub const CAN: u8 = 0x18;
/// Requests blocks with a CRC.
pub const WITH_CRC: u8 = b'C';

/// Maximum time for a byte within a block, in ms.
pub const BYTE_LIMIT: u32 = 1000;
/// Maximum time until a block starts, in ms.
pub const BLOCK_LIMIT: u32 = 3000;
/// The line is silent if the receiver gets nothing for this time, in ms.
pub const SILENCE: u32 = 100;
/// Maximum number of consecutive errors before the receiver cancels.
pub const MAX_ERRORS: u32 = 5;
/// Time until the receiver repeats its request to start, in ms.
pub const REQUEST_LIMIT: u32 = 1000;
/// Number of requests to start.
pub const REQUESTS: u32 = 10;

/// The time after which a receiver whose sender has disappeared requests an image again, in ms.
pub const RECOVERY: u32 = (MAX_ERRORS + 1) * (BLOCK_LIMIT + BYTE_LIMIT + SILENCE);

/// Maximum time until the receiver answers a block, in ms: longer than the receiver waits for the
/// rest of it.
pub const ANSWER_LIMIT: u32 = 2 * (BYTE_LIMIT + SILENCE) + BLOCK_LIMIT;
/// Number of attempts to send a block. The sender cancels after the last one, so the receiver
/// returns at once instead of after its own limit.
pub const ATTEMPTS: u32 = MAX_ERRORS;
/// Maximum time until the receiver requests an image, in ms: it may still be waiting for an earlier
/// sender.
pub const START_LIMIT: u32 = RECOVERY + REQUESTS * REQUEST_LIMIT;

const _: () =
    assert!(ANSWER_LIMIT > BLOCK_LIMIT + BYTE_LIMIT + SILENCE, "the sender is the more patient end");

/// Marks an image and its trailer.
pub const MAGIC: [u8; 8] = *b"punctual";
/// Offset of [`MAGIC`] in an image, after a branch. The size follows it.
pub const DECLARATION: usize = 4;

/// Returns the size that an image declares for itself in its first bytes, rounded up to pages.
pub fn declared_size(image: &[u8]) -> Option<u32> {
    let (magic, rest) = image.get(DECLARATION..)?.split_first_chunk()?;
    (*magic == MAGIC).then_some(u32::from_le_bytes(*rest.first_chunk()?))
}

/// The end of the last block, with which the receiver checks the image and its board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Size of the image in bytes, without padding and trailer.
    pub length: u32,
    /// CRC-32 of the image.
    pub crc: u32,
    /// Name of the board for which the image is linked, padded with zeros.
    pub board: [u8; Self::NAME],
}

impl Trailer {
    /// Maximum length of a board's name in bytes.
    pub const NAME: usize = 32;
    /// Size in bytes.
    pub const SIZE: usize = MAGIC.len() + 8 + Self::NAME;

    /// Creates the trailer of an image. A longer name is cut off.
    pub fn new(image: &[u8], name: &str) -> Self {
        let mut board = [0; Self::NAME];
        board.iter_mut().zip(name.bytes()).for_each(|(place, byte)| *place = byte);
        Self { length: image.len() as u32, crc: crc32(image), board }
    }

    /// Returns the bytes.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let numbers = [self.length, self.crc].map(u32::to_le_bytes);
        let parts = MAGIC.iter().chain(numbers.as_flattened()).chain(&self.board);
        bytes.iter_mut().zip(parts).for_each(|(place, byte)| *place = *byte);
        bytes
    }

    /// Returns the trailer at the end of the received bytes, if any.
    pub fn at_end_of(received: &[u8]) -> Option<Self> {
        let (_, bytes) = received.split_last_chunk::<{ Self::SIZE }>()?;
        let (magic, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (crc, board) = rest.split_first_chunk()?;
        let trailer = Self {
            length: u32::from_le_bytes(*length),
            crc: u32::from_le_bytes(*crc),
            board: board.try_into().ok()?,
        };
        (*magic == MAGIC).then_some(trailer)
    }

    /// Returns the name of the board.
    pub fn board(&self) -> &str {
        let length = self.board.iter().position(|&byte| byte == 0).unwrap_or(Self::NAME);
        core::str::from_utf8(&self.board[..length]).unwrap_or("an unnamed board")
    }
}

/// Updates a CRC-16/XMODEM with one byte.
pub fn crc16(crc: u16, byte: u8) -> u16 {
    (0..8).fold(
        crc ^ u16::from(byte) << 8,
        |crc, _| if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 },
    )
}

/// Returns the CRC-32/ISO-HDLC, that of Ethernet.
pub fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ if crc & 1 != 0 { 0xEDB8_8320 } else { 0 })
    };
    !bytes.iter().fold(u32::MAX, step)
}

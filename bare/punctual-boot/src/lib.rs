//! The receiving side of XMODEM and XMODEM-1K.
//!
//! *XMODEM/YMODEM Protocol Reference*, Chuck Forsberg, 14 October 1988, chapters 7 and 8.
#![no_std]

#[cfg(test)]
extern crate std;

use core::fmt;

pub mod protocol;

pub use protocol::crc16;
use protocol::{
    ACK, BLOCK_LIMIT, BYTE_LIMIT, CAN, EOT, MAX_ERRORS, NAK, REQUEST_LIMIT, REQUESTS, SILENCE, SOH, STX,
    Trailer, WITH_CRC, crc32, declared_size,
};

/// Number of requests for a CRC before falling back to a checksum.
const CRC_REQUESTS: u32 = 4;

/// Maximum number of bytes that are dropped after an error.
const MAX_DROPPED: u32 = 4096;

/// A serial line.
pub trait Line {
    /// Returns the next byte if one arrives within `timeout` milliseconds.
    fn receive(&mut self, timeout: u32) -> Option<u8>;

    /// Sends a byte.
    fn send(&mut self, byte: u8);
}

/// Reason why nothing was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No sender has answered.
    NoSender,
    /// The sender has cancelled.
    Cancelled,
    /// The file does not fit. The transfer has been cancelled: at the first block if the image
    /// declares its size.
    TooLarge,
    /// The line is too noisy, or dead. The transfer has been cancelled.
    TooManyErrors,
    /// A block that is neither the next one nor a repetition of the last. The transfer has been
    /// cancelled.
    OutOfStep,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSender => "no sender has answered",
            Self::Cancelled => "the sender has cancelled",
            Self::TooLarge => "the image is too large for this board",
            Self::TooManyErrors => "too many errors in a row",
            Self::OutOfStep => "a block is missing",
        })
    }
}

impl core::error::Error for Error {}

/// Meaning of the first byte.
enum Begun {
    Block { size: usize },
    End,
    Cancel,
    Noise,
}

/// Receives a file and returns its size, rounded up to whole blocks.
///
/// # Errors
/// See [`Error`]. Every wait has a limit.
pub fn receive(line: &mut impl Line, buffer: &mut [u8]) -> Result<usize, Error> {
    let (mut first, mut with_crc) = begin(line)?;
    let (mut received, mut expected, mut errors) = (0, 1_u8, 0);
    loop {
        let byte = first.take().or_else(|| line.receive(BLOCK_LIMIT));
        match byte.map_or(Begun::Noise, begun) {
            Begun::End => {
                line.send(ACK);
                return Ok(received);
            }
            // A single one could be noise. Further ones would disturb the next transfer.
            Begun::Cancel if line.receive(BYTE_LIMIT) == Some(CAN) => {
                wait_for_silence(line);
                return Err(Error::Cancelled);
            }
            Begun::Block { size } => {
                match block(line, size, with_crc, buffer.get_mut(received..).unwrap_or_default()) {
                    Ok(number) if number == expected => {
                        let declared = declared_size(&buffer[..size]).filter(|_| received == 0);
                        if declared.is_some_and(|declared| declared as usize > buffer.len()) {
                            return Err(cancel(line, Error::TooLarge));
                        }
                        received += size;
                        expected = expected.wrapping_add(1);
                        errors = 0;
                        line.send(ACK);
                        continue;
                    }
                    // The last answer was lost.
                    Ok(number) if received > 0 && number == expected.wrapping_sub(1) => {
                        line.send(ACK);
                        continue;
                    }
                    Ok(_) => return Err(cancel(line, Error::OutOfStep)),
                    Err(Bad::NoRoom) => return Err(cancel(line, Error::TooLarge)),
                    Err(Bad::Garbled) => {}
                }
            }
            Begun::Cancel | Begun::Noise => {}
        }
        errors += 1;
        if errors > MAX_ERRORS {
            return Err(cancel(line, Error::TooManyErrors));
        }
        wait_for_silence(line);
        // Before the first block, the sender interprets the answer as the request for its mode.
        with_crc &= received > 0 || errors <= CRC_REQUESTS;
        line.send(if with_crc && received == 0 { WITH_CRC } else { NAK });
    }
}

/// Drops bytes until the line is silent, and at most as many as of some blocks.
fn wait_for_silence(line: &mut impl Line) {
    (0..MAX_DROPPED).any(|_| line.receive(SILENCE).is_none());
}

/// Asks the sender to start. Returns its first byte, and whether it sends a CRC.
fn begin(line: &mut impl Line) -> Result<(Option<u8>, bool), Error> {
    for attempt in 0..REQUESTS {
        let with_crc = attempt < CRC_REQUESTS;
        line.send(if with_crc { WITH_CRC } else { NAK });
        if let Some(byte) = line.receive(REQUEST_LIMIT) {
            return Ok((Some(byte), with_crc));
        }
    }
    Err(Error::NoSender)
}

fn begun(byte: u8) -> Begun {
    match byte {
        SOH => Begun::Block { size: 128 },
        STX => Begun::Block { size: 1024 },
        EOT => Begun::End,
        CAN => Begun::Cancel,
        _ => Begun::Noise,
    }
}

enum Bad {
    Garbled,
    NoRoom,
}

/// Receives the rest of a block into the start of `buffer` and returns the block's number.
fn block(line: &mut impl Line, size: usize, with_crc: bool, buffer: &mut [u8]) -> Result<u8, Bad> {
    let mut next = || line.receive(BYTE_LIMIT).ok_or(Bad::Garbled);
    let (number, complement) = (next()?, next()?);
    let (mut sum, mut crc) = (0_u8, 0_u16);
    for i in 0..size {
        let byte = next()?;
        if let Some(place) = buffer.get_mut(i) {
            *place = byte;
        }
        sum = sum.wrapping_add(byte);
        crc = crc16(crc, byte);
    }
    let right = if with_crc { u16::from_be_bytes([next()?, next()?]) == crc } else { next()? == sum };
    if number != !complement || !right {
        return Err(Bad::Garbled);
    }
    if buffer.len() < size { Err(Bad::NoRoom) } else { Ok(number) }
}

/// An image that was received as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The image is this long, and for this board.
    Complete(usize),
    /// The sender has not appended a trailer, so only the blocks have been checked.
    Unchecked,
}

/// Reason not to enter an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// The trailer has another length than the image.
    Length,
    /// The trailer has another CRC than the image.
    Crc,
    /// The image is for another board.
    Board(Trailer),
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("the image has another length than its trailer; send it again"),
            Self::Crc => f.write_str("the image has another CRC-32 than its trailer; send it again"),
            Self::Board(trailer) => {
                write!(f, "the image is for {}; build it for this board", trailer.board())
            }
        }
    }
}

impl core::error::Error for Rejected {}

/// Checks the received bytes for the board `name`.
///
/// # Errors
/// See [`Rejected`].
pub fn check(received: &[u8], name: &str) -> Result<Checked, Rejected> {
    let Some(trailer) = Trailer::at_end_of(received) else { return Ok(Checked::Unchecked) };
    let length = trailer.length as usize;
    // No program is empty, and the start-up code could not enter it.
    let image = received.get(..length).filter(|image| !image.is_empty());
    let image = image.filter(|_| length + Trailer::SIZE <= received.len());
    let image = image.ok_or(Rejected::Length)?;
    if crc32(image) != trailer.crc {
        return Err(Rejected::Crc);
    }
    if trailer.board() != name {
        return Err(Rejected::Board(trailer));
    }
    Ok(Checked::Complete(length))
}

fn cancel(line: &mut impl Line, error: Error) -> Error {
    (0..3).for_each(|_| line.send(CAN));
    error
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::vec;
    use std::vec::Vec;

    use super::*;

    /// Received bytes; `None` is silence until a timeout.
    #[derive(Default)]
    struct Script {
        input: VecDeque<Option<u8>>,
        sent: Vec<u8>,
    }

    impl Line for Script {
        fn receive(&mut self, _: u32) -> Option<u8> {
            self.input.pop_front().flatten()
        }

        fn send(&mut self, byte: u8) {
            self.sent.push(byte);
        }
    }

    impl Script {
        fn with(parts: impl IntoIterator<Item = Vec<u8>>) -> Self {
            let mut script = Self::default();
            for part in parts {
                script.input.extend(part.into_iter().map(Some));
            }
            script
        }
    }

    fn crc_of(data: &[u8]) -> [u8; 2] {
        data.iter().fold(0, |crc, &byte| crc16(crc, byte)).to_be_bytes()
    }

    fn block(start: u8, number: u8, data: &[u8], crc: bool) -> Vec<u8> {
        let mut block = vec![start, number, !number];
        block.extend_from_slice(data);
        match crc {
            true => block.extend(crc_of(data)),
            false => block.push(data.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte))),
        }
        block
    }

    fn received(script: &mut Script) -> Result<Vec<u8>, Error> {
        let mut buffer = vec![0; 4096];
        let size = receive(script, &mut buffer)?;
        buffer.truncate(size);
        Ok(buffer)
    }

    #[test]
    fn crc_matches_xmodem() {
        assert_eq!(crc_of(b"123456789"), [0x31, 0xC3]);
    }

    #[test]
    fn receives_blocks_of_both_sizes() {
        let data: Vec<u8> = (0..1152_u32).map(|i| (i * 7) as u8).collect();
        let mut script =
            Script::with([block(STX, 1, &data[..1024], true), block(SOH, 2, &data[1024..], true), vec![EOT]]);
        assert_eq!(received(&mut script).unwrap(), data);
        assert_eq!(script.sent, [WITH_CRC, ACK, ACK, ACK]);
    }

    #[test]
    fn accepts_checksum_of_senders_without_crc() {
        let mut script = Script::with([block(SOH, 1, &[9; 128], false), vec![EOT]]);
        (0..CRC_REQUESTS).for_each(|_| script.input.push_front(None));
        assert_eq!(received(&mut script).unwrap(), [9; 128]);
        assert_eq!(script.sent, [WITH_CRC, WITH_CRC, WITH_CRC, WITH_CRC, NAK, ACK, ACK]);
    }

    #[test]
    fn acknowledges_repeated_block_and_stores_it_once() {
        let one = block(SOH, 1, &[1; 128], true);
        let mut script = Script::with([one.clone(), one, block(SOH, 2, &[2; 128], true), vec![EOT]]);
        assert_eq!(received(&mut script).unwrap(), [[1; 128], [2; 128]].concat());
    }

    #[test]
    fn requests_garbled_and_truncated_blocks_again() {
        let good = block(SOH, 2, &[5; 128], true);
        let (mut data, mut number) = (good.clone(), good.clone());
        data[50] ^= 4;
        number[2] ^= 1;
        // With the number of timeouts: for the rest of a block, and for silence.
        for (bad, silences) in [(data, 1), (number, 1), (good[..40].to_vec(), 2), (b"noise".to_vec(), 1)] {
            let mut script = Script::default();
            script.input.extend(block(SOH, 1, &[4; 128], true).into_iter().chain(bad).map(Some));
            script.input.extend(vec![None; silences]);
            script.input.extend(good.iter().copied().chain([EOT]).map(Some));
            assert_eq!(received(&mut script).unwrap(), [[4; 128], [5; 128]].concat());
            assert_eq!(script.sent, [WITH_CRC, ACK, NAK, ACK, ACK]);
        }
    }

    #[test]
    fn cancels_but_ignores_single_noise_byte() {
        assert_eq!(received(&mut Script::with([vec![CAN, CAN]])), Err(Error::Cancelled));
        let mut script = Script::default();
        script.input.extend([Some(CAN), None, None]);
        script.input.extend(block(SOH, 1, &[3; 128], true).into_iter().chain([EOT]).map(Some));
        assert_eq!(received(&mut script).unwrap(), [3; 128]);
    }

    #[test]
    fn gives_up_on_a_line_that_is_never_silent() {
        struct Noise(u64);
        impl Line for Noise {
            fn receive(&mut self, _: u32) -> Option<u8> {
                self.0 += 1;
                Some(b'x')
            }

            fn send(&mut self, _: u8) {}
        }
        let mut noise = Noise(0);
        assert_eq!(receive(&mut noise, &mut [0; 1024]), Err(Error::TooManyErrors));
        assert!(noise.0 < u64::from((MAX_ERRORS + 2) * (MAX_DROPPED + 1)));
    }

    #[test]
    fn reports_failure_after_last_retry() {
        assert_eq!(received(&mut Script::default()), Err(Error::NoSender));
        let mut dead = Script::with([vec![b'x']]);
        assert_eq!(received(&mut dead), Err(Error::TooManyErrors));
        assert!(dead.sent.ends_with(&[CAN; 3]));
        let mut missing = Script::with([block(SOH, 1, &[1; 128], true), block(SOH, 3, &[3; 128], true)]);
        assert_eq!(received(&mut missing), Err(Error::OutOfStep));
        // Without a declared size, only the block without room shows that the image is too large.
        let mut large = Script::with((1..=5).map(|number| block(STX, number, &[0; 1024], true)));
        assert_eq!(received(&mut large), Err(Error::TooLarge));
        assert!(large.sent.ends_with(&[CAN; 3]));
    }

    /// The beginning of an image that declares `size` bytes.
    fn declaring(size: u32) -> [u8; 128] {
        let mut data = [0; 128];
        data[4..12].copy_from_slice(&protocol::MAGIC);
        data[12..16].copy_from_slice(&size.to_le_bytes());
        data
    }

    #[test]
    fn rejects_an_image_that_declares_too_many_bytes_at_its_first_block() {
        let mut script = Script::with([block(SOH, 1, &declaring(4097), true)]);
        assert_eq!(received(&mut script), Err(Error::TooLarge));
        assert_eq!(script.sent, [WITH_CRC, CAN, CAN, CAN]);
        let mut script = Script::with([block(SOH, 1, &declaring(4096), true), vec![EOT]]);
        assert_eq!(received(&mut script).unwrap(), declaring(4096));
    }

    #[test]
    fn the_crc_32_is_that_of_ethernet() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    /// An image with its trailer at the end of a block, as `cargo xtask load` sends it.
    fn sent(image: &[u8], board: &str) -> Vec<u8> {
        let mut sent = image.to_vec();
        sent.resize((image.len() + Trailer::SIZE).next_multiple_of(128) - Trailer::SIZE, 0);
        sent.extend(Trailer::new(image, board).to_bytes());
        sent
    }

    #[test]
    fn accepts_a_complete_image_for_this_board() {
        let image: Vec<u8> = (0..200).collect();
        assert_eq!(check(&sent(&image, "Raspberry Pi 2B"), "Raspberry Pi 2B"), Ok(Checked::Complete(200)));
        assert_eq!(check(&[0x1A; 256], "Raspberry Pi 2B"), Ok(Checked::Unchecked));
        assert_eq!(check(&[], "Raspberry Pi 2B"), Ok(Checked::Unchecked));
    }

    #[test]
    fn rejects_changed_or_missing_bytes_and_another_board() {
        let image: Vec<u8> = (0..200).collect();
        let good = sent(&image, "board");
        for i in [0, 100, 199] {
            let mut changed = good.clone();
            changed[i] ^= 0x10;
            assert_eq!(check(&changed, "board"), Err(Rejected::Crc), "{i}");
        }
        // A block is missing, or the length is wrong.
        assert_eq!(check(&good[128..], "board"), Err(Rejected::Length));
        let mut long = good.clone();
        let length = long.len() - Trailer::SIZE + 8;
        long[length..length + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(check(&long, "board"), Err(Rejected::Length));
        assert_eq!(check(&sent(&[], "board"), "board"), Err(Rejected::Length));
        let Err(rejected @ Rejected::Board(_)) = check(&good, "another") else { panic!("another board") };
        assert_eq!(
            std::string::ToString::to_string(&rejected),
            "the image is for board; build it for this board"
        );
    }

    /// A receiver without a sender requests an image again before the sender gives up.
    #[test]
    fn recovers_from_a_sender_that_disappears_within_the_time_of_the_next_one() {
        struct Waits(u32, Script);
        impl Line for Waits {
            fn receive(&mut self, timeout: u32) -> Option<u8> {
                let byte = self.1.receive(timeout);
                self.0 += if byte.is_none() { timeout } else { 0 };
                byte
            }

            fn send(&mut self, byte: u8) {
                self.1.send(byte);
            }
        }
        let mut line = Waits(0, Script::with([block(SOH, 1, &[1; 128], true), vec![SOH, 2]]));
        let error = receive(&mut line, &mut [0; 4096]);
        assert_eq!(error, Err(Error::TooManyErrors));
        assert!(line.0 <= protocol::RECOVERY, "{} ms", line.0);
        assert!(line.0 < protocol::START_LIMIT);
    }
}

//! `cargo xtask bare load`: the sender of XMODEM-1K over a serial line.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::board::Board;
use crate::{Result, process};

#[path = "../../../bare/punctual-boot/src/protocol.rs"]
#[expect(dead_code, unreachable_pub, reason = "a module of the boot loader, which uses the other half")]
mod protocol;

pub(super) use protocol::crc32;
use protocol::{
    ACK, ANSWER_LIMIT, ATTEMPTS, CAN, DECLARATION, EOT, MAGIC, NAK, SILENCE, START_LIMIT, STX, Trailer,
    WITH_CRC, crc16, declared_size,
};

/// The data bytes of a block.
const BLOCK: usize = 1024;
/// The time within which the receiver must report its board.
const GREETING: Duration = Duration::from_secs(120);

const fn limit(millis: u32) -> Duration {
    Duration::from_millis(millis as u64)
}

/// A serial line.
pub(super) trait Line {
    /// Returns the next byte if one arrives in time.
    fn receive(&mut self, limit: Duration) -> Result<Option<u8>>;

    fn send(&mut self, bytes: &[u8]) -> Result;
}

/// A serial line of this machine, or a substitute for one. A thread reads it, so that waiting can
/// end.
pub(super) struct Serial<W = File> {
    writer: W,
    bytes: Receiver<u8>,
}

impl Serial {
    /// Opens the serial line at 115200 baud.
    ///
    /// # Errors
    /// Returns an error with the path if the file does not exist or is not a serial line.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let printed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = open(path).map_err(|error| printed(&error))?;
        Ok(Self::of(file.try_clone().map_err(|error| printed(&error))?, file))
    }

    /// Returns the board that the boot loader at the other end reports. It reports its board
    /// whenever it has received nothing for some time.
    pub(super) fn board(&mut self) -> Result<Board> {
        eprintln!("waiting for the boot loader to report its board");
        named(self)
    }
}

/// Returns the board that a boot loader reports.
fn named(line: &mut impl Line) -> Result<Board> {
    let (begin, mut printed) = (Instant::now(), String::new());
    loop {
        let Some(byte) = line.receive(GREETING.saturating_sub(begin.elapsed()))? else {
            return Err(
                "no boot loader reports its board: switch it on, or name the board with --board".into()
            );
        };
        printed.push(char::from(byte));
        let boards = Board::all().iter();
        // Up to the colon, because one name may be the start of another.
        if let Some(board) =
            boards.copied().find(|board| printed.ends_with(&format!("punctual-boot on {}:", board.full_name)))
        {
            return Ok(board);
        }
    }
}

/// Opens a serial line at 115200 baud.
pub(super) fn open(path: &Path) -> Result<File> {
    process::succeed(
        Command::new("stty").arg("-F").arg(path).args(["115200", "raw", "-echo", "clocal", "min", "1"]),
    )?;
    Ok(OpenOptions::new().read(true).write(true).open(path)?)
}

impl<W: Write> Serial<W> {
    /// Creates a bidirectional line.
    pub(super) fn of(mut reader: impl Read + Send + 'static, writer: W) -> Self {
        let (sender, bytes) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 256];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if buffer[..read].iter().any(|&byte| sender.send(byte).is_err()) {
                    return;
                }
            }
        });
        Self { writer, bytes }
    }
}

impl<W: Write> Line for Serial<W> {
    fn receive(&mut self, limit: Duration) -> Result<Option<u8>> {
        match self.bytes.recv_timeout(limit) {
            Ok(byte) => Ok(Some(byte)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err("the serial line is gone".into()),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result {
        self.writer.write_all(bytes)?;
        Ok(self.writer.flush()?)
    }
}

/// Sends the image of a board, with progress on standard error.
pub(super) fn load(line: &mut Serial, board: Board, image: &[u8]) -> Result {
    eprintln!("waiting for the boot loader to request an image");
    let progress = |sent: usize| eprint!("\r{} of {} bytes", sent.min(image.len()), image.len());
    let sent = send(line, &with_trailer(board, image), progress);
    eprintln!();
    sent
}

/// Returns an image with its trailer at the end of a block.
fn with_trailer(board: Board, image: &[u8]) -> Vec<u8> {
    let mut sent = image.to_vec();
    sent.resize((image.len() + Trailer::SIZE).next_multiple_of(BLOCK) - Trailer::SIZE, 0);
    sent.extend(Trailer::new(image, &board.full_name).to_bytes());
    sent
}

/// Requires the image to declare its size, by which a loader without room rejects its first block.
/// The declared size includes the padding of the last page.
pub(super) fn check_declaration(image: &[u8]) -> Result {
    const PAGE: usize = 4096;
    match declared_size(image) {
        Some(size) if (image.len()..image.len() + PAGE).contains(&(size as usize)) => Ok(()),
        declared => Err(format!("the image has {} bytes, but declares {declared:?}", image.len()).into()),
    }
}

/// Returns the image with another declared size.
pub(super) fn declaring(image: &[u8], size: u32) -> Vec<u8> {
    const PLACE: usize = DECLARATION + MAGIC.len();
    let mut declaring = image.to_vec();
    declaring[PLACE..PLACE + size_of::<u32>()].copy_from_slice(&size.to_le_bytes());
    declaring
}

/// Sends bytes to a receiver that requests them. Cancels the transfer if it fails.
pub(super) fn send(line: &mut impl Line, bytes: &[u8], progress: impl Fn(usize)) -> Result {
    wait_for_request(line)?;
    let sent = send_blocks(line, bytes, progress);
    if sent.is_err() {
        // Otherwise the receiver would wait for the rest.
        line.send(&[CAN; 3])?;
    }
    sent
}

/// Waits for a request, which differs from that character in a text by the silence that follows it.
fn wait_for_request(line: &mut impl Line) -> Result {
    let begin = Instant::now();
    let mut next = None;
    loop {
        let byte = match next.take() {
            Some(byte) => byte,
            None => line
                .receive(limit(START_LIMIT).saturating_sub(begin.elapsed()))?
                .ok_or("no boot loader requests an image: switch the board on, and check the wiring")?,
        };
        if byte == WITH_CRC {
            next = line.receive(limit(SILENCE))?;
            if next.is_none() {
                return Ok(());
            }
        }
    }
}

fn send_blocks(line: &mut impl Line, bytes: &[u8], progress: impl Fn(usize)) -> Result {
    for (i, data) in bytes.chunks(BLOCK).enumerate() {
        let number = (i + 1) as u8;
        let mut block = vec![STX, number, !number];
        block.extend_from_slice(data);
        block.resize(3 + BLOCK, 0x1A);
        let crc = block[3..].iter().fold(0, |crc, &byte| crc16(crc, byte));
        block.extend_from_slice(&crc.to_be_bytes());
        deliver(line, &block)?;
        progress((i * BLOCK) + data.len());
    }
    deliver(line, &[EOT])
}

/// Sends until the receiver acknowledges.
fn deliver(line: &mut impl Line, bytes: &[u8]) -> Result {
    for _ in 0..ATTEMPTS {
        line.send(bytes)?;
        loop {
            match line.receive(limit(ANSWER_LIMIT))? {
                Some(ACK) => return Ok(()),
                Some(CAN) if line.receive(limit(ANSWER_LIMIT))? == Some(CAN) => {
                    return Err("the board cancelled the transfer: its console gives the reason".into());
                }
                // The receiver repeats its request if it has received no first block.
                Some(NAK | WITH_CRC) | None => break,
                Some(_) => {}
            }
        }
    }
    Err(format!("no answer to a block after {ATTEMPTS} attempts").into())
}

impl Serial {
    /// Prints the received output until the line closes.
    pub(super) fn show(self) -> Result {
        let mut out = io::stdout().lock();
        for byte in self.bytes {
            out.write_all(&[byte])?;
            out.flush()?;
        }
        Ok(())
    }

    /// Waits for a given text; returns it with everything before it.
    pub(super) fn wait_for(&mut self, expected: &str, limit: Duration) -> Result<String> {
        let begin = Instant::now();
        let mut printed = String::new();
        while !printed.contains(expected) {
            match self.receive(limit.saturating_sub(begin.elapsed()))? {
                Some(byte) => printed.push(char::from(byte)),
                None => return Err(format!("the output does not contain {expected:?}: {printed:?}").into()),
            }
        }
        Ok(printed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// `None` is silence.
    struct Script {
        answers: VecDeque<Option<u8>>,
        sent: Vec<Vec<u8>>,
    }

    impl Line for Script {
        fn receive(&mut self, _: Duration) -> Result<Option<u8>> {
            Ok(self.answers.pop_front().flatten())
        }

        fn send(&mut self, bytes: &[u8]) -> Result {
            self.sent.push(bytes.to_vec());
            Ok(())
        }
    }

    fn sent(answers: &[Option<u8>]) -> (Result, Vec<Vec<u8>>) {
        let mut script = Script { answers: answers.iter().copied().collect(), sent: vec![] };
        (send(&mut script, &[7; 1030], |_| ()), script.sent)
    }

    #[test]
    fn resends_rejected_blocks() {
        let (result, sent) = sent(&[Some(WITH_CRC), None, Some(ACK), Some(NAK), Some(ACK), Some(ACK)]);
        result.unwrap();
        assert_eq!(sent.len(), 4);
        assert_eq!(sent[0][..4], [STX, 1, 0xFE, 7]);
        assert_eq!(sent[1], sent[2]);
        assert_eq!(sent[1][3 + 5..3 + 7], [7, 0x1A]);
        assert_eq!(sent[3], [EOT]);
    }

    /// A receiver that has missed the first block repeats its request more often than the sender's
    /// limit expires.
    #[test]
    fn resends_the_first_block_if_the_request_is_repeated() {
        let (result, sent) = sent(&[Some(WITH_CRC), None, Some(WITH_CRC), Some(ACK), Some(ACK), Some(ACK)]);
        result.unwrap();
        assert_eq!(sent[0], sent[1]);
        assert_eq!(sent.len(), 4);
    }

    #[test]
    fn takes_no_letter_of_a_text_for_a_request() {
        let text = b"on QEMU virt, Cortex-A72: CC".iter().map(|&byte| Some(byte));
        let answers: Vec<_> = text.chain([None, Some(CAN), Some(CAN)]).collect();
        let (result, sent) = sent(&answers);
        assert!(result.unwrap_err().to_string().contains("cancelled"));
        assert_eq!(sent.len(), 2, "one block, and the cancellation");
    }

    #[test]
    fn appends_a_trailer_at_the_end_of_a_block() {
        let board = "virt-a7".parse().unwrap();
        for length in [1, BLOCK - Trailer::SIZE, BLOCK - Trailer::SIZE + 1, 3 * BLOCK] {
            let image = vec![7; length];
            let sent = with_trailer(board, &image);
            assert!(sent.len().is_multiple_of(BLOCK) && sent.starts_with(&image), "{length}");
            let trailer = Trailer::at_end_of(&sent).unwrap();
            assert_eq!((trailer.length as usize, trailer.board()), (length, "QEMU virt, Cortex-A7"));
            assert_eq!(trailer.crc, protocol::crc32(&image));
        }
    }

    #[test]
    fn reads_board_from_boot_loader() {
        let heard = |printed: &str| {
            let text = format!("C{printed} send an image by XMODEM\r\nC").into_bytes();
            let answers = text.into_iter().map(Some).collect();
            named(&mut Script { answers, sent: vec![] })
        };
        assert_eq!(heard("CCpunctual-boot on Raspberry Pi 3B:").unwrap(), "raspi3b".parse().unwrap());
        assert_eq!(heard("punctual-boot on QEMU virt, Cortex-A72:").unwrap(), "virt-a72".parse().unwrap());
        assert!(heard("Raspberry Pi 3B:").unwrap_err().to_string().contains("--board"));
    }

    #[test]
    fn fails_on_silence_and_cancellation() {
        assert!(sent(&[]).0.unwrap_err().to_string().contains("no boot loader requests"));
        assert!(
            sent(&[Some(WITH_CRC), None, Some(CAN), Some(CAN)])
                .0
                .unwrap_err()
                .to_string()
                .contains("cancelled")
        );
        let (result, sent) = sent(&[Some(WITH_CRC)]);
        assert!(result.unwrap_err().to_string().contains("5 attempts"));
        // The receiver need not wait for a sender that has given up.
        assert_eq!(sent.last().unwrap(), &[CAN; 3]);
    }
}

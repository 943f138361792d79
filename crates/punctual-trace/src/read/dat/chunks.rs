//! The data of a CPU that is compressed in chunks of pages.

use std::io::{self, Read};

use super::packed::{Algorithm, BLOCK_LIMIT};
use crate::read::{Order, Range};

/// The pages of a CPU, decompressed one chunk after the other.
pub(in crate::read) struct Chunks {
    range: Range,
    algorithm: Algorithm,
    order: Order,
    /// How many chunks are left, once that has been read.
    left: Option<u32>,
    content: Vec<u8>,
    at: usize,
}

impl Chunks {
    pub(in crate::read) fn new(range: Range, algorithm: Algorithm, order: Order) -> Self {
        Self { range, algorithm, order, left: None, content: Vec::new(), at: 0 }
    }

    fn number(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.range.read_exact(&mut bytes)?;
        Ok(self.order.u32(&bytes, 0).unwrap_or_default())
    }

    /// Decompresses the next chunk, if there is one.
    fn next(&mut self) -> io::Result<()> {
        let left = match self.left {
            Some(left) => left,
            None if self.range.left() == 0 => 0,
            None => self.number()?,
        };
        self.left = Some(left.saturating_sub(1));
        self.at = 0;
        self.content.clear();
        if left == 0 {
            return Ok(());
        }
        let start = self.range.position();
        let (packed, length) = (u64::from(self.number()?), self.number()?);
        // Compressing may make a block a little longer, never much.
        if packed > u64::from(BLOCK_LIMIT) {
            let problem = format!("the chunk at byte {start} of the file says to have {packed} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let mut bytes = Vec::new();
        self.range.by_ref().take(packed).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != packed {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.content = self.algorithm.unpack(&bytes, length).map_err(|problem| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("in the chunk at byte {start} of the file, {problem}"),
            )
        })?;
        Ok(())
    }
}

impl Read for Chunks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.content.len() && self.left != Some(0) {
            let result = self.next();
            if result.is_err() {
                self.left = Some(0);
            }
            result?;
        }
        let count = into.len().min(self.content.len() - self.at);
        into[..count].copy_from_slice(&self.content[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

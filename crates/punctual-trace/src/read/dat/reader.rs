//! Reads numbers and strings of a trace.dat in sequence, and tracks their offsets for errors.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use crate::read::error::ReadError;
use crate::read::{Bytes, Order, Range};

/// Reads a part of the file or of a decompressed section.
pub(super) struct Reader {
    pub(super) order: Order,
    file: Arc<str>,
    from: From,
    /// Its offset in the file.
    base: u64,
    at: u64,
}

enum From {
    File(BufReader<Range>),
    /// A compressed section, whose content has no offset in the file.
    Memory(io::Cursor<Vec<u8>>),
}

impl Reader {
    /// Creates a reader of the file from `start` to `end`, exclusive.
    pub(super) fn new(file: Arc<str>, bytes: Arc<dyn Bytes>, start: u64, end: u64) -> Self {
        let from = From::File(BufReader::new(Range::new(bytes, start, end)));
        Self { order: Order::Little, file, from, base: start, at: 0 }
    }

    /// Creates a reader of data that was compressed at `base`.
    pub(super) fn unpacked(file: Arc<str>, content: Vec<u8>, base: u64, order: Order) -> Self {
        Self { order, file, from: From::Memory(io::Cursor::new(content)), base, at: 0 }
    }

    /// Returns the offset in the file of the next byte, or of its section.
    pub(super) fn offset(&self) -> u64 {
        match self.from {
            From::File(_) => self.base + self.at,
            From::Memory(_) => self.base,
        }
    }

    pub(super) fn corrupt(&self, problem: impl Into<String>) -> ReadError {
        ReadError::Corrupt { file: self.file.clone(), offset: self.offset(), problem: problem.into() }
    }

    fn failed(&self, error: io::Error, what: &str) -> ReadError {
        let (file, offset) = (self.file.clone(), self.offset());
        match (error.kind(), &self.from) {
            (io::ErrorKind::UnexpectedEof, From::File(_)) => {
                ReadError::Truncated { file, offset, what: what.to_owned() }
            }
            (io::ErrorKind::UnexpectedEof, From::Memory(_)) => {
                self.corrupt(format!("the section that is compressed here ends in {what}"))
            }
            _ => ReadError::Io { file, offset, error },
        }
    }

    fn fill(&mut self, into: &mut [u8], what: &str) -> Result<(), ReadError> {
        let result = match &mut self.from {
            From::File(file) => file.read_exact(into),
            From::Memory(memory) => memory.read_exact(into),
        };
        result.map_err(|error| self.failed(error, what))?;
        self.at += into.len() as u64;
        Ok(())
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, "a number").map(|()| bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, ReadError> {
        let bytes = self.array::<2>()?;
        Ok(self.order.u16(&bytes, 0).unwrap_or_default())
    }

    pub(super) fn u32(&mut self) -> Result<u32, ReadError> {
        let bytes = self.array::<4>()?;
        Ok(self.order.u32(&bytes, 0).unwrap_or_default())
    }

    pub(super) fn u64(&mut self) -> Result<u64, ReadError> {
        let bytes = self.array::<8>()?;
        Ok(self.order.u64(&bytes, 0).unwrap_or_default())
    }

    /// Reads a NUL-terminated string of at most `limit` bytes.
    pub(super) fn string(&mut self, what: &str, limit: usize) -> Result<String, ReadError> {
        let mut bytes = Vec::new();
        loop {
            let mut byte = [0];
            self.fill(&mut byte, what)?;
            if byte == [0] {
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            if bytes.len() == limit {
                return Err(self.corrupt(format!("{what} has more than {limit} bytes")));
            }
            bytes.push(byte[0]);
        }
    }

    /// Reads that many bytes, in pieces so that a false length costs no memory.
    pub(super) fn bytes(&mut self, length: u64, what: &str) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        let read = match &mut self.from {
            From::File(file) => file.take(length).read_to_end(&mut bytes),
            From::Memory(memory) => memory.take(length).read_to_end(&mut bytes),
        };
        let read = read.map_err(|error| self.failed(error, what))? as u64;
        self.at += read;
        match read == length {
            true => Ok(bytes),
            false => Err(self.failed(io::ErrorKind::UnexpectedEof.into(), what)),
        }
    }

    /// Calls `each` with each line in that many bytes.
    pub(super) fn lines(&mut self, length: u64, mut each: impl FnMut(&[u8])) -> Result<(), ReadError> {
        /// Longer than any kernel symbol.
        const MAX_LINE: usize = 4096;
        let mut line = Vec::new();
        let mut piece = [0; 4096];
        let mut left = length;
        while left > 0 {
            let count = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.fill(&mut piece[..count], "a list of names")?;
            left -= count as u64;
            for &byte in &piece[..count] {
                match byte {
                    b'\n' => {
                        each(&line);
                        line.clear();
                    }
                    _ if line.len() < MAX_LINE => line.push(byte),
                    _ => {}
                }
            }
        }
        each(&line);
        Ok(())
    }
}

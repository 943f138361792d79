//! Numbers in the byte order of the traced machine, sources to read them from, and storage for
//! pages that are converted from another file format.
//!
//! ```
//! use punctual_trace::read::Order;
//!
//! assert_eq!(Order::Little.u32(&[1, 0, 0, 0], 0), Some(1));
//! assert_eq!(Order::Big.u32(&[1, 0, 0, 0], 0), Some(1 << 24));
//! assert_eq!(Order::Big.u32(&[1, 0, 0, 0], 1), None);
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The byte order of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Order {
    /// The byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// Reads a `u16` at `at`; `None` beyond the end.
    #[inline]
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        })
    }

    /// Reads a `u32` at `at`; `None` beyond the end.
    #[inline]
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        })
    }

    /// Reads a `u64` at `at`; `None` beyond the end.
    #[inline]
    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        })
    }
}

/// Random access to bytes of a file or of memory, also from several readers at once.
pub trait Bytes: Send + Sync {
    /// Returns the length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Reads some bytes from `offset` on and returns the number of bytes read: 0 only at the end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl Bytes for File {
    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }
}

impl Bytes for Vec<u8> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Reads a range of [`Bytes`] from start to end.
pub struct Range {
    bytes: Arc<dyn Bytes>,
    at: u64,
    end: u64,
}

impl Range {
    /// Creates a range from `start` up to but not including `end`, or up to the end of the source
    /// if that comes first.
    pub fn new(bytes: Arc<dyn Bytes>, start: u64, end: u64) -> Self {
        Self { bytes, at: start, end: end.max(start) }
    }

    /// Returns the offset of the next read.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Returns the maximum number of remaining bytes.
    pub fn left(&self) -> u64 {
        self.end - self.at
    }

    /// Skips `count` bytes.
    pub fn skip(&mut self, count: u64) {
        self.at = self.at.saturating_add(count).min(self.end);
    }
}

impl io::Read for Range {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left()).map_or(into.len(), |left| left.min(into.len()));
        let count = self.bytes.read_at(self.at, &mut into[..wanted])?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Pages of larger files go to a temporary file.
pub(crate) const MAX_IN_MEMORY: u64 = 16 << 20;

/// The location of pages.
pub(crate) enum Store {
    Memory(Vec<u8>),
    File(io::BufWriter<File>),
}

impl Store {
    /// Creates an empty store.
    pub(crate) fn new(in_memory: bool) -> io::Result<Self> {
        if in_memory {
            return Ok(Self::Memory(Vec::new()));
        }
        let file = punctual_files::unnamed(&std::env::temp_dir())?;
        Ok(Self::File(io::BufWriter::with_capacity(64 << 10, file)))
    }

    /// Returns the written data.
    pub(crate) fn bytes(self) -> Arc<dyn Bytes> {
        match self {
            Self::Memory(bytes) => Arc::new(bytes),
            Self::File(file) => Arc::new(file.into_parts().0),
        }
    }
}

impl Write for Store {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Memory(memory) => memory.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::File(file) => file.flush(),
        }
    }
}

//! Numbers in the order of the machine that was traced, and places to read them from.
//!
//! ```
//! use punctual_trace::read::Order;
//!
//! assert_eq!(Order::Little.u32(&[1, 0, 0, 0], 0), Some(1));
//! assert_eq!(Order::Big.u32(&[1, 0, 0, 0], 0), Some(1 << 24));
//! assert_eq!(Order::Big.u32(&[1, 0, 0, 0], 1), None);
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The lowest first.
    Little,
    /// The highest first.
    Big,
}

impl Order {
    /// The order of the machine this runs on.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// The two bytes at `at`, if they are there.
    #[inline]
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        })
    }

    /// The four bytes at `at`, if they are there.
    #[inline]
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        })
    }

    /// The eight bytes at `at`, if they are there.
    #[inline]
    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        })
    }
}

/// Bytes that are read in pieces and from several places at once: a file, or memory.
pub trait Bytes: Send + Sync {
    /// How many there are.
    fn length(&self) -> io::Result<u64>;

    /// Reads some of those from `offset` on and says how many; none only at the end.
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

/// A range of [`Bytes`], read from its start to its end.
pub struct Range {
    bytes: Arc<dyn Bytes>,
    at: u64,
    end: u64,
}

impl Range {
    /// Those from `start` to `end`, exclusively, or to where there are no more.
    pub fn new(bytes: Arc<dyn Bytes>, start: u64, end: u64) -> Self {
        Self { bytes, at: start, end: end.max(start) }
    }

    /// Where the next read begins.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// How many are left at most.
    pub fn left(&self) -> u64 {
        self.end - self.at
    }

    /// Leaves out the next `count`.
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

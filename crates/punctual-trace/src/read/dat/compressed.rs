//! Compressed sections, and compressed data of a CPU.

use std::io::{self, Read};

use crate::read::{Order, Range};

/// The largest decompressed block that is accepted. `trace-cmd` writes blocks of tens of KiB, and
/// sections with kernel symbols take a few MiB.
pub(super) const BLOCK_LIMIT: u32 = 64 << 20;

/// A compression algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Zstd,
    Zlib,
}

impl Algorithm {
    /// Returns the algorithm of that name in files.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        match name {
            "zstd" => Some(Self::Zstd),
            "zlib" => Some(Self::Zlib),
            _ => None,
        }
    }

    /// Decompresses a block that should yield `length` bytes.
    pub(super) fn unpack(self, packed: &[u8], length: u32) -> Result<Vec<u8>, String> {
        if length > BLOCK_LIMIT {
            return Err(format!(
                "a block would have {length} bytes decompressed, but at most {BLOCK_LIMIT} are allowed"
            ));
        }
        let content = match self {
            Self::Zstd => unzstd(packed, length),
            Self::Zlib => {
                let result = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, length as usize);
                result.map_err(|error| error.to_string())
            }
        };
        let content = content.map_err(|error| format!("a block cannot be decompressed: {error}"))?;
        match content.len() == length as usize {
            true => Ok(content),
            false => Err(format!("a block has {} bytes decompressed instead of {length}", content.len())),
        }
    }
}

fn unzstd(packed: &[u8], length: u32) -> Result<Vec<u8>, String> {
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(packed).map_err(|error| error.to_string())?;
    let mut content = Vec::new();
    // One byte more than expected, to notice an excess.
    let mut limited = decoder.by_ref().take(u64::from(length) + 1);
    limited.read_to_end(&mut content).map_err(|error| error.to_string())?;
    Ok(content)
}

/// The pages of a CPU, decompressed chunk by chunk.
pub(in crate::read) struct Chunks {
    range: Range,
    algorithm: Algorithm,
    order: Order,
    /// The number of remaining chunks, once known.
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
        // Compression may make a block slightly longer, never much.
        if packed > u64::from(BLOCK_LIMIT) {
            let problem = format!("the chunk at byte {start} of the file claims {packed} bytes");
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

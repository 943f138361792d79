//! Compressed sections, and compressed data of a CPU.

use std::io::{self, Read};

use crate::read::expansion::Unpacked;
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

    /// Decompresses a block that should yield `length` bytes, if the file may still have that many.
    pub(super) fn unpack(
        self,
        packed: &[u8],
        length: u32,
        unpacked: &Unpacked,
        limit: u64,
    ) -> Result<Vec<u8>, String> {
        if length > BLOCK_LIMIT {
            return Err(format!(
                "a block would have {length} bytes decompressed, but at most {BLOCK_LIMIT} are allowed"
            ));
        }
        unpacked.add(length.into(), limit)?;
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

/// The encoding of compressed data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packing {
    pub(super) algorithm: Algorithm,
    pub(super) order: Order,
    /// The maximum number of decompressed bytes of the file.
    pub(super) limit: u64,
}

/// The pages of a CPU, decompressed chunk by chunk.
pub(in crate::read) struct Chunks {
    range: Range,
    packing: Packing,
    unpacked: Unpacked,
    /// The number of remaining chunks, once known.
    left: Option<u32>,
    content: Vec<u8>,
    at: usize,
}

impl Chunks {
    pub(in crate::read) fn new(range: Range, packing: Packing, unpacked: Unpacked) -> Self {
        Self { range, packing, unpacked, left: None, content: Vec::new(), at: 0 }
    }

    fn number(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.range.read_exact(&mut bytes)?;
        Ok(self.packing.order.u32(&bytes, 0).unwrap_or_default())
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
        let Packing { algorithm, limit, .. } = self.packing;
        self.content = algorithm.unpack(&bytes, length, &self.unpacked, limit).map_err(|problem| {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// The length of each chunk.
    const CHUNK: u32 = 128 << 10;

    /// Returns chunks of zeros, which take 20 bytes each.
    fn chunks(count: u32) -> Vec<u8> {
        // A frame with its length, and one block: the last one, a run of one byte.
        let frame = [
            &[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..],
            &CHUNK.to_le_bytes(),
            &(CHUNK << 3 | 1 << 1 | 1).to_le_bytes()[..3],
            &[0],
        ];
        let frame = frame.concat();
        let chunk = [&(frame.len() as u32).to_le_bytes()[..], &CHUNK.to_le_bytes(), &frame].concat();
        [&count.to_le_bytes()[..], &chunk.repeat(count as usize)].concat()
    }

    #[test]
    fn limits_decompressed_size_of_all_cpus_together() {
        let bytes = chunks(3);
        let range = || Range::new(Arc::new(bytes.clone()), 0, bytes.len() as u64);
        let packing =
            Packing { algorithm: Algorithm::Zstd, order: Order::Little, limit: 5 * u64::from(CHUNK) };
        let unpacked = Unpacked::default();
        let mut content = Vec::new();
        Chunks::new(range(), packing, unpacked.clone()).read_to_end(&mut content).unwrap();
        assert_eq!(content, vec![0; 3 * CHUNK as usize]);
        content.clear();
        let error = Chunks::new(range(), packing, unpacked).read_to_end(&mut content).unwrap_err();
        assert!(error.to_string().contains("more than 655360 bytes decompressed"), "{error}");
        assert_eq!(content.len(), 2 * CHUNK as usize);
    }
}

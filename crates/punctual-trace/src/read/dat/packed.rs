//! The ways in which sections and pages are compressed.

use std::io::Read;

/// No block is believed to have more than that when it is decompressed; `trace-cmd` makes them of tens of KiB, and
/// sections of the symbols of a kernel have some MiB.
pub(super) const BLOCK_LIMIT: u32 = 64 << 20;

/// How something is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Zstd,
    Zlib,
}

impl Algorithm {
    /// By the name that files have.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        match name {
            "zstd" => Some(Self::Zstd),
            "zlib" => Some(Self::Zlib),
            _ => None,
        }
    }

    /// Decompresses a block that should have `length` bytes then.
    pub(super) fn unpack(self, packed: &[u8], length: u32) -> Result<Vec<u8>, String> {
        if length > BLOCK_LIMIT {
            return Err(format!(
                "a block would have {length} bytes decompressed, and {BLOCK_LIMIT} are allowed"
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
    // One more than there should be, to notice if there is.
    let mut limited = decoder.by_ref().take(u64::from(length) + 1);
    limited.read_to_end(&mut content).map_err(|error| error.to_string())?;
    Ok(content)
}

//! Limit on the decompressed size of a recording.
//!
//! Zstandard and zlib may expand a file 30 000 and 1 000 times. Recordings do not come close:
//! times differ from event to event, which takes a byte or two of the 30 to 100 of an event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum size of the decompressed data, relative to the file.
const MAX_RATIO: u64 = 256;
/// Additional size, for symbols and for blank pages in small files.
const ALLOWANCE: u64 = 64 << 20;

/// Returns the maximum number of decompressed bytes of a file of `length` bytes.
pub(crate) fn max_unpacked(length: u64) -> u64 {
    length.saturating_mul(MAX_RATIO).saturating_add(ALLOWANCE)
}

/// The number of bytes decompressed in a pass over a file, by the readers of all its parts: a
/// hostile file may refer to the same part several times.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unpacked(Arc<AtomicU64>);

impl Unpacked {
    /// Counts bytes of a file with this [limit](max_unpacked). Call it before they are allocated.
    pub(crate) fn add(&self, bytes: u64, limit: u64) -> Result<(), String> {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) <= limit {
            return Ok(());
        }
        Err(format!(
            "the file would have more than {limit} bytes decompressed, {MAX_RATIO} times its size, which no recording \
             has; if it is one, convert it with `trace-cmd convert --compression none`"
        ))
    }
}

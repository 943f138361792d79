//! Storage for pages converted from another file format.

use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Bytes;

/// Pages of larger files go to a temporary file.
pub(crate) const MAX_IN_MEMORY: u64 = 16 << 20;

/// Where pages are.
pub(crate) enum Store {
    Memory(Vec<u8>),
    File(io::BufWriter<File>),
}

impl Store {
    /// An empty store.
    pub(crate) fn new(in_memory: bool) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        if in_memory {
            return Ok(Self::Memory(Vec::new()));
        }
        // Relaxed: each number only has to be unique.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("punctual-pages-{}-{number}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        // Unlinked while open: it disappears with the process, however that ends.
        fs::remove_file(&path)?;
        Ok(Self::File(io::BufWriter::with_capacity(64 << 10, file)))
    }

    /// What has been written.
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

//! Storage for pages converted from another file format.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use super::Bytes;

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

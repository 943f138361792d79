//! Contents of a trace.dat.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;

/// A group of events and the texts of their formats.
pub(crate) type Group = (String, Vec<Vec<u8>>);

/// Contents of a trace.dat.
pub(crate) struct Content {
    /// Size in bytes of a `long` of the traced kernel.
    pub(crate) long: u8,
    pub(crate) header_page: Vec<u8>,
    pub(crate) header_event: Vec<u8>,
    pub(crate) groups: Vec<Group>,
    pub(crate) symbols: Vec<u8>,
    pub(crate) printk: Vec<u8>,
    pub(crate) names: Vec<u8>,
    /// The clocks, with that of the trace in brackets.
    pub(crate) clocks: Vec<u8>,
    pub(crate) system: Vec<u8>,
    /// The option with the factor, shift and offset that convert times to ns.
    pub(crate) scale: Option<[u8; 16]>,
    /// The recorder's declaration of recorded events.
    pub(crate) declared: Option<String>,
    pub(crate) statistics: Vec<String>,
    /// Page size.
    pub(crate) page: usize,
    pub(crate) buffers: Vec<Buffer>,
}

/// A ring buffer.
pub(crate) struct Buffer {
    pub(crate) name: String,
    pub(crate) clock: String,
    /// Each CPU and its pages.
    pub(crate) cpus: Vec<(u32, Pages)>,
}

/// Pages in another trace.
pub(crate) trait Part {
    /// Returns the path for errors.
    fn path(&self) -> PathBuf;

    /// Returns a reader of the decompressed pages.
    fn read(&self) -> Box<dyn Read + Send>;
}

/// Location of the pages of a CPU.
pub(crate) enum Pages {
    /// An open file and its size in bytes; its path is for errors.
    File(File, PathBuf, u64),
    /// Part of another trace, with its decompressed size in bytes.
    Part(Box<dyn Part>, u64),
}

impl Pages {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::File(_, _, length) | Self::Part(_, length) => *length,
        }
    }

    /// Returns the path for errors.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::File(_, path, _) => path.clone(),
            Self::Part(part, _) => part.path(),
        }
    }

    /// Copies the first `length` bytes to the current position of `out`, and returns the number of
    /// bytes copied.
    pub(crate) fn copy(&self, length: u64, out: &mut File) -> io::Result<u64> {
        match self {
            // The kernel copies from file to file.
            Self::File(file, ..) => {
                let mut file = file;
                file.rewind()?;
                io::copy(&mut file.take(length), out)
            }
            Self::Part(part, _) => io::copy(&mut part.read().take(length), out),
        }
    }
}

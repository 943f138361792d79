//! What can be wrong with a device.

use std::io;
use std::path::{Path, PathBuf};

/// Why a device cannot be used, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refuses a file of the device, or has none.
    #[error("{}: {source}; {fix}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the kernel says.
        source: io::Error,
        /// What to do.
        fix: &'static str,
    },
    /// There is no such device.
    #[error("there is no {what}; {fix}")]
    Absent {
        /// What was looked for.
        what: String,
        /// What to do.
        fix: &'static str,
    },
    /// More than one device fits.
    #[error("{what} may be {}; open the one that is meant by its path", candidates.join(" or "))]
    Ambiguous {
        /// What was looked for.
        what: String,
        /// Those that fit.
        candidates: Vec<String>,
    },
    /// A file of the kernel does not hold what it should.
    #[error("{}: `{}` is not {wanted}", path.display(), text.escape_debug())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it holds.
        text: String,
        /// What it should hold.
        wanted: &'static str,
    },
    /// Registers that are not within the region, or not where the processor can read them in one access.
    #[error(
        "{name} takes {size} bytes at {offset:#x} with an alignment of {align}, and the region has {length:#x} bytes from {start:#x}; \
         check the offset and the `repr(C)` of the registers"
    )]
    Misplaced {
        /// The type of the registers.
        name: &'static str,
        /// The size of the registers, in bytes.
        size: usize,
        /// Their alignment, in bytes.
        align: usize,
        /// Their offset in the region, in bytes.
        offset: usize,
        /// The length of the region, in bytes.
        length: usize,
        /// The address of the region within its page.
        start: usize,
    },
    /// A region that the processor's addresses do not reach, or an empty one.
    #[error("{length:#x} bytes at {address:#x} are no region that can be mapped; check address and length")]
    Range {
        /// The address, in bytes.
        address: u64,
        /// The length, in bytes.
        length: u64,
    },
    /// The kernel does not let this thread use the ports.
    #[error(
        "ports {first:#x} to {last:#x}: {source}; the process needs CAP_SYS_RAWIO, and a kernel that is not locked down"
    )]
    Ports {
        /// The first port.
        first: u16,
        /// The last one.
        last: u16,
        /// What the kernel says.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, fix: &'static str) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path, source, fix }
    }
}

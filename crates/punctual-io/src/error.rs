//! Errors of device access.

use std::io;
use std::path::{Path, PathBuf};

/// Reason why a device cannot be used, with the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of the device is missing, or the kernel denies access to it.
    #[error("{}: {source}; {fix}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
        /// The remedy.
        fix: &'static str,
    },
    /// The device does not exist.
    #[error("there is no {what}; {fix}")]
    Absent {
        /// The requested device.
        what: String,
        /// The remedy.
        fix: &'static str,
    },
    /// More than one device matches.
    #[error("{what} may be {}; open the one that is meant by its path", candidates.join(" or "))]
    Ambiguous {
        /// The requested device.
        what: String,
        /// The devices that match.
        candidates: Vec<String>,
    },
    /// A file of the kernel has unexpected content.
    #[error("{}: `{}` is not {wanted}", path.display(), text.escape_debug())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Its content.
        text: String,
        /// The expected content.
        wanted: &'static str,
    },
    /// Every reading of a clock was interrupted.
    #[error(
        "{}: a reading took long enough for an error of {uncertainty_ns} ns, and the limit is {limit_ns} ns; read again \
         later, or on a less busy CPU",
        path.display()
    )]
    Imprecise {
        /// The clock.
        path: PathBuf,
        /// The least uncertainty of several readings, in ns.
        uncertainty_ns: u64,
        /// The largest permitted one, in ns.
        limit_ns: u64,
    },
    /// The registers exceed the region, or are not aligned for single accesses.
    #[error(
        "{name} takes {size} bytes at {offset:#x} with an alignment of {align}, and the region has {length:#x} bytes from {start:#x}; \
         check the offset and the `repr(C)` of the registers"
    )]
    Misplaced {
        /// Type of the registers.
        name: &'static str,
        /// Size of the registers, in bytes.
        size: usize,
        /// Alignment of the registers, in bytes.
        align: usize,
        /// Offset of the registers in the region, in bytes.
        offset: usize,
        /// Length of the region, in bytes.
        length: usize,
        /// Address of the region within its page.
        start: usize,
    },
    /// The region is empty or exceeds the processor's address space.
    #[error("{length:#x} bytes at {address:#x} are no region that can be mapped; check address and length")]
    Range {
        /// Address, in bytes.
        address: u64,
        /// Length, in bytes.
        length: u64,
    },
    /// The kernel denies this thread access to the ports.
    #[error(
        "ports {first:#x} to {last:#x}: {source}; the process needs CAP_SYS_RAWIO, and a kernel that is not locked down"
    )]
    Ports {
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
        /// The kernel's error.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, fix: &'static str) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path, source, fix }
    }
}

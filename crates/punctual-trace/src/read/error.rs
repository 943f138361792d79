//! The reasons why a trace, or a part of it, cannot be read.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::translate::ShortRecord;
use crate::format::fields::FormatError;
use crate::format::page::PageError;

/// An error of reading a trace or a part of it. Every message contains the file, the offset and a
/// remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file or directory cannot be opened.
    #[error("{path}: {error}; give a trace.dat file or a directory that was recorded")]
    Open {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The system failed to read.
    #[error("{file}: reading at byte {offset}: {error}")]
    Io {
        /// The file.
        file: Arc<str>,
        /// The offset of the failed read, in bytes.
        offset: u64,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The file does not begin like a trace.dat file.
    #[error(
        "{file}: byte 0: this is neither a trace.dat nor a perf.data; give a file of `punctual trace record`, \
         `trace-cmd record` or `perf record`, or a directory of LTTng (text of `trace-cmd report` cannot be read)"
    )]
    NotATrace {
        /// The file.
        file: Arc<str>,
    },
    /// The directory contains none of the files by which the reader recognizes a recording.
    #[error(
        "{path}: this directory contains no recording; give the one with `events` that `punctual trace record` \
         wrote, the one with `metadata` of LTTng, the one with `data` of `perf record`, or a trace.dat or perf.data \
         file"
    )]
    NotATraceDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A trace.dat file of an unknown version.
    #[error(
        "{file}: byte 10: this is a trace.dat of version `{version}`, and 6 and 7 can be read; convert it with \
         `trace-cmd convert --file-version 7`"
    )]
    Version {
        /// The file.
        file: Arc<str>,
        /// The version in the file.
        version: String,
    },
    /// The file or directory uses a feature that this reader does not support.
    #[error("{file}: byte {offset}: {what}")]
    Unsupported {
        /// The file.
        file: Arc<str>,
        /// The offset of the feature, in bytes.
        offset: u64,
        /// The feature.
        what: String,
    },
    /// The file ends too early.
    #[error(
        "{file}: the file is cut off: at byte {offset} it lacks {what}; copy it again, or use the rest: all earlier \
         events are in order"
    )]
    Truncated {
        /// The file.
        file: Arc<str>,
        /// The offset of the missing part, in bytes; beyond the end of the file if all of it is
        /// missing.
        offset: u64,
        /// The part that is cut off or missing.
        what: String,
    },
    /// The file contradicts itself.
    #[error("{file}: byte {offset}: {problem}; the file is damaged, copy it again or record again")]
    Corrupt {
        /// The file.
        file: Arc<str>,
        /// The offset of the contradiction, in bytes.
        offset: u64,
        /// The contradiction.
        problem: String,
    },
    /// A format description is malformed.
    #[error("{file}: in the format that begins at byte {offset}: {error}")]
    Format {
        /// The file.
        file: Arc<str>,
        /// The offset of the description, in bytes.
        offset: u64,
        /// The error in it.
        #[source]
        error: FormatError,
    },
    /// A page of the ring buffer is malformed.
    #[error("{place}: {error}; {}", DAMAGED)]
    Page {
        /// Its position.
        place: Place,
        /// The error in it.
        #[source]
        error: PageError,
    },
    /// A record is malformed.
    #[error("{place}: {error}; {}", DAMAGED)]
    Record {
        /// Its position.
        place: Place,
        /// The error in it.
        #[source]
        error: ShortRecord,
    },
    /// A record is older than its predecessor on the same CPU.
    #[error("{place}: a record of {time} ns follows one of {before} ns; {}", DAMAGED)]
    Backwards {
        /// Its position.
        place: Place,
        /// Its time, in ns.
        time: u64,
        /// The time of its predecessor.
        before: u64,
    },
    /// The times cannot be converted to ns, or cannot be merged into one order.
    #[error(
        "{file}: its times are by the clock `{}`: {problem}; record again, all of it with the clock `mono` or another \
         of ns (`trace-cmd record -C tsc2nsec` records how long a cycle takes)",
        .clock.escape_debug()
    )]
    Clock {
        /// The file.
        file: Arc<str>,
        /// The clock.
        clock: String,
        /// The reason why it cannot be used.
        problem: String,
    },
    /// The trace has nothing to analyze.
    #[error(
        "{file}: there are no scheduler events in it; record again with at least sched_switch and sched_waking"
    )]
    Empty {
        /// The file.
        file: Arc<str>,
    },
}

/// A position in the data of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<str>,
    /// The CPU.
    pub cpu: u16,
    /// The offset in bytes: from the start of the file, or of the CPU's data if that is compressed.
    pub offset: u64,
    /// True if the CPU's data is compressed.
    pub compressed: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, cpu, offset, compressed } = self;
        match compressed {
            false => write!(f, "{file}: byte {offset}, in the data of CPU {cpu}"),
            true => write!(f, "{file}: byte {offset} of the decompressed data of CPU {cpu}"),
        }
    }
}

const DAMAGED: &str =
    "the file is damaged: copy it again or record again; the earlier events are in order and usable";

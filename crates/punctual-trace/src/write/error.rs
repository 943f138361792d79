//! Errors of writing a trace.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Reason why a trace was not written.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// An input cannot be read.
    Source {
        /// File or directory.
        path: PathBuf,
        /// Error of the system call.
        error: io::Error,
    },
    /// The disk is full.
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        /// Its source, which still exists and can be read.
        saved: Option<PathBuf>,
    },
    /// The system refused to write.
    Output {
        /// The file that was being written.
        path: PathBuf,
        /// Error of the system call.
        error: io::Error,
    },
    /// The event cannot be written because no format describes it.
    NoFormat(&'static str),
    /// The event is older than the previous one of its CPU.
    Backwards {
        /// The CPU.
        cpu: u16,
        /// Its time, in ns.
        time: u64,
        /// The time of the previous event.
        before: u64,
    },
    /// Some pages of a capture directory have already been moved to a file.
    Moved {
        /// The directory.
        directory: PathBuf,
    },
    /// The file is complete, but its capture directory could not be removed.
    Left {
        /// The directory.
        path: PathBuf,
        /// Error of the system call.
        error: io::Error,
    },
    /// The trace to be converted cannot be read.
    Unreadable(Box<dyn std::error::Error + Send + Sync>),
    /// There is nothing to write.
    Empty {
        /// Path of the expected input.
        path: PathBuf,
    },
}

impl WriteError {
    /// Returns the error of writing to `path`, with the source in `saved`.
    pub(crate) fn output(path: &Path, saved: Option<&Path>, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path, saved: saved.map(Path::to_owned) }
            }
            _ => Self::Output { path, error },
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source { path, error } => {
                write!(f, "{}: {error}; give a directory that was recorded", path.display())
            }
            Self::DiskFull { path, saved: Some(saved) } => write!(
                f,
                "{}: the disk is full; what was recorded is in {} and can be read from there, or written to a file on \
                 another disk",
                path.display(),
                saved.display()
            ),
            Self::DiskFull { path, saved: None } => {
                write!(f, "{}: the disk is full; make room or choose another disk", path.display())
            }
            Self::Output { path, error } => {
                write!(f, "{}: {error}; choose a writable location", path.display())
            }
            Self::NoFormat(kind) => {
                write!(f, "there is no format for an event {kind}; give the encoder one that has its fields")
            }
            Self::Backwards { cpu, time, before } => write!(
                f,
                "an event of {time} ns follows one of {before} ns on CPU {cpu}; sort the events of each CPU by time"
            ),
            Self::Moved { directory } => write!(
                f,
                "{0}: some of its pages have been moved to a file whose name ends in .part; give that file's name without \
                 .part as the output to go on: punctual trace convert {0} --remove -o FILE",
                directory.display()
            ),
            Self::Left { path, error } => {
                write!(f, "{}: {error}; everything in it was written, and it can be removed", path.display())
            }
            Self::Unreadable(error) => error.fmt(f),
            Self::Empty { path } => write!(
                f,
                "{}: nothing was recorded there; record for longer, or with more events",
                path.display()
            ),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Source { error, .. } | Self::Output { error, .. } | Self::Left { error, .. } => Some(error),
            Self::Unreadable(error) => Some(&**error),
            _ => None,
        }
    }
}

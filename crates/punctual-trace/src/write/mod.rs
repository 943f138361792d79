//! Writes trace.dat files, from recordings or synthetic events, that `trace-cmd report` and
//! KernelShark open.
//!
//! [`dat`] turns a capture directory into a file. [`synthetic`] turns [events](crate::event) into a
//! capture directory, to test and measure readers and analyses with traces whose correct result is
//! known. [`page`] and [`encode`] are its parts: pages of the ring buffer, and records.
//!
//! ```
//! use punctual_trace::event::{Event, Kind};
//! use punctual_trace::read::Trace;
//! use punctual_trace::write::{dat, synthetic::Synthetic};
//!
//! # let place = std::env::temp_dir().join(format!("punctual-write-{}", std::process::id()));
//! # std::fs::create_dir_all(&place)?;
//! let (directory, file) = (place.join("raw"), place.join("trace.dat"));
//! let event = Event { time: 1_000, cpu: 1, by: 17, kind: Kind::IrqEntry { irq: 24 } };
//! let mut synthetic = Synthetic::create(&directory)?;
//! synthetic.push(&event)?;
//! synthetic.finish()?;
//! dat::write(&directory, &file)?;
//!
//! let events: Vec<_> = Trace::open(&file)?.events()?.collect::<Result<_, _>>()?;
//! assert_eq!(events, [event]);
//! # std::fs::remove_dir_all(&place)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod dat;
mod directory;
pub mod encode;
mod moving;
mod sections;
pub mod synthetic;

use std::io;
use std::path::{Path, PathBuf};

pub use crate::format::page_writer as page;

/// Reason why a trace was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// An input cannot be read.
    #[error("{path}: {error}; give a directory that was recorded")]
    Source {
        /// File or directory.
        path: PathBuf,
        /// Error of the system call.
        #[source]
        error: io::Error,
    },
    /// The disk is full.
    #[error("{path}: the disk is full; {}", full_remedy(.saved.as_deref()))]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        /// Its source, which still exists and can be read.
        saved: Option<PathBuf>,
    },
    /// The system refused to write.
    #[error("{path}: {error}; choose a writable location")]
    Output {
        /// The file that was being written.
        path: PathBuf,
        /// Error of the system call.
        #[source]
        error: io::Error,
    },
    /// The event cannot be written because no format describes it.
    #[error("there is no format for an event {0}; give the encoder one that has its fields")]
    NoFormat(&'static str),
    /// The event is older than the previous one of its CPU.
    #[error(
        "an event of {time} ns follows one of {before} ns on CPU {cpu}; sort the events of each CPU by time"
    )]
    Backwards {
        /// The CPU.
        cpu: u16,
        /// Its time, in ns.
        time: u64,
        /// The time of the previous event.
        before: u64,
    },
    /// Some pages of a capture directory have already been moved to a file.
    #[error(
        "{directory}: some of its pages have been moved to a file whose name ends in .part; give that file's name without \
         .part as the output to go on: punctual trace convert {directory} --remove -o FILE"
    )]
    Moved {
        /// The directory.
        directory: PathBuf,
    },
    /// The file is complete, but its capture directory could not be removed.
    #[error("{path}: {error}; everything in it was written, and it can be removed")]
    Left {
        /// The directory.
        path: PathBuf,
        /// Error of the system call.
        #[source]
        error: io::Error,
    },
    /// The trace to be converted cannot be read.
    #[error("{0}")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// There is nothing to write.
    #[error("{path}: nothing was recorded there; record for longer, or with more events")]
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

/// Returns the remedy for a full disk: `saved` still exists.
fn full_remedy(saved: Option<&Path>) -> String {
    match saved {
        Some(saved) => format!(
            "what was recorded is in {} and can be read from there, or written to a file on another disk",
            saved.display()
        ),
        None => "make room or choose another disk".to_owned(),
    }
}

/// Event formats of a kernel (6.18, x86-64), for synthetic traces.
///
/// ```
/// use punctual_trace::write::formats;
///
/// assert!(formats::all().iter().any(|format| format.name == "sched_switch"));
/// ```
pub mod formats {
    use crate::format::fields::EventFormat;

    /// `header_page`.
    pub const HEADER_PAGE: &str = include_str!("header_page.txt");
    /// `header_event`.
    pub const HEADER_EVENT: &str = include_str!("header_event.txt");

    const FORMATS: &str = include_str!("formats.txt");

    /// Returns the groups and texts of the format files.
    pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
        FORMATS.split("group: ").skip(1).filter_map(|part| part.split_once('\n'))
    }

    /// Returns the parsed formats.
    pub fn all() -> Vec<EventFormat> {
        texts().filter_map(|(group, text)| EventFormat::parse(group, text.as_bytes()).ok()).collect()
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn parses_or_rejects_any_text() {
            assert_eq!(super::all().len(), super::texts().count());
            assert_eq!(super::texts().count(), 31);
        }
    }
}

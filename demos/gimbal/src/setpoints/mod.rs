//! The setpoints of the gimbal: a built-in sequence, a CSV file, or lines on the standard input.
//!
//! All three give angles in radians, and all are checked against the mechanical range of the axes
//! before the controllers receive them. Errors are reported with file, line and column (see
//! [`SetpointError`]).

mod file;
mod lines;
mod row;
mod timeline;

use std::fmt;

pub use file::{MAX_FILE_BYTES, read, read_file};
pub use lines::{LineParser, LineSetpoint};
pub use timeline::{BUILT_IN_SECONDS, Timeline};

/// An error in a source of setpoints.
#[derive(Debug, Clone, PartialEq)]
pub struct SetpointError {
    /// The file, or a name for another source.
    pub source: String,
    /// Line in the file, from 1, if the problem is in a certain line.
    pub line: Option<u64>,
    /// Number, from 1, and name of the column, if the problem is in a certain column.
    pub column: Option<(usize, &'static str)>,
    /// The problem at that position.
    pub problem: Problem,
}

/// A problem with setpoints.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The file could not be read.
    #[error("cannot be read: {0}; give a CSV file with the header time_s,pan_rad,tilt_rad")]
    Unreadable(String),
    /// The source is larger than any sensible sequence of setpoints.
    #[error("is larger than {max_bytes} bytes")]
    TooLarge {
        /// The maximum number of bytes read.
        max_bytes: u64,
    },
    /// Not even a header.
    #[error("is empty; the first line must be `{header}`")]
    Empty {
        /// The expected header.
        header: &'static str,
    },
    /// A header without rows.
    #[error("has a header but no setpoints")]
    NoSetpoints,
    /// A column of the header has the wrong name.
    #[error("the header has {found:?} instead of `{expected}`")]
    Header {
        /// Name in the file.
        found: String,
        /// Name of this column.
        expected: &'static str,
    },
    /// A line ends before this column.
    #[error("is missing")]
    Missing,
    /// There is a value in a superfluous column.
    #[error("{found:?} is one value too many: a line has {columns}")]
    Extra {
        /// The value in the first superfluous column.
        found: String,
        /// The columns of a line.
        columns: &'static str,
    },
    /// Text that is not a number.
    #[error("{found:?} is not a number")]
    NotANumber {
        /// The text.
        found: String,
    },
    /// A NaN or an infinity.
    #[error("{found:?} is not a finite number")]
    NotFinite {
        /// The text.
        found: String,
    },
    /// A time before the start of the run.
    #[error("the time {found_s} s is negative")]
    NegativeTime {
        /// The time, in seconds.
        found_s: f64,
    },
    /// A time before that of the previous line.
    #[error("the time {found_s} s is before the {last_s} s of the line above")]
    TimeBackwards {
        /// The time, in seconds.
        found_s: f64,
        /// The previous time, in seconds.
        last_s: f64,
    },
    /// An angle that the axis cannot reach.
    #[error("the angle {found_rad} rad is beyond the mechanical range of {min_rad} to {max_rad} rad")]
    OutOfRange {
        /// The angle, in radians.
        found_rad: f64,
        /// The lower hard stop, in radians.
        min_rad: f64,
        /// The upper hard stop, in radians.
        max_rad: f64,
    },
}

impl fmt::Display for SetpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some((number, name)) = self.column {
            write!(f, ", column {number}")?;
            if !name.is_empty() {
                write!(f, " ({name})")?;
            }
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for SetpointError {}

//! Errors in `format` files.

use std::fmt;

/// An error in a `format`, `header_page` or `header_event` file, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatError {
    /// The offset in the text, in bytes.
    pub offset: usize,
    /// The error.
    pub problem: FormatProblem,
}

/// The errors of such files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatProblem {
    /// The text is not UTF-8.
    NotText,
    /// A line that every such file has is missing.
    Missing(&'static str),
    /// A number is malformed or too large.
    Number(&'static str),
    /// A line that begins with `field:` is malformed.
    Field,
    /// A field exceeds the longest possible record.
    TooLong {
        /// Its offset plus its size.
        end: u64,
        /// The limit.
        limit: u64,
    },
    /// There are more fields than any event has.
    TooManyFields(usize),
    /// The kernel uses a layout of records that this reader does not support.
    Layout(String),
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: ", self.offset)?;
        match &self.problem {
            FormatProblem::NotText => {
                f.write_str("the format is not text; record again, the file is damaged")
            }
            FormatProblem::Missing(what) => {
                write!(f, "the format has no `{what}`; copy the format file of the traced kernel again")
            }
            FormatProblem::Number(what) => {
                write!(f, "`{what}` is not followed by a number in range; copy the format file again")
            }
            FormatProblem::Field => f.write_str(
                "this is not `field:TYPE NAME; offset:N; size:N; signed:N;`; copy the format file again",
            ),
            FormatProblem::TooLong { end, limit } => write!(
                f,
                "the field would end at byte {end} of a record, and records have at most {limit}; copy the format \
                 file again"
            ),
            FormatProblem::TooManyFields(limit) => {
                write!(f, "the event has more than {limit} fields; copy the format file again")
            }
            FormatProblem::Layout(what) => {
                write!(f, "{what}, which this version of punctual cannot read; use a newer one")
            }
        }
    }
}

impl std::error::Error for FormatError {}

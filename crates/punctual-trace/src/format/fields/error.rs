//! Errors in `format` files.

/// An error in a `format`, `header_page` or `header_event` file, and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {problem}")]
#[non_exhaustive]
pub struct FormatError {
    /// The offset in the text, in bytes.
    pub offset: usize,
    /// The error.
    pub problem: FormatProblem,
}

/// The errors of such files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatProblem {
    /// The text is not UTF-8.
    #[error("the format is not text; record again, the file is damaged")]
    NotText,
    /// A line that every such file has is missing.
    #[error("the format has no `{0}`; copy the format file of the traced kernel again")]
    Missing(&'static str),
    /// A number is malformed or too large.
    #[error("`{0}` is not followed by a number in range; copy the format file again")]
    Number(&'static str),
    /// A line that begins with `field:` is malformed.
    #[error("this is not `field:TYPE NAME; offset:N; size:N; signed:N;`; copy the format file again")]
    Field,
    /// A field exceeds the longest possible record.
    #[error(
        "the field would end at byte {end} of a record, and records have at most {limit}; copy the format file again"
    )]
    TooLong {
        /// Its offset plus its size.
        end: u64,
        /// The limit.
        limit: u64,
    },
    /// There are more fields than any event has.
    #[error("the event has more than {0} fields; copy the format file again")]
    TooManyFields(usize),
    /// The kernel uses a layout of records that this reader does not support.
    #[error("{0}, which this version of punctual cannot read; use a newer one")]
    Layout(String),
}

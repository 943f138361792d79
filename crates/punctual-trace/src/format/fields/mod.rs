//! The `format` files of tracefs: the layout of an event on the traced kernel.
//!
//! Offsets and types differ between kernels and builds; field names do not. Everything else looks
//! up fields by name.
//!
//! ```
//! use punctual_trace::read::format::EventFormat;
//!
//! let text = "name: contention_end\nID: 407\nformat:\n\
//!     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
//!     \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
//!     \tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
//!     \tfield:int ret;\toffset:16;\tsize:4;\tsigned:1;\n\n\
//!     print fmt: \"%p (ret=%d)\", REC->lock_addr, REC->ret\n";
//! let format = EventFormat::parse("lock", text.as_bytes())?;
//! assert_eq!(format.id, 407);
//! assert_eq!(format.field("lock_addr").unwrap().offset, 8);
//! # Ok::<(), punctual_trace::read::format::FormatError>(())
//! ```

mod header;
mod parse;

pub use header::{PageLayout, check_header_event};

/// One event of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFormat {
    /// Its group, for example `sched` of `sched/sched_switch`.
    pub system: String,
    /// Its name.
    pub name: String,
    /// Its ID in records.
    pub id: u16,
    /// Its fields, the common ones first.
    pub fields: Vec<Field>,
    /// The kernel's text format; only this has the values of some flags.
    pub print: String,
}

/// One field of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its offset in the record, in bytes.
    pub offset: u16,
    /// Its size in bytes; 0 if it extends to the end of the record.
    pub size: u16,
    /// True for a signed number.
    pub signed: bool,
    /// Its content.
    pub shape: Shape,
}

/// The content of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A number, or anything else of fixed size.
    Plain,
    /// An array of this length, or 0 if it extends to the end of the record.
    Array(u16),
    /// The location of the content: its offset in the low half, its length in the high half
    /// (`__data_loc`).
    Located,
    /// The same, with the offset relative to the end of the field (`__rel_loc`).
    LocatedAfter,
}

impl EventFormat {
    /// Parses a `format` file of the group `system`.
    pub fn parse(system: &str, text: &[u8]) -> Result<Self, FormatError> {
        parse::event(system, text)
    }

    /// Returns the field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

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

#[cfg(test)]
mod tests;

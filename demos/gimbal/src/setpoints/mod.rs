//! The setpoints of the gimbal: a built-in sequence, a CSV file, or lines on the standard input.
//!
//! All three give angles in radians, and all are checked against the mechanical range of the axes
//! before the controllers receive them. Errors are reported with file, line and column (see
//! [`SetpointError`]).

mod error;
mod file;
mod lines;
mod row;
mod timeline;

pub use error::{Problem, SetpointError};
pub use file::{MAX_FILE_BYTES, read, read_file};
pub use lines::{LineParser, LineSetpoint};
pub use timeline::{BUILT_IN_SECONDS, Timeline};

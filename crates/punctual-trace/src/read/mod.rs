//! Traces, read: from files and directories to [events](crate::event), in the order of time.
//!
//! The layers only look down. [`format`] says how things lie in memory, [`page`] takes pages apart into records,
//! [`translate`] makes events of records, [`merge`] brings the CPUs together, and [`dat`] and [`raw`] know where in a file
//! or a directory everything is.

mod bytes;
pub mod format;
pub mod marker;
pub mod page;
pub mod translate;

pub use bytes::{Bytes, Order, Range};

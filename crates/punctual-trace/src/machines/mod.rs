//! Merges recordings of several machines, by a clock that they share or by messages that they
//! exchanged while they recorded.
//!
//! A message cannot be received before it is sent. So each message from the first machine to
//! another bounds the offset of the other's clock on one side, and each message back bounds it on
//! the other side; [`Clocks`] computes the range that all of them allow. [`exchange`] marks the
//! messages in the recordings of both.
//!
//! [`merge`] writes the file. Numbers that each machine assigns itself are made distinct: see
//! [`THREADS`].

pub mod exchange;

mod clocks;
mod merge;
mod records;

pub use clocks::{ClockError, Clocks};
pub use merge::{MergeError, Merged, Relation, merge};

/// Offset of the second machine's thread IDs; the third has twice this offset, and so on. Their
/// CPUs follow those of the preceding machines.
pub const THREADS: u32 = 10_000_000;
/// Offset of device interrupt numbers.
pub const IRQS: u32 = 2_048;
/// Offset of task numbers of Punctual apps.
pub const TASKS: u16 = 1_024;
/// Maximum number of machines, limited by the range of thread IDs.
pub const MAX_MACHINES: usize = 16;

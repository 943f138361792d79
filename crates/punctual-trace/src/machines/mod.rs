//! Recordings of several machines as one: by a clock that they share, or by messages that they exchanged while they recorded.
//!
//! What one machine sends, the other cannot have received before. So each message from the first machine to another bounds from above
//! by how much the other's clock is ahead, and each message back bounds it from below; [`Clocks`] finds what all of them allow, and how
//! much that leaves open. [`exchange`] marks the messages in the recordings of both.
//!
//! [`merge`] writes the file. What two machines number for themselves is told apart in it: see [`THREADS`].

pub mod exchange;

mod clocks;
mod merge;
mod records;

pub use clocks::{ClockError, Clocks};
pub use merge::{MergeError, Merged, Relation, merge};

/// The threads of the second machine have numbers higher by this, those of the third by twice as much, and so on. Their CPUs follow
/// those of the machines before.
pub const THREADS: u32 = 10_000_000;
/// The same for interrupts of devices.
pub const IRQS: u32 = 2_048;
/// The same for tasks of Punctual apps.
pub const TASKS: u16 = 1_024;
/// So many machines at most, so that there are numbers for all of their threads.
pub const MAX_MACHINES: usize = 16;

//! The console of a CPU beside Linux: text that Linux reads.

pub use crate::amp::Console;

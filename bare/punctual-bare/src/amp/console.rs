//! The console of a CPU that Linux gave up: text that Linux reads.

pub use crate::amp::Console;

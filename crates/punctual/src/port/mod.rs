//! Services of the platforms, independent of apps: Linux and virtual time in a process, or a board.
//!
//! The feature `std` selects between a process and a board. Both provide the port of a partition,
//! [`AppPort`], the system's error, and statics with a value for each thread.

mod nanos;
mod suspensions;

pub(crate) use self::nanos::Nanos;
pub(crate) use self::suspensions::Suspensions;
pub use crate::platform::port::*;

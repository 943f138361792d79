//! Services of the platforms, independent of apps: Linux and virtual time in a process, or a board.
//!
//! The feature `std` selects between a process and a board. Both provide the port of a partition,
//! [`AppPort`], the system's error, and statics with a value for each thread.

#[cfg(not(feature = "std"))]
pub(crate) mod board;
#[cfg(feature = "std")]
pub(crate) mod linux;
mod nanos;
#[cfg(feature = "std")]
mod process;
mod suspensions;
#[cfg(feature = "std")]
pub(crate) mod virtual_time;

#[cfg(not(feature = "std"))]
pub use self::board::AppPort;
#[cfg(not(feature = "std"))]
pub(crate) use self::board::*;
pub(crate) use self::nanos::Nanos;
#[cfg(feature = "std")]
pub use self::process::AppPort;
#[cfg(feature = "std")]
pub(crate) use self::process::*;
pub(crate) use self::suspensions::Suspensions;

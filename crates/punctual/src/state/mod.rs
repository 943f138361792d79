//! The static state of an app, which its tasks, locks and runs share.
//!
//! [`Runtime`](runtime::Runtime) and [`PartitionState`](partition::PartitionState) exist once; what
//! differs between a Linux process and a board is behind the trait [`Platform`], and in the parts of
//! the state that each platform adds.

#[cfg(not(feature = "std"))]
mod board;
pub(crate) mod partition;
pub(crate) mod platform;
#[cfg(feature = "std")]
mod process;
pub(crate) mod runtime;

#[cfg(not(feature = "std"))]
pub(crate) use self::board::*;
pub(crate) use self::platform::Platform;
#[cfg(feature = "std")]
pub(crate) use self::process::*;

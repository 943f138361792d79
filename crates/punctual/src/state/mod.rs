//! The static state of an app, which its tasks, locks and runs share.
//!
//! [`Runtime`](runtime::Runtime) and [`PartitionState`](partition::PartitionState) exist once; what
//! differs between a Linux process and a board is behind the trait [`Platform`], and in the parts
//! of the state that each platform adds.

pub(crate) mod partition;
pub(crate) mod platform;
pub(crate) mod runtime;

pub(crate) use self::platform::Platform;
pub(crate) use crate::platform::state::*;

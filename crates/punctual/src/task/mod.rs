//! Tasks of every kind: releasing, running and measuring jobs.

#[cfg(feature = "async")]
pub(crate) mod async_task;
pub(crate) mod body;
#[cfg(feature = "std")]
pub(crate) mod bound;
#[cfg(feature = "std")]
pub(crate) mod costs;
pub(crate) mod interval;
#[cfg(feature = "std")]
pub(crate) mod job;
#[cfg(feature = "std")]
mod measured;
pub(crate) mod message;
#[cfg(feature = "std")]
pub(crate) mod monitor;
pub(crate) mod periodic;
pub(crate) mod release;
pub(crate) mod spawn_error;

#[cfg(not(feature = "std"))]
pub(crate) use crate::app::{bound, job, monitor};

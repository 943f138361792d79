//! Tasks of every kind: releasing, running and measuring jobs.

#[cfg(feature = "async")]
pub(crate) mod async_task;
pub(crate) mod body;
#[cfg(feature = "std")]
pub(crate) mod costs;
#[cfg(feature = "std")]
pub(crate) mod descriptor;
#[cfg(not(feature = "std"))]
pub(crate) mod interrupt;
pub(crate) mod interval;
pub(crate) mod job;
pub(crate) mod message;
pub(crate) mod monitor;
#[cfg(feature = "std")]
mod observed;
pub(crate) mod periodic;
pub(crate) mod release;
pub(crate) mod spawn_error;

//! Tasks of every kind: releasing, running and measuring jobs.

#[cfg(feature = "async")]
pub(crate) mod async_task;
pub(crate) mod body;
pub(crate) mod interval;
pub(crate) mod job;
pub(crate) mod message;
pub(crate) mod monitor;
pub(crate) mod periodic;
pub(crate) mod release;
pub(crate) mod spawn_error;

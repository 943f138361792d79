//! Tasks of every kind: how a job is released, run and measured.

#[cfg(feature = "async")]
pub(crate) mod async_task;
pub(crate) mod bound;
pub(crate) mod interval;
pub(crate) mod job;
#[cfg(feature = "monitoring")]
mod measured;
#[cfg(not(feature = "monitoring"))]
#[path = "unmeasured.rs"]
mod measured;
pub(crate) mod message;
pub(crate) mod monitor;
pub(crate) mod periodic;
pub(crate) mod spawn_error;

//! Tasks of every kind: how a job is released, run and measured.

pub(crate) mod async_task;
pub(crate) mod bound;
pub(crate) mod job;
pub(crate) mod message;
pub(crate) mod monitor;
pub(crate) mod periodic;
pub(crate) mod spawn_error;

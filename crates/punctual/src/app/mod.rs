//! The app: its static state, where and how it runs, and what is reported of a run.

pub mod config;
pub mod report;

pub(crate) mod cause;
pub(crate) mod current;
pub(crate) mod event_source;
pub(crate) mod fault;
pub(crate) mod forked;
pub(crate) mod panic_hook;
pub(crate) mod partition;
pub(crate) mod reactor;
pub(crate) mod run;
pub(crate) mod runtime;
pub(crate) mod spawn_gate;
pub(crate) mod start_error;
pub(crate) mod trace_markers;
pub(crate) mod virtual_time;

//! The parts of the library for an app that is a program for a board without operating system.
//!
//! A submodule belongs to the module of the same name at the root of the crate, which re-exports
//! its items.

pub(crate) mod cells;
pub(crate) mod config;
pub(crate) mod export;
pub(crate) mod lock;
pub(crate) mod port;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod state;
pub(crate) mod task;

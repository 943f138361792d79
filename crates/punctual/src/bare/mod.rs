//! The app on a bare board: what [`crate`] is without the feature `std`.
//!
//! One core runs one partition, and a single thread, which on the first core begins as `main`, runs every level of it. Jobs preempt it from
//! interrupts: a handler runs what its interrupt is bound to, or what is due by the clock, or releases it, and if a level is ready above
//! the partition's then, it runs it on the stack of what it has interrupted, with interrupts unmasked. So neither the
//! interrupt controller nor a critical section needs to know of priorities, and nothing masks interrupts for long.
//!
//! What a board has to provide is in [`board`]; `punctual-bare` does.

pub mod config;
#[path = "../app/halves/mod.rs"]
pub mod halves;
#[path = "../app/model/mod.rs"]
pub mod model;
pub mod report;

pub(crate) mod board;
pub(crate) mod bound;
pub(crate) mod clock;
pub(crate) mod cores;
pub(crate) mod current;
pub(crate) mod fault;
pub(crate) mod interrupt;
pub(crate) mod job;
pub(crate) mod monitor;
pub(crate) mod partition;
#[cfg(feature = "async")]
pub(crate) mod per_core;
pub(crate) mod port;
pub(crate) mod profile;
pub(crate) mod run;
pub(crate) mod runtime;
pub(crate) mod services;
pub(crate) mod start_error;
pub(crate) mod stop;
#[cfg(feature = "virtual-time")]
pub(crate) mod virtual_time;

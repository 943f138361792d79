//! The app on a bare board: [`crate`] without the feature `std`.
//!
//! One core runs one partition, and a single thread, which on the first core begins as `main`, runs
//! every level of it. Jobs preempt it from interrupts: a handler runs or releases the job that its
//! interrupt is bound to, or the timed jobs that are due. If a level above the partition's is then
//! ready, the handler runs it on the stack of the interrupted code, with interrupts unmasked. So
//! neither the interrupt controller nor a critical section needs priorities, and interrupts are
//! never masked for long.
//!
//! The functions that a board has to provide are in [`board`]; `punctual-bare` implements them.

pub mod config;
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
pub(crate) mod remote;
pub(crate) mod run;
pub(crate) mod runtime;
pub(crate) mod services;
pub(crate) mod start_error;
pub(crate) mod stop;
#[cfg(feature = "virtual-time")]
pub(crate) mod virtual_time;

//! The app on a bare board: [`crate`] without the feature `std`.
//!
//! One core runs one partition, and a single thread, which on the first core begins as `main`, runs
//! every level of it. Jobs preempt it from interrupts: a handler runs or releases the job that its
//! interrupt is bound to, or the timed jobs that are due. If a level above the partition's is then
//! ready, the handler runs it on the stack of the interrupted code, with interrupts unmasked. So
//! neither the interrupt controller nor a critical section needs priorities, and interrupts are
//! never masked for long.
//!
//! The functions that a board has to provide are in [`board`](crate::port::board); `punctual-bare`
//! implements them.

pub(crate) mod bound;
pub(crate) mod cores;
pub(crate) mod current;
pub(crate) mod fault;
pub(crate) mod interrupt;
pub(crate) mod job;
pub(crate) mod monitor;
pub(crate) mod partition;
pub(crate) mod profile;
pub(crate) mod remote;
pub(crate) mod run;
pub(crate) mod runtime;
pub(crate) mod services;
pub(crate) mod stop;
pub(crate) mod virtual_time;

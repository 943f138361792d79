//! The kernel on a simulated processor.
//!
//! The port to Linux, of which a process has one, is tested by a separate binary.

mod support;

mod behavior;
mod misuse;
mod schedules;
mod waiting;

//! Reports the jobs that [`punctual_trace`] decomposes, to people and to other programs.
//!
//! [`explain`] describes jobs in sentences, [`chains`] groups them into chains of tasks that wake
//! each other, and [`export`] writes tables, a page, CSV, JSON and Perfetto traces.
//!
//! Decomposition has to be fast, and printing its result does not: separate crates have separate
//! optimization levels.

#![deny(clippy::print_stdout, clippy::print_stderr)]
#![warn(missing_docs)]

pub mod chains;
pub mod explain;
pub mod export;

//! Where every microsecond of every real-time job went.
//!
//! The scheduler, interrupt, timer and lock events of a Linux kernel are decomposed into jobs, and each job into the terms
//! of response-time analysis. [`event`] is what everything else here speaks: readers make events of traces, analyses make
//! jobs of events.
//!
//! [`record`] takes a trace of the running kernel, [`mod@write`] makes a file of it that other tools open, [`read`] makes events
//! of files. [`jobs`] decomposes, [`stats`] sums up and raises alarms, [`explain`] says it in sentences, [`export`] writes it for other
//! programs. [`recorded`] is for what a recording cannot tell, [`buffer_stats`] for what the kernel says it lost. [`machines`] makes one recording of those of several machines. [`noise`] sums up what takes CPUs from
//! the threads that they are for. `docs/book/src/internals/tracing.md` maps every term to kernel events, with its
//! precision.
//!
//! The feature `bpf` is for [`record::Group::Schedule`]: when threads enter and leave the scheduler, by BPF programs.

#![deny(clippy::print_stdout, clippy::print_stderr)]
#![warn(missing_docs)]

pub mod buffer_stats;
pub mod chains;
pub mod event;
pub mod explain;
pub mod export;
pub mod jobs;
pub mod latency;
pub mod machines;
pub mod names;
pub mod noise;
pub mod priority;
pub mod read;
pub mod record;
pub mod recorded;
pub mod stats;
pub mod write;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

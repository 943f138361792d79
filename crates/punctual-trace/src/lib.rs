//! Decomposes every real-time job into its response-time terms, microsecond by microsecond.
//!
//! The scheduler, interrupt, timer and lock events of a Linux kernel are decomposed into jobs, and
//! each job into the terms of response-time analysis. [`event`] is the common format: readers turn
//! traces into events, analyses turn events into jobs.
//!
//! ```no_run
//! use punctual_trace::read::Trace;
//!
//! let trace = Trace::open("trace.dat".as_ref())?;
//! let mut events = trace.events()?;
//! let mut count = 0;
//! while let Some(event) = events.next() {
//!     match event {
//!         Ok(_) => count += 1,
//!         Err(problem) => eprintln!("{problem}"), // the data of one CPU ends here
//!     }
//! }
//! println!("{count} events of {} threads", events.threads().iter().count());
//! # Ok::<(), punctual_trace::read::ReadError>(())
//! ```
//!
//! [`record`] takes a trace of the running kernel, [`mod@write`] writes files that other tools
//! open, [`read`] reads events from files, and [`convert`] repairs files. [`mod@format`] describes
//! the formats for all of them. [`jobs`] decomposes, [`stats`] aggregates and raises alarms.
//! [`recorded`] describes the limits of a recording, [`buffer_stats`] the kernel's counters of lost
//! events. [`machines`] merges the recordings of several machines. [`noise`] sums up activity that
//! takes CPUs from their dedicated threads. `punctual-trace-report` describes jobs in sentences and
//! exports them. `docs/book/src/internals/tracing.md` maps every term to kernel events, with its
//! precision.
//!
//! The feature `bpf` enables [`record::Group::Schedule`]: the times at which threads enter and
//! leave the scheduler, from BPF programs.

#![deny(clippy::print_stdout, clippy::print_stderr)]
#![warn(missing_docs)]

pub mod buffer_stats;
pub mod event;
pub mod format;
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

use std::path::Path;

use crate::read::dat;
use crate::write::WriteError;

/// Repairs a trace.dat: writes `file` with every part of `trace` that can be read. Returns notes on
/// missing parts.
///
/// # Errors
/// Returns an error if no part of the trace can be read, if it was recorded on a machine with the
/// opposite byte order, or if the file cannot be written.
pub fn convert(trace: &Path, file: &Path) -> Result<Vec<String>, WriteError> {
    let (content, damage) = dat::content(trace).map_err(|error| WriteError::Unreadable(error.into()))?;
    write::dat::copy(&content, None, file)?;
    Ok(damage)
}

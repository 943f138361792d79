//! Benchmarks a machine and its kernel for real-time work, and compares Punctual with alternatives.
//!
//! [`run`] runs suites and returns a [`Run`](model::Run): the cost of a real-time system's
//! operations, the verdicts on scheduling and locking rules, the latency of events and delays, the
//! interruptions of a loop, and the effect of policies and affinities. [`text`] formats a run as
//! tables, [`html`] as a page, [`model`] defines its JSON, and [`compare`] compares it with an
//! earlier one. `docs/book/src/internals/measurement.md` explains how each figure is measured.
//!
//! ```no_run
//! use punctual_bench::{Options, Silent, Stop};
//!
//! let options = Options { suites: vec!["rtos".parse().unwrap()], quick: true, ..Options::default() };
//! let run = punctual_bench::run(&options, &Stop::default(), &Silent)?;
//! for row in run.rows() {
//!     if let Some(figures) = &row.figures {
//!         println!("{}: at most {} ns", row.id, figures.max_ns);
//!     }
//! }
//! # Ok::<(), punctual_bench::BadOptions>(())
//! ```
//!
//! Figures include all outliers. Verdicts of checks depend only on the order of events.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod compare;
pub mod html;
pub mod model;
pub mod stats;
pub mod text;

mod activity;
mod clock;
mod contend;
mod gpio;
mod grouping;
mod load;
mod machine;
mod options;
mod peers;
mod probe;
mod published;
mod recorder;
mod rt;
mod run;
#[cfg(test)]
mod sample;
mod session;
mod subject;
pub mod suites;
mod tables;
mod tracefs;

pub use gpio::GpioLines;
pub use load::LoadKind;
pub use machine::Machine;
pub use options::{BadOptions, MAX_SAMPLES, Options, SuiteName};
pub use probe::{Probe, miss_rate_bound, probe};
pub use run::run;
pub use session::{Progress, Stop};

/// Reports no progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn suite(&self, _: SuiteName, _: usize) {}
    fn step(&self, _: &str) {}
    fn suite_done(&self, _: &model::Suite) {}
    fn begins(&self, _: &model::Run) {}
}

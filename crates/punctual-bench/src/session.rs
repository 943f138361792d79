//! The context of a step, which adds rows and checks to the results of its suite.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::model::{Check, Quantity, Row, Run, Suite};
use crate::options::{Plan, SuiteName};
use crate::recorder::Recorder;
use crate::rt::Lack;
use crate::stats::{Distribution, Statistics};

/// Receives the progress of a run.
pub trait Progress {
    /// A suite with this many steps begins.
    fn suite(&self, name: SuiteName, steps: usize);
    /// The next step begins.
    fn step(&self, what: &str);
    /// A suite has ended, with these results.
    fn suite_done(&self, suite: &Suite);
    /// The machine and the measurement overhead are known, before any other measurement.
    fn begins(&self, run: &Run);
}

/// A measurement with a name for the progress display.
pub(crate) struct Step {
    pub(crate) what: String,
    pub(crate) run: Box<dyn FnOnce(&mut Session<'_>)>,
}

impl Step {
    pub(crate) fn new(what: impl Into<String>, run: impl FnOnce(&mut Session<'_>) + 'static) -> Self {
        Self { what: what.into(), run: Box::new(run) }
    }
}

/// The context of a step.
pub(crate) struct Session<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) clock: Clock,
    pub(crate) stop: &'a Stop,
    /// The reason if there is no SCHED_FIFO.
    pub(crate) no_fifo: Option<String>,
    pub(crate) suite: Suite,
}

/// The samples of a step.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) lack: Lack,
    pub(crate) unit: Unit,
}

impl Measured {
    /// Values in ticks of the clock.
    pub(crate) fn ticks(recorder: Arc<Recorder>, lack: Lack) -> Self {
        Self { recorder, lack, unit: Unit::Ticks }
    }
}

/// The unit of recorded values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Ticks of [`clock`](crate::clock).
    Ticks,
    /// Nanoseconds.
    Nanos,
    /// Picoseconds.
    Picos,
}

impl Session<'_> {
    /// Adds a row unchanged.
    pub(crate) fn push(&mut self, row: Row) {
        self.suite.rows.push(row);
    }

    /// Adds a row with these samples. Without SCHED_FIFO, it is marked as invalid.
    pub(crate) fn add(&mut self, row: Row, measured: &Measured) {
        let mut statistics = Statistics::new();
        for value in measured.recorder.values() {
            let ps = match measured.unit {
                Unit::Ticks => self.clock.ps(value),
                Unit::Nanos => value.saturating_mul(1000),
                Unit::Picos => value,
            };
            statistics.record_ps((ps as f64 / f64::from(row.operations_per_sample)).round() as u64);
        }
        self.add_figures(row, statistics.distribution(), &measured.lack);
    }

    /// Adds a row with these figures; `lack` contains the settings that the measurement was
    /// refused.
    pub(crate) fn add_figures(&mut self, mut row: Row, figures: Option<Distribution>, lack: &Lack) {
        row.figures = figures;
        if row.figures.is_none() && row.why.is_empty() {
            row.why.push("ended before the first sample".into());
        }
        row.why.extend(self.no_fifo.clone());
        row.why.extend(
            lack.iter().filter(|what| !what.starts_with("no SCHED_FIFO") || self.no_fifo.is_none()).cloned(),
        );
        row.why.dedup();
        self.push(row);
    }

    /// Adds a row that needs no real-time scheduling.
    pub(crate) fn add_plain(&mut self, mut row: Row, figures: Option<Distribution>) {
        row.figures = figures;
        self.push(row);
    }

    /// Adds a quantity to all rows of `operation` that have figures.
    pub(crate) fn quantify(&mut self, operation: &str, quantity: Option<Quantity>) {
        let rows = self.suite.rows.iter_mut();
        for row in rows.filter(|row| row.operation == operation && row.figures.is_some()) {
            row.quantities.extend(quantity.clone());
        }
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.suite.rows.len()
    }

    /// Returns the rows from this number on.
    pub(crate) fn rows_since(&mut self, first: usize) -> &mut [Row] {
        &mut self.suite.rows[first..]
    }

    /// Adds a row that could not be measured.
    pub(crate) fn add_unmeasured(&mut self, mut row: Row, why: impl Into<String>) {
        row.why.push(why.into());
        self.push(row);
    }

    /// Adds a check.
    pub(crate) fn check(&mut self, check: Check) {
        self.suite.checks.push(check);
    }

    /// Adds a note to the suite, once.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.suite.notes.contains(&note) {
            self.suite.notes.push(note);
        }
    }

    /// Returns the requested number of samples per row.
    pub(crate) fn samples(&self) -> usize {
        self.plan.samples as usize
    }
}

/// A request to end a run with the results so far. Clones share the request.
///
/// ```
/// let stop = punctual_bench::Stop::default();
/// let elsewhere = stop.clone();
/// elsewhere.request();
/// assert!(stop.is_requested());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Requests the end. Async-signal-safe.
    pub fn request(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns `true` if the end was requested. Real-time safety: one load.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Returns the flag, for crates that set one from a signal handler.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

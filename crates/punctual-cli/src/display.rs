//! Progress of a run, as a bar on a terminal and as plain lines otherwise, and the tables of
//! finished suites.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use punctual_bench::model::{Run, Suite};
use punctual_bench::{Progress, Stop, SuiteName, text};

use crate::output::{self, print, say};

/// Progress on standard error, tables on standard output.
pub(crate) struct Display {
    /// Stops the run when standard output is closed, unless results also go elsewhere.
    unread: Option<Stop>,
    /// JSON replaces the tables.
    is_silent: bool,
    is_terminal: bool,
    bar: RefCell<Option<ProgressBar>>,
    suite: Cell<Option<(SuiteName, usize)>>,
    step: Cell<usize>,
    /// The median of an empty measurement.
    empty_ns: Cell<f64>,
}

impl Display {
    pub(crate) fn new(unread: Option<Stop>, is_silent: bool) -> Self {
        Self {
            unread,
            is_silent,
            is_terminal: std::io::stderr().is_terminal(),
            bar: RefCell::default(),
            suite: Cell::default(),
            step: Cell::default(),
            empty_ns: Cell::default(),
        }
    }

    /// Prints a part of the result.
    pub(crate) fn print(&self, table: &str) {
        if self.is_silent {
            return;
        }
        print(&format!("{table}\n"));
        if let Some(stop) = &self.unread
            && output::is_over()
        {
            stop.request();
        }
    }
}

impl Progress for Display {
    fn begins(&self, run: &Run) {
        self.empty_ns.set(run.overhead.p50_ns);
        self.print(&text::head(run));
    }

    fn suite(&self, name: SuiteName, steps: usize) {
        self.suite.set(Some((name, steps)));
        self.step.set(0);
        if self.is_terminal {
            // Drawn only when a step begins: a drawing thread would disturb the measurement.
            let style = ProgressStyle::with_template("{prefix:9} {bar:30} {pos:>2}/{len} {wide_msg}");
            let bar = ProgressBar::new(steps as u64).with_style(style.expect("the template is sound"));
            bar.set_prefix(name.as_str());
            *self.bar.borrow_mut() = Some(bar);
        }
    }

    fn step(&self, what: &str) {
        let step = self.step.get() + 1;
        self.step.set(step);
        match (&*self.bar.borrow(), self.suite.get()) {
            (Some(bar), _) => {
                bar.set_position(step as u64 - 1);
                bar.set_message(what.to_owned());
                bar.tick();
            }
            (None, Some((name, steps))) => say!("{name} {step}/{steps}: {what}"),
            (None, None) => {}
        }
    }

    fn suite_done(&self, suite: &Suite) {
        if let Some(bar) = self.bar.borrow_mut().take() {
            bar.finish_and_clear();
        }
        self.print(&text::suite(suite, self.empty_ns.get()));
    }
}

//! How far a run is: a bar on a terminal, plain lines otherwise; and the tables as suites end.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use punctual_bench::model::{Run, Suite};
use punctual_bench::{Progress, SuiteName, text};

use crate::output::{print, say};

/// Progress on standard error, tables on standard output.
pub(crate) struct Display {
    is_terminal: bool,
    bar: RefCell<Option<ProgressBar>>,
    suite: Cell<Option<(SuiteName, usize)>>,
    step: Cell<usize>,
    /// The median of an empty measurement.
    empty_ns: Cell<f64>,
}

impl Display {
    pub(crate) fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            bar: RefCell::default(),
            suite: Cell::default(),
            step: Cell::default(),
            empty_ns: Cell::default(),
        }
    }
}

impl Progress for Display {
    fn begins(&self, run: &Run) {
        self.empty_ns.set(run.overhead.p50_ns);
        print(&format!("{}\n", text::head(run)));
    }

    fn suite(&self, name: SuiteName, steps: usize) {
        self.suite.set(Some((name, steps)));
        self.step.set(0);
        if self.is_terminal {
            // It is drawn when a step begins and not in between: a thread that draws would disturb what is measured.
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
        print(&format!("{}\n", text::suite(suite, self.empty_ns.get())));
    }
}

//! Progress of a run, as a bar on a terminal and as plain lines otherwise, and the tables of
//! finished suites.

use std::cell::Cell;
use std::io::{IsTerminal, Write};

use punctual_bench::model::{Run, Suite};
use punctual_bench::{Progress, Stop, SuiteName, text};

use crate::output::{self, message, print};

/// Progress on standard error, tables on standard output.
pub(crate) struct Display {
    /// Stops the run when standard output is closed, unless results also go elsewhere.
    unread: Option<Stop>,
    /// JSON replaces the tables.
    is_silent: bool,
    is_terminal: bool,
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
    }

    fn step(&self, what: &str) {
        let step = self.step.get() + 1;
        self.step.set(step);
        let Some((name, steps)) = self.suite.get() else { return };
        if self.is_terminal {
            // Drawn only when a step begins: a drawing thread would disturb the measurement.
            let columns = output::columns(std::io::stderr()).unwrap_or(80);
            let line = bar(name.as_str(), step - 1, steps, what, columns);
            write_bar(&line);
        } else {
            message!("{name} {step}/{steps}: {what}");
        }
    }

    fn suite_done(&self, suite: &Suite) {
        if self.is_terminal && self.step.get() > 0 {
            write_bar("");
        }
        self.print(&text::suite(suite, self.empty_ns.get()));
    }
}

/// Replaces the bar on standard error. Progress is not worth an error.
fn write_bar(line: &str) {
    let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
}

/// Returns the progress after `done` of `steps`, in less than `columns` characters.
fn bar(name: &str, done: usize, steps: usize, what: &str, columns: usize) -> String {
    const WIDTH: usize = 30;
    let filled = WIDTH * done / steps.max(1);
    let (full, empty) = ("█".repeat(filled), "░".repeat(WIDTH - filled));
    let line = format!("{name:9} {full}{empty} {done:>2}/{steps} {what}");
    line.chars().take(columns.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_shows_completed_steps_and_fits_terminal() {
        let line = bar("rtos", 5, 10, "the next step", 80);
        assert_eq!(line, format!("rtos      {}{}  5/10 the next step", "█".repeat(15), "░".repeat(15)));
        assert_eq!(bar("rtos", 10, 10, "x", 30).chars().count(), 29);
        assert_eq!(bar("rtos", 0, 0, "x", 0), "");
    }
}

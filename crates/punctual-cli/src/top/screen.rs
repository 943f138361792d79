//! The state of the live view, and the keys that change it.

use punctual_core::metrics::Term;
use punctual_report::escape::Printable;

use super::args::{Order, Top};
use super::chosen::Chosen;
use super::figures::{Row, arranged, rows};
use super::keys::Key;
use super::levels::Levels;
use super::memory::Snapshot;
use super::next_miss::{NextMiss, Outcome};

/// Contents below the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Panel {
    Histogram,
    /// CPU utilization of each level, by update.
    Levels,
    /// Incoming and outgoing messages.
    Traffic,
    Settings,
    Help,
}

/// The state of the view.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) chosen: Chosen,
    pub(super) snapshot: Option<Snapshot>,
    /// All tasks, as of the last update.
    all: Vec<Row>,
    /// Reason why there are no new figures.
    pub(super) message: Option<String>,
    pub(super) levels: Levels,
    /// Result of a key, until the next one.
    pub(super) notice: Option<String>,
    /// A recording that waits for a miss.
    pub(super) next_miss: Option<NextMiss>,
    pub(super) order: Order,
    pub(super) filter: String,
    /// True if keys are letters of the filter.
    pub(super) is_typing: bool,
    /// Quantity shown by the histogram.
    pub(super) shown: Term,
    pub(super) panel: Panel,
    /// The name and partition of the selected task.
    picked: Option<(String, String)>,
    /// Number of lines of the panel above the visible part.
    pub(super) scroll: u16,
    pub(super) is_over: bool,
}

impl Screen {
    pub(super) fn new(arguments: &Top) -> Self {
        Self {
            chosen: Chosen::new(arguments.app.clone()),
            snapshot: None,
            all: Vec::new(),
            message: None,
            levels: Levels::default(),
            notice: None,
            next_miss: None,
            order: arguments.sort,
            filter: String::new(),
            is_typing: false,
            shown: Term::Response,
            panel: Panel::Histogram,
            picked: None,
            scroll: 0,
            is_over: false,
        }
    }

    /// Reads the app's figures. The last ones stay if there are no new ones.
    pub(super) fn refresh_values(&mut self) {
        match self.chosen.snapshot() {
            Ok(snapshot) => self.seen(snapshot),
            Err(why) => self.message = Some(why),
        }
    }

    fn seen(&mut self, snapshot: Snapshot) {
        self.message = None;
        let Some(memory) = self.chosen.memory() else { return };
        self.all = rows(&memory.about, &snapshot, self.chosen.since());
        self.levels.add(memory.found().process, &memory.about, &snapshot);
        self.chosen.since_mut().next(snapshot.clone());
        if let (Some(next_miss), Some(memory)) = (&mut self.next_miss, self.chosen.memory()) {
            next_miss.seen(memory.found().process, &snapshot);
        }
        self.snapshot = Some(snapshot);
    }

    /// Returns the displayed rows, in order, and the index of the selected task.
    pub(super) fn rows(&self) -> (Vec<Row>, usize) {
        let rows = arranged(self.all.clone(), self.order, &self.filter);
        let is_picked = |row: &Row| {
            self.picked
                .as_ref()
                .is_some_and(|(name, partition)| row.name == *name && row.partition == *partition)
        };
        let picked = rows.iter().position(is_picked).unwrap_or(0);
        (rows, picked)
    }

    /// Moves `by` rows down, or scrolls the panel if it is a text.
    fn go(&mut self, by: i32) {
        if !matches!(self.panel, Panel::Histogram | Panel::Levels) {
            self.scroll = self.scroll.saturating_add_signed(by.clamp(-10, 10) as i16);
            return;
        }
        let (rows, at) = self.rows();
        let to = (at as i64 + i64::from(by)).clamp(0, (rows.len() as i64 - 1).max(0)) as usize;
        self.picked = rows.get(to).map(|row| (row.name.clone(), row.partition.clone()));
    }

    fn toggle(&mut self, panel: Panel) {
        self.panel = if self.panel == panel { Panel::Histogram } else { panel };
        self.scroll = 0;
    }

    /// Begins to record until the next miss, or cancels it.
    fn toggle_recording(&mut self) {
        if let Some(recording) = self.next_miss.take() {
            recording.cancel();
            self.notice = Some("the next miss is no longer recorded".into());
            return;
        }
        let (Some(snapshot), Some(memory)) = (&self.snapshot, self.chosen.memory()) else { return };
        match NextMiss::start(memory.found(), snapshot) {
            Ok(recording) => self.next_miss = Some(recording),
            Err(error) => self.notice = Some(format!("the recorder cannot be started: {error}")),
        }
    }

    /// Performs the work between two updates.
    pub(super) fn step(&mut self) {
        let Some(outcome) = self.next_miss.as_mut().and_then(NextMiss::step) else { return };
        self.next_miss = None;
        self.notice = Some(match outcome {
            Outcome::Recorded(file) => {
                let file = Printable(&file.to_string_lossy()).to_string();
                format!("{file} ends with the miss: punctual trace report {file} --from -1s")
            }
            Outcome::Failed(why) => format!("the next miss is not recorded: {}", Printable(&why)),
        });
    }

    pub(super) fn key(&mut self, key: Key) {
        self.notice = None;
        if key == Key::Interrupt {
            self.is_over = true;
            return;
        }
        if self.is_typing {
            match key {
                Key::Enter => self.is_typing = false,
                Key::Esc => {
                    self.is_typing = false;
                    self.filter.clear();
                }
                Key::Backspace => {
                    self.filter.pop();
                }
                Key::Char(letter) => self.filter.push(letter),
                _ => {}
            }
            return;
        }
        match key {
            Key::Char('q') => self.is_over = true,
            Key::Down | Key::Char('j') => self.go(1),
            Key::Up | Key::Char('k') => self.go(-1),
            Key::PageDown => self.go(10),
            Key::PageUp => self.go(-10),
            Key::Char('s') => self.order = self.order.next(),
            Key::Char('/') => self.is_typing = true,
            Key::Char('r') => self.reset(),
            Key::Char('t') => self.toggle_recording(),
            Key::Char('h') => {
                self.shown = match self.shown {
                    Term::Response => Term::Jitter,
                    Term::Jitter => Term::Execution,
                    Term::Execution => Term::Response,
                }
            }
            Key::Char('w') => self.toggle(Panel::Settings),
            Key::Char('l') => self.toggle(Panel::Levels),
            Key::Char('m') => self.toggle(Panel::Traffic),
            Key::Char('?') => self.toggle(Panel::Help),
            Key::Esc => self.toggle(Panel::Histogram),
            Key::Tab => match self.chosen.next() {
                Ok(()) => {
                    self.picked = None;
                    self.refresh_values();
                }
                Err(why) => self.message = Some(why),
            },
            _ => {}
        }
    }

    /// Discards the figures before the last update.
    fn reset(&mut self) {
        if let (Some(snapshot), Some(memory)) = (&self.snapshot, self.chosen.memory()) {
            let (snapshot, about) = (snapshot.clone(), memory.about.clone());
            self.chosen.since_mut().reset(&snapshot);
            self.all = rows(&about, &snapshot, self.chosen.since());
        }
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;

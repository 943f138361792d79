//! An ordered log of events, written by threads that must not wait for each other.

use std::io::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A buffer for the events of one scenario.
#[derive(Debug)]
pub(super) struct Log {
    next: AtomicUsize,
    events: [OnceLock<&'static str>; 32],
    /// Why a thread of the scenario was not started.
    refused: OnceLock<String>,
}

impl Default for Log {
    fn default() -> Self {
        let refused = OnceLock::new();
        Self { next: AtomicUsize::new(0), events: [const { OnceLock::new() }; 32], refused }
    }
}

impl Log {
    /// Adds an event; if the buffer is full the event is lost, which makes the order wrong.
    pub(super) fn event(&self, what: &'static str) {
        if let Some(place) = self.events.get(self.next.fetch_add(1, Ordering::SeqCst)) {
            let _ = place.set(what);
        }
    }

    /// Records that a thread of the scenario was not started, so the order is meaningless.
    pub(super) fn refuse(&self, error: &Error) {
        let _ = self.refused.set(format!("a thread was not started: {error}"));
    }

    /// Returns the events in order.
    pub(super) fn order(&self) -> String {
        let events: Vec<&str> = self.events.iter().map_while(|event| event.get().copied()).collect();
        events.join(", ")
    }

    /// Returns the numbers of those that ended, from events such as `2 ends`.
    pub(super) fn completion(&self) -> String {
        let events = self.events.iter().map_while(|event| event.get());
        let ended: Vec<&str> = events.filter_map(|event| event.strip_suffix(" ends")).collect();
        ended.join("-")
    }
}

/// The observations of several runs of one scenario.
#[derive(Debug, Default)]
pub(super) struct Seen {
    orders: Vec<(String, usize)>,
    /// Why a run was not complete.
    refused: Option<String>,
}

impl Seen {
    /// Adds what a run observed, or why it was not complete.
    pub(super) fn add_run(&mut self, log: &Log, read: impl FnOnce(&Log) -> String) {
        match log.refused.get() {
            Some(why) => self.refused = Some(why.clone()),
            None => self.add(read(log)),
        }
    }

    /// Why a run was not complete.
    pub(super) fn refused(&self) -> Option<&String> {
        self.refused.as_ref()
    }

    pub(super) fn add(&mut self, order: String) {
        match self.orders.iter_mut().find(|(known, _)| *known == order) {
            Some((_, times)) => *times += 1,
            None => self.orders.push((order, 1)),
        }
    }

    /// Returns `true` if every run observed this.
    pub(super) fn is_always(&self, expected: &str) -> bool {
        matches!(self.orders.as_slice(), [(seen, _)] if seen == expected)
    }

    /// Describes the observations, with counts.
    pub(super) fn describe(&self) -> String {
        let all: usize = self.orders.iter().map(|(_, times)| times).sum();
        match self.orders.as_slice() {
            [] => "nothing".into(),
            [(order, _)] => format!("{order} (in each of {all} runs)"),
            several => {
                let each: Vec<String> =
                    several.iter().map(|(order, times)| format!("{order} (in {times} of {all})")).collect();
                each.join("; ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_orders_and_completions() {
        let log = Log::default();
        ["1 begins", "2 ends", "1 ends"].into_iter().for_each(|event| log.event(event));
        assert_eq!(log.order(), "1 begins, 2 ends, 1 ends");
        assert_eq!(log.completion(), "2-1");
    }

    #[test]
    fn ignores_run_with_missing_thread() {
        let (log, mut seen) = (Log::default(), Seen::default());
        log.event("1 ends");
        log.refuse(&Error::from_raw_os_error(libc::EINVAL));
        seen.add_run(&log, Log::completion);
        assert_eq!(seen.describe(), "nothing");
        assert!(seen.refused().is_some_and(|why| why.contains("a thread was not started: Invalid argument")));
    }

    #[test]
    fn counts_observations() {
        let mut seen = Seen::default();
        assert!(!seen.is_always("a"));
        seen.add("a".into());
        seen.add("a".into());
        assert!(seen.is_always("a"));
        assert_eq!(seen.describe(), "a (in each of 2 runs)");
        seen.add("b".into());
        assert!(!seen.is_always("a"));
        assert_eq!(seen.describe(), "a (in 2 of 3); b (in 1 of 3)");
    }
}

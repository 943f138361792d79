//! Messages on standard error.

use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// The interval of messages about continuing failures.
const NOTICE_INTERVAL: Duration = Duration::from_secs(1);

/// Prints a line of the transport `name` on standard error, which may be closed.
pub fn print(name: &str, message: fmt::Arguments<'_>) {
    let line = format!("punctual-{name}: {message}\n");
    // Unlike `eprintln!`, this does not panic.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Prints failures of the same kind at most once per second, with their number.
#[derive(Debug)]
pub struct Notice {
    name: &'static str,
    count: u64,
    printed: Option<Instant>,
}

impl Notice {
    /// Creates a notice of the transport `name`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, count: 0, printed: None }
    }

    /// Counts a failure.
    pub fn add(&mut self, failure: fmt::Arguments<'_>) {
        self.count += 1;
        if self.printed.is_none_or(|printed| printed.elapsed() >= NOTICE_INTERVAL) {
            self.printed = Some(Instant::now());
            print(self.name, format_args!("{failure} ({} such failures so far)", self.count));
        }
    }
}

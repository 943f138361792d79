//! What is said of starting and of settings: to the logger of the program, or to standard error if it has none.
//!
//! A logger is code of the program: it may allocate, block or panic. So these messages come from ordinary threads alone, and
//! nothing but the time they take depends on what becomes of them. What is said after a fault, by a thread with a real-time
//! priority, or as the process ends goes to [`stderr`] and nowhere else.

use std::fmt::Arguments;
use std::panic::{AssertUnwindSafe, catch_unwind};

use log::{Level, LevelFilter, Metadata};

use super::stderr;

const TARGET: &str = "punctual";

/// Says what keeps the app from what it asked for, and not from running.
///
/// Not for real-time threads, and not after a fault.
pub(crate) fn warn(message: Arguments<'_>) {
    let said = catch_unwind(AssertUnwindSafe(|| {
        let has_logger = has_logger();
        if has_logger {
            log::warn!(target: TARGET, "{message}");
        }
        has_logger
    }));
    match said {
        Ok(true) => {}
        Ok(false) => stderr::line(message),
        Err(payload) => {
            // Its destructor is the program's, too.
            std::mem::forget(payload);
            stderr::line(message);
        }
    }
}

/// Whether the program has a logger. `log` itself does not tell: what it has in place of one takes nothing at any level.
fn has_logger() -> bool {
    let takes = |level| log::logger().enabled(&Metadata::builder().level(level).target(TARGET).build());
    log::max_level() != LevelFilter::Off && Level::iter().any(takes)
}

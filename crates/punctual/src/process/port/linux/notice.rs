//! Messages about start-up and settings: to the program's logger, or to standard error if it has
//! none.
//!
//! A logger is user code: it may allocate, block or panic. So only ordinary threads send these
//! messages, and nothing except their duration depends on the outcome. Messages after a fault, from
//! threads with a real-time priority, and at the end of the process are written only to [`stderr`].

use std::fmt::Arguments;
use std::panic::{AssertUnwindSafe, catch_unwind};

use log::{Level, LevelFilter, Metadata};

use super::stderr;

const TARGET: &str = "punctual";

/// Logs a warning: to the program's logger with the target `punctual`, or to standard error if it
/// has none.
///
/// Never panics, even if the logger does. Blocks as long as the logger or the reader of standard
/// error does.
///
/// Real-time safety: may allocate and block. For ordinary threads, and not after a fault.
pub fn warn(message: Arguments<'_>) {
    let printed = catch_unwind(AssertUnwindSafe(|| {
        let has_logger = has_logger();
        if has_logger {
            log::warn!(target: TARGET, "{message}");
        }
        has_logger
    }));
    match printed {
        Ok(true) => {}
        Ok(false) => stderr::line(message),
        Err(payload) => {
            // Its destructor is user code as well.
            std::mem::forget(payload);
            stderr::line(message);
        }
    }
}

/// Returns whether the program has a logger. `log` itself does not report it: its default logger
/// disables every level.
pub(crate) fn has_logger() -> bool {
    let takes = |level| log::logger().enabled(&Metadata::builder().level(level).target(TARGET).build());
    log::max_level() != LevelFilter::Off && Level::iter().any(takes)
}

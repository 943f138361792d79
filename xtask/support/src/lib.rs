//! Code shared by the xtask commands and the lab.
//!
//! [`cargo`] builds, [`process`] runs the built programs, [`golden`] compares the behavior of an
//! example with its expected output, [`browser`] opens pages, [`files`] reads sources, and
//! [`scratch`] manages temporary files.

pub mod browser;
pub mod cargo;
pub mod files;
pub mod golden;
pub mod process;
pub mod schema;
pub mod scratch;

use std::error::Error;

/// The result of a command; the error is a message for the user of the command.
pub type Result<T = (), E = Box<dyn Error>> = std::result::Result<T, E>;

/// "1 CPU", "2 CPUs".
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

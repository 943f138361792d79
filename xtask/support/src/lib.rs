//! What the chores and the lab share.
//!
//! [`cargo`] builds, [`process`] runs what was built, [`golden`] compares what an example does with its expected output,
//! and [`scratch`] holds temporary files.

pub mod cargo;
pub mod golden;
pub mod process;
pub mod scratch;

use std::error::Error;

/// What a chore returns; the error is a message for the person who typed the command.
pub type Result<T = (), E = Box<dyn Error>> = std::result::Result<T, E>;

/// "1 CPU", "2 CPUs".
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

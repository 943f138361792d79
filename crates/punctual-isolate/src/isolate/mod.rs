//! Isolation of CPUs from the rest of the system, and its end.
//!
//! A [`Plan`] contains every write before it is made. [`take`] makes them, each recorded in a
//! journal before; [`Store::undo`] returns the CPUs, and so does the next command if the process
//! that isolated them was killed.

mod account;
pub mod boot;
mod plan;

pub use self::account::{Account, Row};
pub use self::plan::{Plan, Refusal, Step};

use crate::change::{Journal, JournalError, Settings, Store};

/// The name of the journal. Only one isolation exists at a time: two would change the same masks.
pub const JOURNAL: &str = "isolate";

/// Isolates the CPUs of a plan. Returns the journal and, one per line, the optional settings that
/// the kernel refused. With `keep` the CPUs stay isolated when this process has ended; otherwise
/// any process can return them once the journal is dropped.
///
/// # Errors
/// Another process has isolated CPUs already, or the kernel refuses a required setting: then
/// everything is undone.
pub fn take(
    plan: &Plan,
    store: &Store,
    keep: bool,
    settings: &mut dyn Settings,
) -> Result<(Journal, Vec<String>), JournalError> {
    let purpose = format!("the isolation of {}", plan.cpus.named());
    let mut journal = store.begin(JOURNAL, &purpose, keep, settings)?;
    let mut refused = Vec::new();
    for step in &plan.steps {
        match journal.apply(&step.change, settings) {
            Ok(()) => {}
            Err(JournalError::Refused { setting, new, error }) if !step.is_required => {
                refused.push(format!("{setting} was not set to `{new}`: {error}"));
            }
            Err(error) => {
                store.undo(JOURNAL, settings)?;
                return Err(error);
            }
        }
    }
    Ok((journal, refused))
}

#[cfg(test)]
mod tests;

//! Reversible changes of settings, robust against the death of the process that makes them.
//!
//! Before each change, a [`Journal`] records the setting, its old value and its new one. Undoing
//! goes through it backwards and restores every setting that still has the value it was given;
//! settings that others have changed since are left alone. Undoing can be interrupted at any time,
//! and repeated.

mod journal;
mod settings;

pub use self::journal::{Held, Journal, JournalError, Left, Owner, Store, Undone};
pub use self::settings::{Live, Setting, Settings};

/// A setting and its new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The setting.
    pub setting: Setting,
    /// The new value.
    pub new: String,
}

impl Change {
    /// Creates the change of a kernel file.
    #[must_use]
    pub fn file(path: &str, new: &str) -> Self {
        Self { setting: Setting::File(path.to_owned()), new: new.to_owned() }
    }
}

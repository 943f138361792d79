//! Settings that are changed so that they can be changed back, whatever happens to the process that changed them.
//!
//! Before each change, a [`Journal`] has what is changed, from what and to what. Undoing goes through it backwards and sets
//! back whatever still has the value that it was given; what somebody has changed since is left as it is. Undoing can be
//! interrupted at any time, and done again.

mod journal;
mod settings;

pub use self::journal::{Held, Journal, JournalError, Left, Owner, Store, Undone};
pub use self::settings::{Live, Setting, Settings};

/// A setting and what it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What is set.
    pub setting: Setting,
    /// To what.
    pub new: String,
}

impl Change {
    /// The change of a file of the kernel's.
    #[must_use]
    pub fn file(path: &str, new: &str) -> Self {
        Self { setting: Setting::File(path.to_owned()), new: new.to_owned() }
    }
}

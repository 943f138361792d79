//! Notes of tasks in virtual time: the time in milliseconds, and a text.

use std::sync::{Arc, Mutex, PoisonError};

type Entry = (u64, &'static str);

/// A log that tasks write to and the test reads; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Entry>>>);

impl Log {
    /// Notes `what` with the app's time, which has to be whole milliseconds.
    pub(crate) fn note(&self, what: &'static str) {
        let now = punctual::now().as_ticks();
        assert_eq!(now % 1_000_000, 0, "these tests use whole milliseconds");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((now / 1_000_000, what));
    }

    /// Returns and clears all notes.
    pub(crate) fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

//! Calls of user code, which may panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the result of `f`; `None` if it panics.
///
/// The data that `f` uses must be usable after a panic, or not be used again.
pub(crate) fn contained<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) => {
            // Its destructor is user code as well.
            std::mem::forget(payload);
            None
        }
    }
}

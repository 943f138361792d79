//! Calls of the program's own functions, which may panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `f` returns; `None` if it panics.
///
/// What `f` works on has to be fit for use after a panic, or not be used again.
pub(crate) fn contained<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) => {
            // Its destructor is the program's as well.
            std::mem::forget(payload);
            None
        }
    }
}

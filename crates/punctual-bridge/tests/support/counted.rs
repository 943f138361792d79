//! Counts a thread's calls of the allocator while it requests that.

#[path = "../../../punctual/tests/support/allocator.rs"]
mod allocator;

use std::cell::Cell;

use allocator::Telling;

thread_local! {
    /// `true` if the calls of this thread are counted.
    static COUNTS: Cell<bool> = const { Cell::new(false) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    if COUNTS.get() {
        CALLS.set(CALLS.get() + 1);
    }
}

#[global_allocator]
static ALLOCATOR: Telling = Telling(count);

/// Runs `f` with counting.
pub(crate) fn counted<R>(f: impl FnOnce() -> R) -> R {
    COUNTS.set(true);
    let result = f();
    COUNTS.set(false);
    result
}

/// Returns the number of counted calls of this thread.
pub(crate) fn calls() -> u64 {
    CALLS.get()
}

//! Counts what a thread asks of the allocator while it wants to be counted.

#[path = "../../../punctual/tests/support/allocator.rs"]
mod allocator;

use std::cell::Cell;

use allocator::Telling;

thread_local! {
    /// Whether the calling thread wants to be counted.
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

/// Runs `f`, counted.
pub(crate) fn counted<R>(f: impl FnOnce() -> R) -> R {
    COUNTS.set(true);
    let result = f();
    COUNTS.set(false);
    result
}

/// How many calls the calling thread made while it was counted.
pub(crate) fn calls() -> u64 {
    CALLS.get()
}

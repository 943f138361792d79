//! Foreign threads, which use the app.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::job::{Job, Role};

thread_local! {
    static HERE: Cell<bool> = const { Cell::new(false) };
}

/// Returns true on a foreign thread.
pub(crate) fn is_here() -> bool {
    HERE.get()
}

/// Makes the calling thread a foreign one, as the main thread is between runs.
pub(crate) fn enter() {
    HERE.set(true);
}

/// Makes the calling thread a thread of the app.
pub(crate) fn leave() {
    HERE.set(false);
}

/// Uses the app until `over`.
pub(crate) fn live(over: &AtomicBool) {
    enter();
    let mut job = Job::of(Role::Foreign);
    while !over.load(Ordering::Relaxed) {
        job.point();
        match job.below(4) {
            0 => thread::sleep(Duration::from_micros(job.below(400))),
            1 => thread::yield_now(),
            _ => {}
        }
    }
}

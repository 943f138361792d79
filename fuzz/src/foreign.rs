//! Threads that are none of the app's and use it all the same.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::job::{Job, Role};

thread_local! {
    static HERE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is one of them.
pub(crate) fn is_here() -> bool {
    HERE.get()
}

/// Makes the calling thread one of them, which the first one is between runs.
pub(crate) fn enter() {
    HERE.set(true);
}

/// Makes the calling thread one of an app's.
pub(crate) fn leave() {
    HERE.set(false);
}

/// Goes on until `over`.
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

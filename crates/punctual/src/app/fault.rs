//! Faults: panics of the user's code, wherever it runs, and how the app comes to stop for them.
//!
//! The order matters. First come atomic operations that make the app stop, so that nothing that happens afterwards can keep
//! it from stopping. Then the fault is recorded, without allocating: the payload is kept as it is. What is said of it is left to
//! an ordinary thread.
//!
//! Payloads of panics, messages, resources, futures and wakers are the user's, and dropping one may panic again. So whatever
//! drops one outside of a job does it in here.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::app::runtime::Runtime;
use crate::app::stop::{Culprit, Fault, panic_text};
use crate::port::linux::stderr;

/// Ends the app because of a panic with this payload.
#[cold]
pub(crate) fn panicked(runtime: &'static Runtime, culprit: Culprit, payload: Box<dyn Any + Send>) {
    runtime.abort();
    let text = panic_text(&*payload);
    match culprit {
        Culprit::Handler(task) => {
            stderr::defer(format_args!("punctual: task `{task}` panicked: {text}; the app stops\n"));
        }
        _ => stderr::defer(format_args!("punctual: {culprit} panicked: {text}; the app stops\n")),
    }
    runtime.record(Fault { culprit, payload });
    if !runtime.is_watched() {
        stderr::write_deferred();
    }
}

/// Runs code of the user's that is no job. If it panics, the app stops for it.
pub(crate) fn contained<R>(runtime: &'static Runtime, culprit: Culprit, f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) => {
            panicked(runtime, culprit, payload);
            None
        }
    }
}

thread_local! {
    /// Whether a panic has left a critical section on this thread, in the job at hand.
    static LEFT_SECTION: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is leaving `idle`, which is no fault.
    static LEAVES_IDLE: Cell<bool> = const { Cell::new(false) };
}

/// A panic is about to leave a critical section, and the level is held still.
#[cold]
pub(crate) fn leaves_section(runtime: &'static Runtime) {
    if !LEAVES_IDLE.get() {
        LEFT_SECTION.set(true);
        runtime.abort();
    }
}

/// At the end of a job, of `idle` or of the hook: ends the app if that panicked, or if it caught a panic that had left a critical
/// section.
#[cold]
pub(crate) fn ended(runtime: &'static Runtime, culprit: Culprit, result: std::thread::Result<()>) {
    let left_section = LEFT_SECTION.take();
    match result {
        Err(payload) => panicked(runtime, culprit, payload),
        Ok(()) if left_section => {
            panicked(
                runtime,
                culprit,
                Box::new("a panic has left a critical section and was caught outside of it"),
            );
        }
        Ok(()) => {}
    }
}

/// Leaves `idle` because the app stops.
pub(crate) fn leave_idle() -> ! {
    LEAVES_IDLE.set(true);
    resume_unwind(Box::new(LeftIdle))
}

/// [`ended`] for `idle`, which is no fault if it was left by [`leave_idle`].
pub(crate) fn idle_ended(runtime: &'static Runtime, result: std::thread::Result<()>) {
    LEAVES_IDLE.set(false);
    let result = result.or_else(|payload| if payload.is::<LeftIdle>() { Ok(()) } else { Err(payload) });
    ended(runtime, Culprit::Handler("idle"), result);
}

/// The payload with which `idle` is left.
struct LeftIdle;

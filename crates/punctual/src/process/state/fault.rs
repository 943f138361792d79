//! Faults: panics of user code, and how they stop the app.
//!
//! The order matters. First, atomic operations stop the app, so that no later step can prevent it.
//! Then the fault is recorded without allocating: the payload is stored as it is. An ordinary
//! thread prints the message.
//!
//! Panic payloads, messages, resources, futures and wakers are user types, and dropping one may
//! panic again. So outside of jobs they are dropped by [`contained`].

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::port::linux::stderr;
use crate::state::forked;
use crate::state::runtime::Runtime;
use crate::stop::Culprit;

/// Stops the app because of a panic with this payload.
#[cold]
pub(crate) fn panicked(runtime: &'static Runtime, culprit: Culprit, payload: Box<dyn Any + Send>) {
    report(runtime, culprit, payload, None);
}

/// [`panicked`]; `stopped` is the order of the fault if the app has been stopped because of it.
#[cold]
fn report(
    runtime: &'static Runtime,
    culprit: Culprit,
    payload: Box<dyn Any + Send>,
    stopped: Option<FaultOrder>,
) {
    let order = stopped.unwrap_or_else(|| runtime.abort());
    let text = panic_text(&*payload);
    match culprit {
        Culprit::Handler(task) => {
            stderr::defer(format_args!("punctual: task `{task}` panicked: {text}; the app stops\n"));
        }
        _ => stderr::defer(format_args!("punctual: {culprit} panicked: {text}; the app stops\n")),
    }
    runtime.record(Fault { order, culprit, payload });
    if !runtime.is_watched() {
        stderr::write_deferred();
    }
}

/// Runs user code that is not a job. If it panics, the app stops.
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
    /// The order of the fault if a panic has unwound out of a critical section of the current job
    /// on this thread.
    static UNWOUND_SECTION: Cell<Option<FaultOrder>> = const { Cell::new(None) };
    /// True if this thread unwinds out of `idle` because the app is stopping, which is not a fault,
    /// and has not panicked since.
    static LEAVING_IDLE: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether a panic has left a critical section on this thread, and returns the previous value,
/// for a thread that joins or leaves an app.
pub(crate) fn replace_unwound_section(unwound: Option<FaultOrder>) -> Option<FaultOrder> {
    UNWOUND_SECTION.replace(unwound)
}

/// Called when a panic is about to unwind out of a critical section, whose level is still occupied.
#[cold]
pub(crate) fn section_unwinds(runtime: &'static Runtime) {
    if !LEAVING_IDLE.get() {
        let order = runtime.abort();
        // The panic of an inner section leaves the outer ones, too.
        UNWOUND_SECTION.set(UNWOUND_SECTION.get().or(Some(order)));
    }
}

/// Called at the end of a job, of `idle`, or of code that drops a future: stops the app if it
/// panicked, or caught a panic that had unwound out of a critical section.
#[cold]
pub(crate) fn ended(runtime: &'static Runtime, culprit: Culprit, result: std::thread::Result<()>) {
    let left_section = UNWOUND_SECTION.take();
    match result {
        Err(payload) => report(runtime, culprit, payload, left_section),
        Ok(()) if left_section.is_some() => {
            report(
                runtime,
                culprit,
                Box::new("a panic has left a critical section and was caught outside of it"),
                left_section,
            );
        }
        Ok(()) => {}
    }
    // A child made by `fork` has a job flag set. The job that forked is still the one that runs.
    forked::check(runtime);
}

/// [`ended`] for a job of the task `name`.
// Takes the name, from which the callers would have to make a culprit in their frames.
#[cold]
#[inline(never)]
pub(crate) fn job_ended(runtime: &'static Runtime, name: &'static str, result: std::thread::Result<()>) {
    ended(runtime, Culprit::Handler(name), result);
}

/// Unwinds out of `idle` because the app stops.
pub(crate) fn leave_idle() -> ! {
    LEAVING_IDLE.set(true);
    resume_unwind(Box::new(IdleExit))
}

/// Records that the next unwinding is or may be a panic: the thread panics, or has caught the one
/// that left `idle`.
pub(crate) fn is_not_leaving_idle() {
    LEAVING_IDLE.set(false);
}

/// [`ended`] for `idle`; unwinding by [`leave_idle`] is not a fault.
pub(crate) fn idle_ended(runtime: &'static Runtime, result: std::thread::Result<()>) {
    let result = result.or_else(|payload| if payload.is::<IdleExit>() { Ok(()) } else { Err(payload) });
    ended(runtime, Culprit::Handler("idle"), result);
}

/// Payload of [`leave_idle`]; exists while it unwinds.
struct IdleExit;

impl Drop for IdleExit {
    fn drop(&mut self) {
        is_not_leaving_idle();
    }
}

/// The position of a fault among those of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultOrder {
    /// The first one has stopped the app.
    First,
    /// The app was stopping because of a fault, of which this one may be a consequence.
    Later,
}

/// A panic that is a fault of the app.
pub(crate) struct Fault {
    pub(crate) order: FaultOrder,
    pub(crate) culprit: Culprit,
    pub(crate) payload: Box<dyn Any + Send>,
}

impl Fault {
    /// Returns the panic message.
    pub(crate) fn text(&self) -> &str {
        panic_text(&*self.payload)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault").field("culprit", &self.culprit).finish_non_exhaustive()
    }
}

/// Drops the fault's payload at the end of a run.
impl Drop for Fault {
    fn drop(&mut self) {
        discard(std::mem::replace(&mut self.payload, Box::new(())));
    }
}

/// Drops the payload of a panic, or leaks the payload if dropping panics too.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // The next payload would be no better.
        std::mem::forget(another);
    }
}

/// Returns a panic's message.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(the panic carries no text)")
}

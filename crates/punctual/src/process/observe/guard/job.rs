//! The watched job of a thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_sync::futex::selector::{self, Watch};

use super::findings::Findings;
use crate::cells::Slot;
use crate::port::linux::blocking;
use crate::port::linux::dispatch::Call;
use crate::state::runtime::Runtime;
use crate::stop::StopReason;

/// A watched job.
struct Job<'a> {
    findings: &'a Findings,
    runtime: &'static Runtime,
    stop: &'static StopReason,
}

thread_local! {
    // Constant and without a destructor: the allocator and a signal handler use it.
    static JOB: Cell<*const Job<'static>> = const { Cell::new(std::ptr::null()) };
}

/// Runs a job of the task to which `slot` belongs: the executor's operations, with the user's code
/// in [`users_code`]. The job is watched if the guard is on; `stop` is the reason to use if it
/// stops the app.
#[inline]
pub(crate) fn job<R>(
    slot: &Slot,
    runtime: &'static Runtime,
    stop: &'static StopReason,
    run: impl FnOnce() -> R,
) -> R {
    let Some(findings) = super::findings(slot) else { return run() };
    let job = Job { findings, runtime, stop };
    // Below may be user code of another job, which has spawned this one.
    let _current = Current { before: JOB.replace((&raw const job).cast()) };
    selector::unwatched(run)
}

/// Restores the thread's previous job when dropped.
struct Current {
    before: *const Job<'static>,
}

impl Drop for Current {
    fn drop(&mut self) {
        JOB.set(self.before);
    }
}

/// Runs the user's function of a job. Stacks are cut at this function.
#[inline(never)]
pub(crate) fn users_code<R>(f: impl FnOnce() -> R) -> R {
    match JOB.get().is_null() {
        true => f(),
        false => {
            let _watch = Watch::set(true);
            f()
        }
    }
}

/// True if [`found`] was called outside of a job.
static TRIED: AtomicBool = AtomicBool::new(false);

/// Returns whether the guard is notified of allocations.
pub(super) fn observes_allocations() -> bool {
    let before = JOB.replace(std::ptr::null());
    TRIED.store(false, Ordering::Relaxed);
    let watch = Watch::set(true);
    drop(std::hint::black_box(Box::new(1_u8)));
    drop(watch);
    JOB.set(before);
    TRIED.load(Ordering::Relaxed)
}

/// Called when the job of this thread makes a system call. Async-signal-safe.
pub(super) fn entered_the_kernel(call: &Call) {
    if let Some(name) = blocking::name(call) {
        found(name, Some(call.place));
    }
}

/// Records a forbidden operation of this thread's job, at `place` if known. Neither allocates nor
/// locks.
#[cold]
#[inline(never)]
pub(super) fn found(what: &'static str, place: Option<usize>) {
    // The app is stopping, and messages and payloads of panics are allocated.
    if std::thread::panicking() {
        return;
    }
    let job = JOB.get();
    if job.is_null() {
        return TRIED.store(true, Ordering::Relaxed);
    }
    // SAFETY: it points to a job further down on this thread's stack, which replaces it before it
    // ends.
    let job = unsafe { &*job };
    // SAFETY: this thread runs a job of the task, so it occupies the task's level.
    unsafe { job.findings.add(what, place) };
    if job.findings.stops() {
        job.runtime.stop(job.stop);
    }
}

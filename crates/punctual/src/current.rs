//! Which app, and which of its threads, the calling code runs on; and what a task can ask of its app.

use std::cell::Cell;

use punctual_core::{Duration, Instant, Port, Worker};

use crate::linux;
use crate::report::Outcome;
use crate::runtime::{self, Runtime};
use crate::virtual_time;

thread_local! {
    static CURRENT: Cell<Option<(&'static Runtime, &'static Worker)>> = const { Cell::new(None) };
}

/// Makes the calling thread a thread of `runtime` until dropped.
#[derive(Debug)]
pub(crate) struct Member;

impl Member {
    pub(crate) fn join(runtime: &'static Runtime, worker: &'static Worker) -> Self {
        CURRENT.set(Some((runtime, worker)));
        Self
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// The worker that the calling thread is in `runtime`, if it is one of its threads.
#[inline]
pub(crate) fn worker_of(runtime: &'static Runtime) -> Option<&'static Worker> {
    CURRENT.get().filter(|(r, _)| std::ptr::eq(*r, runtime)).map(|(_, worker)| worker)
}

/// The time now: `CLOCK_MONOTONIC` on Linux, virtual time in an app that runs in it.
///
/// Real-time safety: does not allocate or block; enters the kernel only where the machine's clock source
/// cannot be read from user space.
#[inline]
pub fn now() -> Instant {
    match CURRENT.get() {
        Some((runtime, _)) => runtime.partition.port().now(),
        None => linux::clock::now(),
    }
}

/// Stops the app of the calling thread (on any other thread: every app of this process).
///
/// Nothing more is released and spawns give their arguments back; jobs already released are finished, the
/// `#[shutdown]` hook runs, every thread is joined, and the app's `run` returns.
///
/// Real-time safety: enters the kernel to wake the threads; from a thread of no app it takes a lock.
pub fn shutdown() {
    match CURRENT.get() {
        Some((runtime, _)) => runtime.stop(Outcome::Shutdown),
        None => runtime::each_running(|runtime| runtime.stop(Outcome::Shutdown)),
    }
}

/// Consumes execution time: virtual time passes, or this thread's CPU time is burnt.
///
/// In virtual time, jobs of higher levels released meanwhile preempt the calling job and their execution
/// time is not counted, as on a CPU. For models of a load, tests and demonstrations.
pub fn spend(duration: Duration) {
    match CURRENT.get() {
        Some((runtime, worker)) if runtime.partition.port().is_virtual() => {
            virtual_time::spend(runtime, worker, duration);
        }
        _ => {
            let end = linux::clock::thread_cpu_time().saturating_add(duration.as_ticks());
            while linux::clock::thread_cpu_time() < end {
                std::hint::spin_loop();
            }
        }
    }
}

/// Waits in `idle` until something may have happened; does not return once the app is stopping.
///
/// The counterpart of `wfi` on a microcontroller: for the loop of an `idle` that never returns. Returns after 10 ms
/// at the latest, since jobs may have run, on other threads, in the meantime. In virtual time it moves the clock to the next event. When the app stops it leaves `idle` by unwinding, running
/// destructors on the way, and without a panic message.
///
/// # Panics
/// If called anywhere but in `idle`.
pub fn wait_for_event() {
    let current = CURRENT.get().filter(|(_, worker)| worker.base() == 0 && worker.running() == 0);
    let (runtime, worker) = current.expect("wait_for_event is for idle only");
    if runtime.partition.port().is_virtual() {
        virtual_time::step(runtime, worker);
    } else if !runtime.partition.is_stopping() {
        // Jobs preempt idle by themselves; the tick only lets loops that poll something see it.
        let tick = runtime.partition.port().now() + Duration::from_millis(10);
        runtime.partition.port().wait(worker, Some(tick));
    }
    if runtime.partition.is_stopping() {
        std::panic::resume_unwind(Box::new(LeaveIdle));
    }
}

/// The payload with which [`wait_for_event`] leaves `idle`.
pub(crate) struct LeaveIdle;

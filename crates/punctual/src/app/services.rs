//! What a task can ask of its app: the time, to stop, to consume execution time, and in `idle` to wait.

use punctual_core::{CurrentWorker, Duration, Instant, IntoDuration, Port};

use crate::app::partition::Part;
use crate::app::stop::Cause;
use crate::app::{current, fault, runtime, virtual_time};
use crate::port::linux;

/// The time now: `CLOCK_MONOTONIC` on Linux, virtual time in an app that runs in it.
///
/// Real-time safety: does not allocate or block; enters the kernel only where the machine's clock source
/// cannot be read from user space.
#[inline]
pub fn now() -> Instant {
    match current::get() {
        Some((part, _)) => part.partition.port().now(),
        None => linux::clock::now(),
    }
}

/// Stops the app of the calling thread (on any other thread: every app of this process).
///
/// Nothing more is released; jobs already released are finished, the `#[shutdown]` hook runs, every thread is joined, and
/// the app's `run` returns. What a thread of the app spawns meanwhile counts among the jobs that were not run: see
/// [`SpawnError`](crate::SpawnError).
///
/// Real-time safety: enters the kernel to wake the threads; from a thread of no app it takes a lock.
pub fn shutdown() {
    match current::get() {
        Some((part, _)) => part.runtime.stop(&Cause::Shutdown),
        None => runtime::each_running(|runtime| runtime.stop(&Cause::Shutdown)),
    }
}

/// Consumes execution time: virtual time passes, but not in `init`, or this thread's CPU time is burnt.
///
/// In virtual time, jobs of higher levels released meanwhile preempt the calling job and their execution
/// time is not counted, as on a CPU. What would take longer than virtual time lasts, until 2⁶⁴ − 2 ns, takes until then.
/// For models of a load, tests and demonstrations.
pub fn spend(duration: impl IntoDuration) {
    let duration = duration.into_duration();
    match current::get() {
        Some((part, worker)) if part.partition.port().is_virtual() => {
            virtual_time::spend(part, worker, duration);
        }
        Some((part, _)) if !part.partition.port().may_sleep() => {
            let now = || part.partition.port().now().as_ticks();
            let end = now().saturating_add(duration.as_ticks());
            while now() < end {
                std::hint::spin_loop();
            }
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
/// at the latest, since jobs may have run, on other threads, in the meantime. In virtual time it moves the clock to the
/// next event, in whichever partition. When the app stops it leaves `idle` by unwinding, running destructors on the way,
/// and without a panic message.
///
/// # Panics
/// If called anywhere but in `idle`.
pub fn wait_for_event() {
    let idles = |&(part, worker): &(&'static Part, CurrentWorker)| {
        // The thread of `init` is the same one.
        let initialised = match part.partition.port().is_virtual() {
            true => part.runtime.turns.is_open(),
            false => part.runtime.has_started(),
        };
        worker.base() == 0 && worker.running() == 0 && initialised
    };
    let current = current::get().filter(idles);
    let (part, worker) = current.expect("wait_for_event is for idle only");
    if part.partition.port().is_virtual() {
        virtual_time::wait_for_event(part, worker);
    } else if !part.partition.is_stopping() {
        // Jobs preempt idle by themselves; the tick only lets loops that poll something see it.
        let tick = part.partition.port().now() + Duration::from_millis(10);
        part.partition.port().wait(&worker, Some(tick));
    }
    if part.partition.is_stopping() {
        fault::leave_idle();
    }
}

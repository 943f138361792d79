//! Services for tasks: the time, stopping, consuming execution time, and waiting in `idle`.

use punctual_core::{CurrentWorker, Duration, Instant, IntoDuration, Port};

use crate::app::partition::PartitionState;
use crate::app::stop::StopReason;
use crate::app::{current, fault, runtime, virtual_time};
use crate::port::linux;

/// Returns the current time: `CLOCK_MONOTONIC` on Linux, virtual time in an app that runs in it.
///
/// Real-time safety: does not allocate or block; enters the kernel only if the machine's clock
/// source cannot be read from user space.
#[inline]
pub fn now() -> Instant {
    match current::get() {
        Some((partition, _)) => partition.core.port().now(),
        None => linux::clock::now(),
    }
}

/// Stops the app of the calling thread (on any other thread: every app of this process).
///
/// No more jobs are released; those already released are finished, the `#[shutdown]` hook runs, all
/// threads are joined, and the app's `run` returns. Jobs that a thread of the app spawns after this
/// are counted as dropped: see [`SpawnError`](crate::SpawnError).
///
/// Real-time safety: enters the kernel to wake the threads; on a foreign thread it takes a lock.
pub fn shutdown() {
    match current::get() {
        Some((partition, _)) => partition.runtime.stop(&StopReason::Shutdown),
        None => runtime::each_running(|runtime| runtime.stop(&StopReason::Shutdown)),
    }
}

/// Consumes execution time: of virtual time (except in `init`), or of the CPU.
///
/// In virtual time, jobs of higher levels released during this time preempt the calling job, and
/// their execution time does not count, as on a CPU; one released at the very end runs after the
/// calling job, if that ends there. Ends with virtual time, at 2⁶⁴ − 2 ns. For load models, tests
/// and demonstrations.
pub fn spend(duration: impl IntoDuration) {
    let duration = duration.into_duration();
    match current::get() {
        Some((partition, worker)) if partition.core.port().is_virtual() => {
            virtual_time::spend(partition, worker, duration);
        }
        Some((partition, _)) if !partition.core.port().may_sleep() => {
            let now = || partition.core.port().now().as_ticks();
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

/// Waits in `idle` for the next event; does not return once the app is stopping.
///
/// The counterpart of `wfi` on a microcontroller: for the loop of an `idle` that never returns.
/// Returns after 10 ms at the latest, because jobs may have run on other threads. In virtual time
/// it advances the clock to the next event of any partition. When the app stops, it unwinds out of
/// `idle`, which runs destructors and prints no panic message.
///
/// # Panics
/// Panics if called outside `idle`.
pub fn wait_for_event() {
    let idles = |&(partition, worker): &(&'static PartitionState, CurrentWorker)| {
        // It is also the thread of `init`.
        let initialised = match partition.core.port().is_virtual() {
            true => partition.runtime.turns.is_open(),
            false => partition.runtime.has_started(),
        };
        worker.base() == 0 && worker.running() == 0 && initialised
    };
    let current = current::get().filter(idles);
    let (partition, worker) = current.expect("wait_for_event is for idle only");
    if partition.core.port().is_virtual() {
        virtual_time::wait_for_event(partition, worker);
    } else if !partition.core.is_stopping() {
        // Jobs preempt `idle` by themselves; the tick is for loops that poll.
        let tick = partition.core.port().now() + Duration::from_millis(10);
        partition.core.port().wait(&worker, Some(tick));
    }
    if partition.core.is_stopping() {
        fault::leave_idle();
    }
}

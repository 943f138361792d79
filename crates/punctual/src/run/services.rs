//! Services for tasks: the time, stopping, consuming execution time, and waiting in `idle`.

use punctual_core::{CurrentWorker, Duration, Instant, IntoDuration};

use crate::state::partition::PartitionState;
use crate::state::{Host, Platform};
use crate::stop::StopReason;

/// The services as each platform provides them.
pub(crate) trait Services: Platform {
    /// Returns the current time.
    fn now() -> Instant;

    /// Stops every app, for code that belongs to none.
    fn stop_all(reason: &'static StopReason);

    /// Consumes execution time.
    fn spend_here(duration: Duration);

    /// Returns whether the code that runs as `me` is `idle`, and not `init`.
    fn is_idle(partition: &'static PartitionState, me: CurrentWorker) -> bool;

    /// Waits in `idle`, whose worker is `me`.
    fn wait_in_idle(partition: &'static PartitionState, me: CurrentWorker);
}

/// Returns the current time: `CLOCK_MONOTONIC` on Linux, the board's counter on a board, virtual
/// time in an app that runs in it.
///
/// Real-time safety: does not allocate or block; enters the kernel only if the machine's clock
/// source cannot be read from user space.
#[inline]
pub fn now() -> Instant {
    Host::now()
}

/// Stops the app of the calling thread or core (on any other thread: every app of this process).
///
/// No more jobs are released; those already released are finished, the `#[shutdown]` hook runs, all
/// threads are joined, and the app's `run` returns. Jobs that a thread of the app spawns after this
/// are counted as dropped: see [`SpawnError`](crate::SpawnError).
///
/// Real-time safety: enters the kernel to wake the threads; on a foreign thread it takes a lock.
pub fn shutdown() {
    match Host::here() {
        Some((partition, _)) => partition.runtime.stop(&StopReason::Shutdown),
        None => Host::stop_all(&StopReason::Shutdown),
    }
}

/// Consumes execution time: of virtual time (except in `init`), or of the CPU.
///
/// In virtual time, jobs of higher levels released during this time preempt the calling job, and
/// their execution time does not count, as on a CPU; one released at the very end runs after the
/// calling job, if that ends there. Ends with virtual time, at 2⁶⁴ − 2 ns. On a board, the time of
/// preemption is excluded if jobs are measured. For load models, tests and demonstrations.
pub fn spend(duration: impl IntoDuration) {
    Host::spend_here(duration.into_duration());
}

/// Waits in `idle` for the next event; does not return once the app is stopping.
///
/// The counterpart of `wfi` on a microcontroller: for the loop of an `idle` that never returns. On
/// a board, returns after the next interrupt; in a process after 10 ms at the latest, because jobs
/// may have run on other threads. In virtual time it advances the clock to the next event of any
/// partition. When the app stops, it unwinds out of `idle`, which runs destructors and prints no
/// panic message; on a board `idle` is abandoned, the hook runs, and the program ends.
///
/// # Panics
/// Panics if called outside `idle`.
pub fn wait_for_event() {
    let here = Host::here().filter(|&(partition, me)| Host::is_idle(partition, me));
    let (partition, me) = here.expect("wait_for_event is for idle only");
    Host::wait_in_idle(partition, me);
}

//! Services for tasks: the time, stopping, consuming execution time, and waiting in `idle`.

use punctual_core::{Instant, IntoDuration};

use super::stop::StopReason;
use super::{current, run, virtual_time};
use crate::port::board::clock;

/// Returns the current time of the board's counter.
///
/// Real-time safety: reads a register and multiplies.
#[inline]
pub fn now() -> Instant {
    Instant::from_ticks(clock::now())
}

/// Stops the app that runs on the core, if any.
///
/// No more jobs are released; those already released are finished, the `#[shutdown]` hook runs, and
/// the app's `run` returns. Jobs spawned after this are counted as dropped: see
/// [`SpawnError`](crate::SpawnError).
pub fn shutdown() {
    if let Some(partition) = current::partition() {
        partition.runtime.stop(&StopReason::Shutdown);
    }
}

/// Consumes execution time of the core, excluding preemption of the calling job if jobs are
/// measured.
///
/// For load models, tests and demonstrations. In virtual time the clock advances by `duration`, and
/// jobs released in that time above the calling job preempt it; in `init` no time passes.
pub fn spend(duration: impl IntoDuration) {
    if clock::is_virtual() {
        if let Some((partition, me)) = current::get() {
            virtual_time::spend(partition, me, duration.into_duration());
        }
        return;
    }
    let executed = || current::partition().map_or(0, |partition| partition.executed());
    let (begin, before) = (clock::now(), executed());
    let duration = duration.into_duration().as_ticks();
    while clock::now().saturating_sub(begin).saturating_sub(executed() - before) < duration {
        core::hint::spin_loop();
    }
}

/// Waits in `idle` for the next interrupt; does not return once the app is stopping.
///
/// For the loop of an `idle` that never returns. When the app stops, `idle` is abandoned: the hook
/// runs, and the program ends.
///
/// # Panics
/// Panics if called outside `idle`.
pub fn wait_for_event() {
    let idle = current::get().filter(|(_, me)| me.level() == 0 && run::has_begun());
    let (partition, _) = idle.expect("wait_for_event is for idle only");
    run::wait(partition);
    run::leave_idle(partition);
}

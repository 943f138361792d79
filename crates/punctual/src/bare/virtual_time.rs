//! Virtual time: a clock that jumps to the next event, with a deterministic order.
//!
//! As in a process, the only thread of the partition runs every level, so every spawn and every
//! release follows the same rules as on the board's clock. Jobs take no time unless they declare
//! it, by `execution = …` or [`punctual::spend`](crate::spend); while time passes in one, releases
//! of higher levels preempt it. The board's timer is not used. Interrupts occur at any time, at the
//! current virtual time.

use core::sync::atomic::{AtomicBool, Ordering};

use punctual_core::atomic::Halves;
use punctual_core::{CurrentWorker, Duration, Instant};

use super::partition::PartitionState;
use super::stop::StopReason;
use super::{board, clock};
use crate::task::body::Body;

/// No time.
const NEVER: u64 = u64::MAX;

/// True if the app runs in virtual time.
static ON: AtomicBool = AtomicBool::new(false);

/// True if its resources exist: before, no time passes.
static OPEN: AtomicBool = AtomicBool::new(false);

/// The time, in ns. The core's only thread changes it; handlers only read it.
static NOW: Halves = Halves::new(0);

/// Returns whether the app runs in virtual time.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Returns the time.
pub(crate) fn now() -> u64 {
    NOW.load()
}

/// Begins virtual time, at 0.
pub(crate) fn begin() {
    NOW.store(0);
    OPEN.store(false, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
}

/// Ends virtual time.
pub(crate) fn end() {
    ON.store(false, Ordering::Relaxed);
}

/// Starts the grids of the partition and lets its jobs run: first those due at the start.
///
/// # Safety
/// As for [`Partition::go`](punctual_core::Partition::go).
pub(crate) unsafe fn open(partition: &'static PartitionState, me: CurrentWorker) {
    OPEN.store(true, Ordering::Relaxed);
    partition.core.levels().iter().for_each(|level| level.start(Instant::from_ticks(0)));
    mark_due(partition, me);
    // SAFETY: this thread holds everything, by this function's contract.
    unsafe { partition.core().abandon(me) };
}

/// Advances the clock to the next event and serves it. Without one the app is stopped, unless an
/// interrupt may cause one.
pub(crate) fn step(partition: &'static PartitionState, me: CurrentWorker) {
    if partition.core.is_stopping() {
        return;
    }
    if partition.core.snapshot().must_serve() {
        return partition.core().serve(me, None);
    }
    match (next_due(partition), clock::limit()) {
        (NEVER, NEVER) => match partition.runtime.sources().next() {
            Some(_) => board::wait(),
            None => partition.runtime.stop(&StopReason::Quiescent),
        },
        (next, limit) if limit <= next => time_is_up(partition, limit),
        (next, _) => {
            NOW.store(next);
            release_due(partition, me);
        }
    }
}

/// Lets `duration` of execution time pass for the calling job; none in `init`.
pub(crate) fn spend(partition: &'static PartitionState, me: CurrentWorker, duration: Duration) {
    if !OPEN.load(Ordering::Relaxed) {
        return;
    }
    let mut left = duration.as_ticks();
    while left > 0 {
        if partition.core.snapshot().must_serve() {
            // Released at the end of the time that passed before this, or by an interrupt just now.
            partition.core().serve(me, None);
        }
        let end = now().saturating_add(left).min(NEVER - 1);
        // When the app is stopping nothing more is released.
        if partition.core.is_stopping() {
            return NOW.store(end);
        }
        let to = next_due(partition).min(end);
        if clock::limit() <= to {
            time_is_up(partition, clock::limit());
        } else {
            NOW.store(to);
        }
        left = end.saturating_sub(now());
        if left > 0 {
            // A job that preempts this one advances the clock by its own execution time, not by
            // ours.
            release_due(partition, me);
        } else {
            // Released, but not served: the job that ends at this instant ends first.
            mark_due(partition, me);
        }
    }
}

/// Lets the declared execution time of a task pass.
#[inline]
pub(crate) fn spend_declared<B: Body>(me: CurrentWorker) {
    if B::EXECUTION.as_ticks() > 0 && is_on() {
        spend(B::partition(), me, B::EXECUTION);
    }
}

fn time_is_up(partition: &'static PartitionState, limit: u64) {
    NOW.store(limit);
    partition.runtime.stop(&StopReason::TimeUp);
}

/// Returns the next due time.
fn next_due(partition: &PartitionState) -> u64 {
    let levels = partition.core.levels().iter();
    levels.filter_map(|level| level.next_due()).min().map_or(NEVER, |time| time.as_ticks())
}

/// Releases and serves all due jobs.
fn release_due(partition: &'static PartitionState, me: CurrentWorker) {
    mark_due(partition, me);
    partition.core().serve(me, None);
}

/// Releases all due jobs.
fn mark_due(partition: &PartitionState, me: CurrentWorker) {
    if !partition.core.is_stopping() {
        for level in partition.core.levels() {
            partition.core.release_due(me, level, Instant::from_ticks(now()));
        }
    }
}

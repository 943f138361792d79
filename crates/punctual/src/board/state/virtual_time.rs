//! Virtual time: a clock that jumps to the next event, with a deterministic order.
//!
//! As in a process, the only thread of the partition runs every level, so every spawn and every
//! release follows the same rules as on the board's clock. Jobs take no time unless they declare
//! it, by `execution = …` or [`punctual::spend`](crate::spend); while time passes in one, releases
//! of higher levels preempt it. The board's timer is not used. Interrupts occur at any time, at the
//! current virtual time.

use core::sync::atomic::{AtomicBool, Ordering};

use punctual_core::{CurrentWorker, Duration, Instant};

use crate::board::port as board;
use crate::board::port::clock::{self, NEVER};
use crate::state::partition::PartitionState;
use crate::stop::StopReason;

/// True if the resources of the app exist: before, no virtual time passes.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Begins a run: no time passes.
pub(crate) fn begin() {
    IS_OPEN.store(false, Ordering::Relaxed);
}

/// Starts the grids of the partition and lets its jobs run: first those due at the start.
///
/// # Safety
/// As for [`Partition::go`](punctual_core::Partition::go).
pub(crate) unsafe fn open(partition: &'static PartitionState, me: CurrentWorker) {
    IS_OPEN.store(true, Ordering::Relaxed);
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
            clock::advance(next);
            release_due(partition, me);
        }
    }
}

/// Lets `duration` of execution time pass for the calling job; none in `init`.
pub(crate) fn spend(partition: &'static PartitionState, me: CurrentWorker, duration: Duration) {
    if !IS_OPEN.load(Ordering::Relaxed) {
        return;
    }
    let mut left = duration.as_ticks();
    while left > 0 {
        if partition.core.snapshot().must_serve() {
            // Released at the end of the time that passed before this, or by an interrupt just now.
            partition.core().serve(me, None);
        }
        let end = clock::now().saturating_add(left).min(NEVER - 1);
        // When the app is stopping nothing more is released.
        if partition.core.is_stopping() {
            return clock::advance(end);
        }
        let to = next_due(partition).min(end);
        if clock::limit() <= to {
            time_is_up(partition, clock::limit());
        } else {
            clock::advance(to);
        }
        left = end.saturating_sub(clock::now());
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

fn time_is_up(partition: &'static PartitionState, limit: u64) {
    clock::advance(limit);
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
            partition.core.release_due(me, level, Instant::from_ticks(clock::now()));
        }
    }
}

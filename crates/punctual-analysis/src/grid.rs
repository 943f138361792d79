//! Releases by the clock that a spawned task cannot meet.
//!
//! *Palencia & González Harbour, "Schedulability Analysis for Tasks with Static and Dynamic
//! Offsets", RTSS 1998*: a spawned task lies at a known place after the release of its root, from
//! the start of its caller to its own latest end. A release that never falls into that interval
//! never displaces it. This module applies the argument to the kernel's work at releases by the
//! clock, which displaces all levels.
//!
//! If the root is released at 0 every `T`, and another task at `d` every `T′`, then the other task
//! is released at `d + z·g` after the root, for every integer `z`, where `g` is the greatest common
//! divisor of `T` and `T′`, and up to J later. A release at the same instant as the root is
//! complete when the root starts, because the kernel handles all timers of a CPU that are due at
//! one instant in one interrupt. So the releases meet no job spawned by the root unless one of them
//! lies between −J and the end of the spawned job.
//!
//! Not applied where a job suspends itself, or to polling partitions. Sufficient.

use crate::release::Release;
use crate::system::{Executor, System, Task};
use crate::time::Nanos;

/// Returns the offset of a task on the clock's grid and the distance between its releases.
fn place(task: &Task) -> Option<(Nanos, Nanos)> {
    let period = task.arrivals.as_ref().filter(|it| task.is_periodic && it.is_sporadic())?.window();
    Some((task.grid?, period))
}

/// Returns whether no release of the task `other` falls between the start of the first job of a
/// path and the end of a spawned job of the task `own`, for all paths that spawn it. `end` is the
/// latest end after the release of the root, by path.
pub(crate) fn never_meets(
    system: &System,
    own: usize,
    releases: &[Release],
    ends: &[Option<Nanos>],
    other: usize,
) -> bool {
    let partition = system.tasks[own].partition;
    let waits = |task: &Task| task.partition == partition && task.suspension.is_some();
    if system.partitions[partition].executor != Executor::Preemptive || system.tasks.iter().any(waits) {
        return false;
    }
    let Some((at, period)) = place(&system.tasks[other]) else { return false };
    let late = system.tasks[other].jitter;
    let is_apart = |(release, end): (&Release, &Option<Nanos>)| {
        let root = release.root().map(|root| &system.tasks[root]).filter(|root| root.partition == partition);
        let (Some((start, root_period)), Some(end)) = (root.and_then(place), *end) else { return false };
        let step = divisor(root_period, period);
        let after = (at % step + step - start % step) % step;
        let (next, before) = if after == 0 { (step, step) } else { (after, step - after) };
        next >= end && before >= late
    };
    !releases.is_empty() && releases.iter().zip(ends).all(is_apart)
}

/// Returns the greatest common divisor.
fn divisor(mut a: Nanos, mut b: Nanos) -> Nanos {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

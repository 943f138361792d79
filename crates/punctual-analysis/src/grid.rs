//! Releases by one clock that a spawned task cannot meet.
//!
//! *Palencia & González Harbour, "Schedulability Analysis for Tasks with Static and Dynamic Offsets", RTSS 1998*: a task that is spawned has
//! a place after the release of its root, from when its caller begins until it ends at the latest, and what is never released in that
//! time never displaces it. Here that is said of the kernel's part in releases by the clock, which displaces all levels.
//!
//! If the root is released at 0 every `T`, and another task at `d` every `T′`, then over time the other is released at `d + z·g` after
//! the root, for every whole `z`, with `g` the greatest common divisor of `T` and `T′`, and up to J later. If it is released when the
//! root is, that is over when the root starts: the kernel does by one interrupt what is due on a CPU at one instant. So it meets none
//! of what the root leads to if no other release is between −J and the end of the spawned job.
//!
//! Not said where a job waits in the middle, and of partitions that poll. Sufficient.

use crate::release::Release;
use crate::system::{Executor, System, Task};
use crate::time::Nanos;

/// Where a task stands on the clock's grid, and how far apart its releases are.
fn place(task: &Task) -> Option<(Nanos, Nanos)> {
    let period = task.arrivals.as_ref().filter(|it| task.is_periodic && it.is_sporadic())?.window();
    Some((task.grid?, period))
}

/// Whether no release of the task `other` falls between the start of the first job of a path and the end of a spawned job of the
/// task `own`, for all ways in which that is spawned; `end` is the latest end after the release of the root, by way.
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

/// The greatest common divisor.
fn divisor(mut a: Nanos, mut b: Nanos) -> Nanos {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

//! Jobs that wait in the middle.
//!
//! *Chen, Nelissen, Huang, Yang, Brandenburg, et al., "Many Suspensions, Many Problems", Real-Time Systems 55, 2019*, sections 4.1
//! and 4.2: a task's own waiting counts as execution for itself; a task of a higher level that waits displaces others like one
//! whose releases have the jitter `R − C`. (Jitter of the length of the waiting, or no jitter at all, are refuted there.)
//! After each wait a job may be blocked once more, by what a lower one began meanwhile. Sufficient.
//!
//! Peers at the level of a job that waits are counted like tasks of a higher level, since the order of release is not kept.

use crate::bound::NoBound;
use crate::system::{System, Task};
use crate::time::Nanos;

/// How much later than its release a job may begin to displace others, apart from J.
pub(crate) fn lateness(task: &Task, response: &Result<Nanos, NoBound>) -> Nanos {
    match (task.suspension, response) {
        (Some(_), Ok(response)) => response.saturating_sub(task.jitter).saturating_sub(task.execution),
        _ => 0,
    }
}

/// Whether a job of this task, or of a peer, waits.
pub(crate) fn waits(system: &System, task: &Task) -> bool {
    let is_peer = |other: &&Task| other.partition == task.partition && other.level == task.level;
    system.tasks.iter().any(|peer| peer.suspension.is_some() && is_peer(&peer))
}

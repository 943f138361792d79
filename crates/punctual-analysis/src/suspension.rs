//! Self-suspension.
//!
//! *Chen, Nelissen, Huang, Yang, Brandenburg, et al., "Many Suspensions, Many Problems", Real-Time
//! Systems 55, 2019*, sections 4.1 and 4.2: a task's own suspension counts as its execution; a
//! suspending task of a higher level displaces others like one with release jitter `R − C`. (Jitter
//! of the suspension's length, or no jitter, is refuted there.) After each suspension, a job may be
//! blocked once more by a section that a lower job started. Sufficient.
//!
//! Peers at the level of a suspending job count like tasks of a higher level, because release order
//! is not maintained.

use crate::bound::NoBound;
use crate::system::{System, Task};
use crate::time::Nanos;

/// Returns the delay from the release of a job until it displaces others, without J.
pub(crate) fn lateness(task: &Task, response: &Result<Nanos, NoBound>) -> Nanos {
    match (task.suspension, response) {
        (Some(_), Ok(response)) => response.saturating_sub(task.jitter).saturating_sub(task.execution),
        _ => 0,
    }
}

/// Returns whether jobs of this task or of a peer suspend themselves.
pub(crate) fn waits(system: &System, task: &Task) -> bool {
    let is_peer = |other: &&Task| other.partition == task.partition && other.level == task.level;
    system.tasks.iter().any(|peer| peer.suspension.is_some() && is_peer(&peer))
}

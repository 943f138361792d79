//! Locks of resources whose users run in parallel: in several partitions, or under the global
//! executor.
//!
//! Within a partition the ceiling of a resource suffices, because a partition runs one job at a
//! time. Jobs that run in parallel need a lock as well:
//!
//! * across partitions, the Multiprocessor Stack Resource Policy: [`GroupLocked`];
//! * under the global executor, which boards do not have, the Priority Ceiling Protocol:
//!   `CeilingLocked`.
//!
//! The macro selects the lock of a resource; a task's code is the same with either.

mod asynchronous;
mod group_locked;

use punctual_core::{CurrentWorker, Port};

pub use self::asynchronous::AsyncLocked;
pub use self::group_locked::GroupLocked;
pub use crate::platform::lock::*;
use crate::state::partition::PartitionState;
use crate::state::{Host, Platform};

/// Runs `f` with the value of a resource. If a panic unwinds out of it, the app is stopped before
/// another job can enter.
#[inline]
pub(crate) fn critical<T, R>(
    partition: &'static PartitionState,
    value: &mut T,
    f: impl FnOnce(&mut T) -> R,
) -> R {
    let section = Section(partition);
    let result = f(value);
    core::mem::forget(section);
    result
}

/// A critical section; dropped only by unwinding.
struct Section(&'static PartitionState);

impl Drop for Section {
    #[cold]
    fn drop(&mut self) {
        self.0.core.port().unwinds();
    }
}

/// Returns the worker of the calling thread, which runs a job of `level` of `partition`; `None` on
/// the last thread of a run, which drops the rest of a future: then no other thread uses the
/// resource.
///
/// # Panics
/// Panics if it is neither, because a lock right was moved out of its task.
#[inline]
pub(crate) fn user(partition: &'static PartitionState, level: u8) -> Option<CurrentWorker> {
    let worker = Host::worker_of(partition).filter(|worker| worker.running() == level);
    let may_lock = worker.is_some() || Host::is_last_of(partition.runtime);
    assert!(may_lock, "a shared resource is locked by its task only, while it runs");
    worker
}

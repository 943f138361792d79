//! Locks of resources whose users run in parallel: in several partitions, or under the global
//! executor.
//!
//! Within a partition the ceiling of a resource suffices, because a partition runs one job at a
//! time. Jobs that run in parallel need a lock as well:
//!
//! * across partitions, the Multiprocessor Stack Resource Policy: [`GroupLocked`];
//! * under the global executor, the Priority Ceiling Protocol: [`CeilingLocked`].
//!
//! The macro selects the lock of a resource; a task's code is the same with either.

#[cfg(any(feature = "std", feature = "async"))]
mod asynchronous;
#[cfg(feature = "std")]
mod ceiling;
#[cfg(feature = "std")]
#[path = "group.rs"]
mod group_lock;
#[cfg(not(feature = "std"))]
#[path = "group_of_cores.rs"]
mod group_lock;
mod group_locked;

#[cfg(any(feature = "std", feature = "async"))]
pub use asynchronous::AsyncLocked;
#[cfg(feature = "std")]
pub use ceiling::{CeilingLocked, CeilingMutex, Ceilings};
pub use group_lock::Group;
pub use group_locked::GroupLocked;

use punctual_core::CurrentWorker;
use punctual_core::Port;

use crate::app::current;
use crate::app::partition::PartitionState;

/// Runs `f` with the value of a resource. If a panic unwinds out of it, the app is stopped before
/// another job can enter.
#[inline]
fn critical<T, R>(partition: &'static PartitionState, value: &mut T, f: impl FnOnce(&mut T) -> R) -> R {
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
fn user(partition: &'static PartitionState, level: u8) -> Option<CurrentWorker> {
    let worker = current::worker_of(partition).filter(|worker| worker.running() == level);
    let may_lock = worker.is_some() || current::is_last_of(partition.runtime);
    assert!(may_lock, "a shared resource is locked by its task only, while it runs");
    worker
}

//! Locks of resources whose users run in parallel: in several partitions, or under the global executor.
//!
//! Within a partition the ceiling of a resource is enough, since a partition runs one job at a time. Jobs that run in
//! parallel need a lock as well:
//!
//! * across partitions, the Multiprocessor Stack Resource Policy: [`GroupLocked`];
//! * under the global executor, the Priority Ceiling Protocol: [`CeilingLocked`].
//!
//! The macro decides which one a resource has; a task's code is the same with either.

mod ceiling;
mod group;

pub use ceiling::{CeilingLocked, CeilingMutex, Ceilings};
pub use group::{Group, GroupLocked};

use punctual_core::{CurrentWorker, Locked, Mutex, Port, Resource};

use crate::app::current;
use crate::app::partition::PartitionState;
use crate::port::AppPort;

/// Runs `f` with the value of a resource. If a panic unwinds out of it, the app is stopped before another job can enter.
#[inline]
fn critical<T, R>(partition: &'static PartitionState, value: &mut T, f: impl FnOnce(&mut T) -> R) -> R {
    let section = Section(partition);
    let result = f(value);
    std::mem::forget(section);
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

/// The worker of the calling thread, which runs a job of `level` of `partition`; `None` on the last thread of a run, which
/// drops what is left of a future: then nobody else uses the resource.
///
/// # Panics
/// If it is neither, because a lock right has left its task.
#[inline]
fn user(partition: &'static PartitionState, level: u8) -> Option<CurrentWorker> {
    let worker = current::worker_of(partition).filter(|worker| worker.running() == level);
    let may_lock = worker.is_some() || current::is_last_of(partition.runtime);
    assert!(may_lock, "a shared resource is locked by its task only, while it runs");
    worker
}

/// The right of an async task at `LEVEL` to lock a resource whose ceiling is `CEILING`.
///
/// As [`Locked`], but not bound to a thread, since different threads poll an async task.
/// Each lock looks the thread up.
pub struct AsyncLocked<'a, T, const LEVEL: u8, const CEILING: u8> {
    resource: &'a Resource<T>,
    partition: &'static PartitionState,
}

impl<'a, T, const LEVEL: u8, const CEILING: u8> AsyncLocked<'a, T, LEVEL, CEILING> {
    /// The lock right of one instance of a task.
    ///
    /// # Safety
    /// * `resource` is filled for as long as the app's threads run, and used by others only through locks of the same
    ///   ceiling in the same app, or by tasks of the level `CEILING` while they run.
    /// * The task makes one such value per resource.
    #[inline(always)]
    pub unsafe fn new(resource: &'a Resource<T>, partition: &'static PartitionState) -> Self {
        Self { resource, partition }
    }
}

impl<T, const LEVEL: u8, const CEILING: u8> Mutex for AsyncLocked<'_, T, LEVEL, CEILING> {
    type T = T;

    /// # Panics
    /// If called outside the task's own polls, for example on a thread that the task has started.
    #[inline]
    fn lock<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        let Some(worker) = user(self.partition, LEVEL) else {
            // SAFETY: the resource is filled while there are futures, and no other thread uses it; on this one, the value of
            // `new` is the only one of a task that is being dropped, and is borrowed.
            return f(unsafe { self.resource.get_mut() });
        };
        // SAFETY: the resource is as `new` demands. The calling thread runs a job of this level,
        // and the value lives for this call only. `&mut self` is borrowed for as long, and there is one per task.
        let mut locked = unsafe {
            Locked::<T, AppPort, LEVEL, CEILING>::new(self.resource, self.partition.core(), worker)
        };
        locked.lock(f)
    }
}

impl<T, const LEVEL: u8, const CEILING: u8> std::fmt::Debug for AsyncLocked<'_, T, LEVEL, CEILING> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsyncLocked")
            .field("level", &LEVEL)
            .field("ceiling", &CEILING)
            .finish_non_exhaustive()
    }
}

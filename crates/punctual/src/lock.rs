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

use punctual_core::{CurrentWorker, Locked, Mutex, Port, Resource};

pub use crate::platform::lock::*;
use crate::port::AppPort;
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

/// The right of a job at `LEVEL` of a partition to lock a resource that other partitions use too.
pub struct GroupLocked<'a, T, const LEVEL: u8> {
    resource: &'a Resource<T>,
    partition: &'static PartitionState,
    group: &'static Group,
}

impl<'a, T, const LEVEL: u8> GroupLocked<'a, T, LEVEL> {
    /// Creates the lock right of one job.
    ///
    /// # Safety
    /// * `resource` is filled while the app's threads run, and is used by others only through locks
    ///   of `group`.
    /// * The task creates one such value per resource.
    #[inline(always)]
    pub unsafe fn new(
        resource: &'a Resource<T>,
        partition: &'static PartitionState,
        group: &'static Group,
    ) -> Self {
        Self { resource, partition, group }
    }
}

impl<T, const LEVEL: u8> Mutex for GroupLocked<'_, T, LEVEL> {
    type T = T;

    /// # Panics
    /// Panics if called outside the task, for example on a thread that it has started.
    #[inline]
    fn lock<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        let resource = self.resource;
        let Some(me) = user(self.partition, LEVEL) else {
            // SAFETY: the resource is filled while there are futures, and no other thread uses it;
            // on this thread, the value of `new` is the only one of a task that is being dropped,
            // and is borrowed.
            return f(unsafe { resource.get_mut() });
        };
        self.partition.core().at_top_level(me, || {
            // SAFETY: the group admits one thread at a time. Of that thread only the current job is
            // in a critical section, because its partition is at the top level; it has one right to
            // lock this resource, which is borrowed.
            self.group.with(self.partition, me, || critical(self.partition, unsafe { resource.get_mut() }, f))
        })
    }
}

impl<T, const LEVEL: u8> core::fmt::Debug for GroupLocked<'_, T, LEVEL> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("GroupLocked").field("level", &LEVEL).finish_non_exhaustive()
    }
}

/// The right of an async task at `LEVEL` to lock a resource whose ceiling is `CEILING`.
///
/// As [`Locked`], but not bound to a thread, because different threads poll an async task. Each
/// lock looks up the thread.
pub struct AsyncLocked<'a, T, const LEVEL: u8, const CEILING: u8> {
    resource: &'a Resource<T>,
    partition: &'static PartitionState,
}

impl<'a, T, const LEVEL: u8, const CEILING: u8> AsyncLocked<'a, T, LEVEL, CEILING> {
    /// Creates the lock right of one instance of a task.
    ///
    /// # Safety
    /// * `resource` is filled while the app's threads run, and is used by others only through locks
    ///   of the same ceiling in the same app, or by tasks of the level `CEILING` while they run.
    /// * The task creates one such value per resource.
    #[inline(always)]
    pub unsafe fn new(resource: &'a Resource<T>, partition: &'static PartitionState) -> Self {
        Self { resource, partition }
    }
}

impl<T, const LEVEL: u8, const CEILING: u8> Mutex for AsyncLocked<'_, T, LEVEL, CEILING> {
    type T = T;

    /// # Panics
    /// Panics if called outside the task's own polls, for example on a thread that the task has
    /// started.
    #[inline]
    fn lock<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        let Some(worker) = user(self.partition, LEVEL) else {
            // SAFETY: the resource is filled while there are futures, and no other thread uses it;
            // on this thread, the value of `new` is the only one of a task that is being dropped,
            // and is borrowed.
            return f(unsafe { self.resource.get_mut() });
        };
        // SAFETY: the resource meets the requirements of `new`. The calling thread runs a job of
        // this level, and the value exists only for this call. `&mut self` is borrowed as long, and
        // there is one per task.
        let mut locked = unsafe {
            Locked::<T, AppPort, LEVEL, CEILING>::new(self.resource, self.partition.core(), worker)
        };
        locked.lock(f)
    }
}

impl<T, const LEVEL: u8, const CEILING: u8> core::fmt::Debug for AsyncLocked<'_, T, LEVEL, CEILING> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AsyncLocked")
            .field("level", &LEVEL)
            .field("ceiling", &CEILING)
            .finish_non_exhaustive()
    }
}

//! Locks of resources of one partition in async tasks.

use punctual_core::{Locked, Mutex, Resource};

use super::user;
use crate::port::AppPort;
use crate::state::partition::PartitionState;

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

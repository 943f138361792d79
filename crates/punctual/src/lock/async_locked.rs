//! The lock right of an async task.

use punctual_core::{Locked, Mutex, Resource};

use crate::app::partition::Part;
use crate::lock::user;
use crate::port::AppPort;

/// The right of an async task at `LEVEL` to lock a resource whose ceiling is `CEILING`.
///
/// As [`Locked`], but not bound to a thread: an async task is polled now by one thread of its app, now by another.
/// Which one it is, is found out at each lock.
pub struct AsyncLocked<'a, T, const LEVEL: u8, const CEILING: u8> {
    resource: &'a Resource<T>,
    part: &'static Part,
}

impl<'a, T, const LEVEL: u8, const CEILING: u8> AsyncLocked<'a, T, LEVEL, CEILING> {
    /// The lock right of one instance of a task.
    ///
    /// # Safety
    /// * `resource` is filled for as long as the app's threads run, and used by others only through locks of the same
    ///   ceiling in the same app, or by tasks of the level `CEILING` while they run.
    /// * The task makes one such value per resource.
    #[inline(always)]
    pub unsafe fn new(resource: &'a Resource<T>, part: &'static Part) -> Self {
        Self { resource, part }
    }
}

impl<T, const LEVEL: u8, const CEILING: u8> Mutex for AsyncLocked<'_, T, LEVEL, CEILING> {
    type T = T;

    /// # Panics
    /// Outside the task's own polls: on a thread that the task has started, say.
    #[inline]
    fn lock<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        let worker = user(self.part, LEVEL);
        // SAFETY: the resource is as `new` demands. The calling thread runs a job of this level,
        // and the value lives for this call only. `&mut self` is borrowed for as long, and there is one per task.
        let mut locked = unsafe {
            Locked::<T, AppPort, LEVEL, CEILING>::new(self.resource, self.part.partition(), worker)
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

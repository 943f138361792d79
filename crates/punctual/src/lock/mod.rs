//! Resources whose users run apart: in several partitions, or each level for itself under the global executor.
//!
//! Within a partition the ceiling of a resource is enough, since a partition runs one job at a time. Jobs that truly run
//! at once need a lock besides:
//!
//! * across partitions, the Multiprocessor Stack Resource Policy: [`GroupLocked`];
//! * under the global executor, the Priority Ceiling Protocol: [`CeilingLocked`].
//!
//! Which of them a resource has is for the macro to decide; a task's code is the same with either.

mod ceiling;
mod group;

pub use ceiling::{CeilingLocked, CeilingMutex, Ceilings};
pub use group::{Group, GroupLocked};

use punctual_core::{CurrentWorker, Locked, Mutex, Port, Resource};

use crate::app::current;
use crate::app::partition::Part;
use crate::port::AppPort;

/// Runs `f` with the value of a resource. A panic that leaves it is a fault of the app, of which it is told before anybody else
/// can enter.
#[inline]
fn critical<T, R>(part: &'static Part, value: &mut T, f: impl FnOnce(&mut T) -> R) -> R {
    let section = Section(part);
    let result = f(value);
    std::mem::forget(section);
    result
}

/// A critical section; to drop it is to unwind out of it.
struct Section(&'static Part);

impl Drop for Section {
    #[cold]
    fn drop(&mut self) {
        self.0.partition.port().unwinds();
    }
}

/// The worker that the calling thread is, which runs a job of `level` of `part`.
///
/// # Panics
/// If it does not: a lock right has left its task.
#[inline]
pub(crate) fn user(part: &'static Part, level: u8) -> CurrentWorker {
    let worker = current::worker_of(part).filter(|worker| worker.running() == level);
    worker.expect("a shared resource is locked by its task only, while it runs")
}

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

//! The right to lock a resource that several partitions share.

use punctual_core::{Mutex, Resource};

use super::{Group, critical, user};
use crate::state::partition::PartitionState;

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

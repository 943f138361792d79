//! Resources of the global executor: the Priority Ceiling Protocol on priority-inheritance futexes.
//!
//! Each thread of the app is a member of one group, with its level as its priority; see
//! [`punctual_sync::pcp`] for the protocol and its cost.

use punctual_core::{Mutex, Resource};
use punctual_sync::PcpMutex;

use crate::lock::{critical, user};
use crate::port::linux::suspension;
use crate::port::virtual_time::Claim;
use crate::state::partition::PartitionState;
use crate::state::thread;
use crate::state::virtual_time;

/// The mutex of a resource, with its ceiling.
pub type CeilingMutex = PcpMutex<'static, ()>;

/// The right of a job at `LEVEL` to lock a resource of the global executor.
pub struct CeilingLocked<'a, T, const LEVEL: u8> {
    resource: &'a Resource<T>,
    partition: &'static PartitionState,
    mutex: &'static CeilingMutex,
}

impl<'a, T, const LEVEL: u8> CeilingLocked<'a, T, LEVEL> {
    /// Creates the lock right of one job.
    ///
    /// # Safety
    /// * `resource` is filled while the app's threads run, and is used by others only through locks
    ///   with `mutex`.
    /// * The task creates one such value per resource.
    #[inline(always)]
    pub unsafe fn new(
        resource: &'a Resource<T>,
        partition: &'static PartitionState,
        mutex: &'static CeilingMutex,
    ) -> Self {
        Self { resource, partition, mutex }
    }
}

impl<T, const LEVEL: u8> Mutex for CeilingLocked<'_, T, LEVEL> {
    type T = T;

    /// # Panics
    /// Panics if called outside the task, for example on a thread that it has started.
    #[inline]
    fn lock<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        let resource = self.resource;
        if user(self.partition, LEVEL).is_none() {
            // SAFETY: the resource is filled while there are futures, and no other thread uses it;
            // on this thread, the value of `new` is the only one of a task that is being dropped,
            // and is borrowed.
            return f(unsafe { resource.get_mut() });
        }
        if self.partition.core.port().is_virtual() {
            let claim = Claim::Ceiling { level: LEVEL, ceiling: self.mutex.ceiling() };
            let _claimed = virtual_time::acquire(self.partition, claim);
            // SAFETY: as below: no other claim of this ceiling is granted during the call.
            return critical(self.partition, unsafe { resource.get_mut() }, f);
        }
        let member = thread::ceiling_member().expect("every thread of the app is a member");
        let waits = member.waits();
        let locked = self.mutex.lock(member, |()| {
            match member.waits().wrapping_sub(waits) {
                0 => {}
                waited => suspension::blocked(waited),
            }
            // SAFETY: the holder of the mutex has exclusive access to the resource: against other
            // threads by the mutex, on this thread because the mutex cannot be locked twice.
            critical(self.partition, unsafe { resource.get_mut() }, f)
        });
        match locked {
            Ok(result) => result,
            Err(error) => panic!("a resource cannot be locked: {error}"),
        }
    }
}

impl<T, const LEVEL: u8> std::fmt::Debug for CeilingLocked<'_, T, LEVEL> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CeilingLocked").field("level", &LEVEL).finish_non_exhaustive()
    }
}

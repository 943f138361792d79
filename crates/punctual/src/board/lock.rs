//! Resources shared across partitions with one core each: the Multiprocessor Stack Resource Policy.
//!
//! As on Linux (P. Gai, G. Lipari, M. Di Natale, RTSS 2001), but a holder leaves its core only for
//! interrupt handlers, which run no jobs during that time. So a waiter spins, in order of arrival,
//! for at most one critical section of each other core.
//!
//! Resources that one job may hold at once share one lock, a *group*, so no job waits for one of
//! these locks while holding another.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use punctual_core::{CurrentWorker, Worker};
use punctual_sync::shared::TicketLock;

use crate::state::partition::PartitionState;

/// The lock of resources that one job may hold at once.
#[derive(Debug)]
pub struct Group {
    lock: TicketLock<(), 4>,
    /// Worker whose job is in a critical section of the group. Only a comparison with the own
    /// worker is meaningful.
    holder: AtomicPtr<Worker>,
}

impl Group {
    /// Creates the lock of a group, which always spins.
    pub const fn new(_: bool) -> Self {
        Self { lock: TicketLock::with_slots(()), holder: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Runs `f` while no other job is in a critical section of the group. The partition is at its
    /// top level.
    #[inline]
    pub(crate) fn with<R>(
        &'static self,
        _: &'static PartitionState,
        me: CurrentWorker,
        f: impl FnOnce() -> R,
    ) -> R {
        let mark = ptr::from_ref(me.worker()).cast_mut();
        // Inside another resource of the group. Only this core writes its own mark.
        if self.holder.load(Ordering::Relaxed) == mark {
            return f();
        }
        let locked = self.lock.lock_while(|| true);
        let _guard = locked.expect("there are as many places as cores, and no core dies alone");
        self.holder.store(mark, Ordering::Relaxed);
        let result = f();
        self.holder.store(ptr::null_mut(), Ordering::Relaxed);
        result
    }
}

//! Resources shared across partitions, each of which has a core: the Multiprocessor Stack Resource Policy.
//!
//! As on Linux (P. Gai, G. Lipari, M. Di Natale, RTSS 2001), but nobody takes a holder off its core for longer than the handlers of
//! interrupts take, which run no jobs meanwhile. So whoever waits spins, in order of arrival, for at most one critical section of
//! each other core.
//!
//! Resources that one job may hold at once share one lock, a *group*, so nobody waits for one of these locks while holding another.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use punctual_core::{CurrentWorker, Worker};
use punctual_sync::shared::TicketLock;

use crate::app::partition::PartitionState;

/// The lock of resources that one job may hold at once.
#[derive(Debug)]
pub struct Group {
    lock: TicketLock<(), 4>,
    /// Whose job is in a critical section of the group. Only a comparison with oneself means anything.
    holder: AtomicPtr<Worker>,
}

impl Group {
    /// The lock of a group, which spins anyway.
    pub const fn new(_: bool) -> Self {
        Self { lock: TicketLock::with_places(()), holder: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Runs `f` while nobody else is in a critical section of the group. The partition is at its top.
    #[inline]
    pub(super) fn with<R>(
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

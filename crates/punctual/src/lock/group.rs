//! Resources shared across partitions: the Multiprocessor Stack Resource Policy.
//!
//! A job that locks such a resource first raises its partition to the top level, so that nothing preempts it on its CPU, and
//! then spins in order of arrival. So a job is blocked once, for at most one critical section of each
//! other partition, and spends that time spinning instead of yielding its CPU (P. Gai, G. Lipari, M. Di Natale,
//! "Minimizing memory utilization of real-time task sets in single and multi-processor systems-on-a-chip", RTSS 2001).
//!
//! The bound holds for critical sections that run. A holder that the kernel has taken off its CPU, or that suspends
//! itself, would be spun for as long as that lasts; so spinning ends after [`SPIN`], and the waiter sleeps in the
//! kernel, lending its priority to the holder.
//!
//! Resources that one job may hold at once share one lock, a *group*, which the macro forms. So nobody ever waits for one
//! of these locks while holding another, and there is no deadlock.
//!
//! Where a polling partition is among the users everybody spins, since its thread must neither sleep nor wake a sleeper.
//! The others do not spin for ever: after [`SPIN`] they sleep for [`PAUSE`] between attempts.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use punctual_core::{CurrentWorker, Mutex, Resource, Worker};
use punctual_sync::futex::selector;
use punctual_sync::shared::TicketLock;
use punctual_sync::{MsrpLock, MsrpThread};

use super::{critical, user};
use crate::app::partition::{PartitionState, ThreadModel};
use crate::app::virtual_time;
use crate::port::linux::suspension;
use crate::port::virtual_time::Claim;

/// How long a waiter spins before it sleeps: several times what critical sections should last.
const SPIN: punctual_sync::Duration = punctual_sync::Duration::from_micros(100);
/// How long it sleeps between attempts where a polling partition may hold the lock.
const PAUSE: Duration = Duration::from_micros(50);

thread_local! {
    static ME: OnceCell<MsrpThread> = const { OnceCell::new() };
}

/// The lock of resources that one job may hold at once. At most 32 partitions contend for it.
#[derive(Debug)]
pub struct Group {
    lock: Kind,
    /// Whose job is in a critical section of the group. Only a comparison with oneself means anything.
    holder: AtomicPtr<Worker>,
}

#[derive(Debug)]
enum Kind {
    Sleeping(MsrpLock),
    Spinning(TicketLock<(), 32>),
}

impl Group {
    /// The lock of a group; `spins` if a polling partition is among the users.
    pub const fn new(spins: bool) -> Self {
        let lock = match spins {
            true => Kind::Spinning(TicketLock::with_places(())),
            false => Kind::Sleeping(MsrpLock::new()),
        };
        Self { lock, holder: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Runs `f` while nobody else is in a critical section of the group. The partition is at its top.
    #[inline]
    fn with<R>(
        &'static self,
        partition: &'static PartitionState,
        me: CurrentWorker,
        f: impl FnOnce() -> R,
    ) -> R {
        let mark = std::ptr::from_ref(me.worker()).cast_mut();
        // Inside another resource of the group. Only this thread writes its own mark.
        if self.holder.load(Ordering::Relaxed) == mark {
            return f();
        }
        let f = || {
            let _mark = Mark::set(&self.holder, mark);
            f()
        };
        if partition.core.port().is_virtual() {
            let claim = Claim::Group(std::ptr::from_ref(self).addr());
            let _claimed = virtual_time::acquire(partition, claim);
            return f();
        }
        match &self.lock {
            Kind::Sleeping(lock) => {
                ME.with(|me| match lock.lock(me.get_or_init(MsrpThread::current), SPIN) {
                    Ok(guard) => {
                        if !guard.in_turn() {
                            suspension::blocked(1);
                        }
                        f()
                    }
                    Err(error) => {
                        panic!("a resource that is shared across partitions cannot be locked: {error}")
                    }
                })
            }
            Kind::Spinning(lock) => loop {
                // A thread that must not sleep has no use for a limit, and may have no clock that never enters the kernel.
                let polls = partition.model == ThreadModel::Polling;
                let locked = if polls { lock.lock_while(|| true) } else { lock.lock(SPIN) };
                if let Ok(_guard) = locked {
                    return f();
                }
                if !polls {
                    selector::unwatched(|| std::thread::sleep(PAUSE));
                }
            },
        }
    }
}

/// Takes the holder's mark away before the lock is released, also on unwinding.
struct Mark<'a>(&'a AtomicPtr<Worker>);

impl<'a> Mark<'a> {
    #[inline]
    fn set(holder: &'a AtomicPtr<Worker>, mark: *mut Worker) -> Self {
        holder.store(mark, Ordering::Relaxed);
        Self(holder)
    }
}

impl Drop for Mark<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
}

/// The right of a job at `LEVEL` of a partition to lock a resource that other partitions use too.
pub struct GroupLocked<'a, T, const LEVEL: u8> {
    resource: &'a Resource<T>,
    partition: &'static PartitionState,
    group: &'static Group,
}

impl<'a, T, const LEVEL: u8> GroupLocked<'a, T, LEVEL> {
    /// The lock right of one job.
    ///
    /// # Safety
    /// * `resource` is filled for as long as the app's threads run, and used by others only through locks of `group`.
    /// * The task makes one such value per resource.
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
    /// If called outside the task, for example on a thread that it has started.
    #[inline]
    fn lock<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        let resource = self.resource;
        let Some(me) = user(self.partition, LEVEL) else {
            // SAFETY: the resource is filled while there are futures, and no other thread uses it; on this one, the value of
            // `new` is the only one of a task that is being dropped, and is borrowed.
            return f(unsafe { resource.get_mut() });
        };
        self.partition.core().at_top_level(me, || {
            // SAFETY: the group lets one thread at a time in here. Of that thread only the job at hand is in a critical
            // section, since its partition is at the top; it has one right to lock this resource, which is borrowed.
            self.group.with(self.partition, me, || critical(self.partition, unsafe { resource.get_mut() }, f))
        })
    }
}

impl<T, const LEVEL: u8> std::fmt::Debug for GroupLocked<'_, T, LEVEL> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupLocked").field("level", &LEVEL).finish_non_exhaustive()
    }
}

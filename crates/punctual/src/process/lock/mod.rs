//! Resources shared across partitions: the Multiprocessor Stack Resource Policy.
//!
//! A job that locks such a resource first raises its partition to the top level, so that nothing
//! preempts it on its CPU, and then spins in order of arrival. So a job is blocked once, for at
//! most one critical section of each other partition, and spends that time spinning instead of
//! yielding its CPU (P. Gai, G. Lipari, M. Di Natale, "Minimizing memory utilization of real-time
//! task sets in single and multi-processor systems-on-a-chip", RTSS 2001).
//!
//! The bound holds for critical sections that run. If the kernel has taken a holder off its CPU, or
//! the holder suspends itself, spinning would last as long; so spinning ends after [`SPIN`], and
//! the waiter sleeps in the kernel, lending its priority to the holder.
//!
//! Resources that one job may hold at once share one lock, a *group*, which the macro forms. So no
//! job waits for one of these locks while holding another, and deadlock is impossible.
//!
//! If a polling partition is among the users, all of them spin, because its thread must neither
//! sleep nor wake a sleeper. The others do not spin forever: after [`SPIN`] they sleep for
//! [`PAUSE`] between attempts.

mod ceiling;

use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use punctual_core::{CurrentWorker, Worker};
use punctual_sync::futex::selector;
use punctual_sync::shared::TicketLock;
use punctual_sync::{MsrpLock, MsrpThread};

pub use self::ceiling::{CeilingLocked, CeilingMutex};
use crate::port::linux::suspension;
use crate::port::virtual_time::Claim;
use crate::state::forked;
use crate::state::partition::{PartitionState, ThreadModel};
use crate::state::virtual_time;

/// Time that a waiter spins before it sleeps: several times the expected length of critical
/// sections.
const SPIN: punctual_sync::Duration = punctual_sync::Duration::from_micros(100);
/// Sleep between attempts if a polling partition may hold the lock.
const PAUSE: Duration = Duration::from_micros(50);

thread_local! {
    /// The calling thread, and the number of forks before.
    static ME: Cell<Option<(u32, MsrpThread)>> = const { Cell::new(None) };
}

/// Returns the calling thread. Asks the kernel once, and once more in the child of a fork, in which
/// the thread has another TID.
#[inline]
fn me() -> MsrpThread {
    let forks = forked::generation();
    match ME.get() {
        Some((known, me)) if known == forks => me,
        _ => {
            let me = MsrpThread::current();
            ME.set(Some((forks, me)));
            me
        }
    }
}

/// The lock of resources that one job may hold at once. At most 32 partitions contend for it.
#[derive(Debug)]
pub struct Group {
    lock: Kind,
    /// Worker whose job is in a critical section of the group. Only a comparison with the own
    /// worker is meaningful.
    holder: AtomicPtr<Worker>,
}

#[derive(Debug)]
enum Kind {
    Sleeping(MsrpLock),
    Spinning(TicketLock<(), 32>),
}

impl Group {
    /// Creates the lock of a group; `spins` if a polling partition is among the users.
    pub const fn new(spins: bool) -> Self {
        let lock = match spins {
            true => Kind::Spinning(TicketLock::with_slots(())),
            false => Kind::Sleeping(MsrpLock::new()),
        };
        Self { lock, holder: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Runs `f` while no other job is in a critical section of the group. The partition is at its
    /// top level.
    #[inline]
    pub(crate) fn with<R>(
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
            Kind::Sleeping(lock) => match lock.lock(&self::me(), SPIN) {
                Ok(guard) => {
                    if !guard.in_turn() {
                        suspension::blocked(1);
                    }
                    f()
                }
                Err(error) => panic!("a resource that is shared across partitions cannot be locked: {error}"),
            },
            Kind::Spinning(lock) => loop {
                // A thread that must not sleep cannot use a limit, and may have no clock that
                // avoids the kernel.
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

/// Clears the holder before the lock is released, also on unwinding.
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

//! The MSRP lock, for short critical sections of real-time threads on different CPUs.
//!
//! ```
//! use punctual_sync::{Duration, MsrpLock, MsrpThread};
//!
//! static BUS: MsrpLock = MsrpLock::new();
//!
//! let contend = || {
//!     let me = MsrpThread::current(); // asks the kernel for the TID; create once per thread
//!     let held = BUS.lock(&me, Duration::from_micros(100))?;
//!     // No other thread is here.
//!     drop(held);
//!     Ok::<(), punctual_sync::MsrpLockError>(())
//! };
//! let other = std::thread::spawn(contend);
//! contend()?;
//! other.join().unwrap()?;
//! # Ok::<(), punctual_sync::MsrpLockError>(())
//! ```
//!
//! Waiting threads spin and are served in order of arrival. Under MSRP a thread is not preempted
//! while it spins or while it holds the lock: the caller raises its partition to the top level
//! before it requests the lock. So at most one thread of each CPU contends, and on `m` CPUs it
//! spins for at most `m − 1` critical sections.
//!
//! This relies on the holder running. If it does not, because the kernel preempted it, because it
//! suspended itself, or because it lacks the privileges for real-time scheduling, spinning for it
//! may never end. Therefore spinning ends after a bound that the caller chooses. A thread that
//! reaches its bound sleeps and lends its priority to the holder. Set the bound a few times above
//! `m − 1` critical sections: reaching it costs time, but loses neither exclusion nor the lock.
//!
//! # Order
//!
//! * Threads that get the lock within their bound get it in the order in which they took their
//!   slots.
//! * Threads that have reached their bound get it in the kernel's order: by priority, then first
//!   come, first served. Once they sleep, they precede threads that spin, including those that
//!   arrived earlier.
//! * If a spinning thread's turn comes while it does not run, those behind it reach their bounds
//!   and pass it; the lock is free then, so they need not sleep.
//!
//! # System calls
//!
//! | | system calls |
//! |---|---|
//! | lock, free | none |
//! | lock, the turn comes within the bound | none; one if a thread that reached its own bound then holds the lock |
//! | lock, the bound is reached or no slot is free | one; none if the lock is free at that moment |
//! | unlock | none; one if a thread sleeps for the lock, or if the kernel handed it to this thread |
//!
//! As long as every thread finds a slot and gets the lock within its bound, none enters the kernel.
//! Nothing allocates.
//!
//! A thread that must never enter the kernel uses a [`TicketLock`] instead. It is a separate type
//! because the choice concerns all contenders of a lock: the unlocking thread has to wake a
//! sleeping one.
//!
//! ```
//! use punctual_sync::shared::TicketLock;
//!
//! static BUS: TicketLock<()> = TicketLock::new(());
//!
//! let held = BUS.lock_while(|| true)?;
//! # drop(held);
//! # Ok::<(), punctual_sync::shared::TicketLockError>(())
//! ```
//!
//! # Several resources
//!
//! The lock protects what its users agree on. Resources that one job may hold at the same time form
//! a group and share one lock, which the job takes once, around them all: then no thread waits for
//! one lock while holding another, and deadlock is impossible. `#[app]` computes the groups.
//! Threads that nest different locks in different orders may deadlock: they spin through their
//! bounds, and then the kernel detects the cycle: one of them gets [`MsrpLockError::Deadlock`], or
//! each if they enter the kernel at once.
//!
//! # Panics, leaks, forks
//!
//! A panic that unwinds through the guard unlocks and does not poison. A leaked guard keeps the
//! lock forever. A forked child has only the thread that forked, so locks held by other threads at
//! that moment stay locked in the child; create a new [`MsrpThread`] in the child. The lock works
//! between the threads of one process.
//!
//! # Source
//!
//! P. Gai, G. Lipari, M. Di Natale, *Minimizing memory utilization of real-time task sets in single
//! and multi-processor systems-on-a-chip*, RTSS 2001, for global resources; the groups are those of
//! A. Block, H. Leontyev, B. Brandenburg, J. Anderson, *A flexible real-time locking protocol for
//! multiprocessors*, RTCSA 2007. Neither has the bound.
//!
//! # Invariants
//!
//! *M1* Exclusion depends only on the priority-inheritance futex `owner`: a guard exists only after
//! its thread became the owner, from 0 or by the kernel, and only that thread ends the ownership,
//! in the guard's `drop`. *M2* The token of `ticket_lock` only determines the turn. It never delays
//! a thread for longer than that thread's bound, and a thread that gets it passes it on, also when
//! the kernel refuses the wait. *M3* The owner releases `owner` before it passes the token on. So a
//! thread that has the token but not the lock has met an owner without the token, and only then
//! enters the kernel.

use core::fmt;
use core::marker::PhantomData;
use core::panic::RefUnwindSafe;

use rustix::io::Errno;

use crate::atomic::{AtomicU32, Ordering, const_new};
use crate::shared::{Padded, TicketGuard, TicketLock};
use crate::{Duration, futex, spin};

/// A lock for which threads on different CPUs spin in order of arrival, each up to a bound, and
/// then sleep with priority inheritance.
///
/// `W`, a power of two, is the number of threads that can spin or hold the lock: at least the
/// number of CPUs. A thread that finds no slot sleeps at once. See the [module](self) for order and
/// cost.
///
/// ```
/// use punctual_sync::{Duration, MsrpLock, MsrpThread};
///
/// static SMALL: MsrpLock<4> = MsrpLock::with_slots();
///
/// let me = MsrpThread::current();
/// let held = SMALL.lock(&me, Duration::from_micros(10))?;
/// assert_eq!(SMALL.queued(), 1);
/// # drop(held);
/// # Ok::<(), punctual_sync::MsrpLockError>(())
/// ```
pub struct MsrpLock<const W: usize = 32> {
    owner: Padded<AtomicU32>,
    ticket_lock: TicketLock<(), W>,
}

/// The lock has no value that a panic could leave half changed, and the guard unlocks.
impl<const W: usize> RefUnwindSafe for MsrpLock<W> {}

impl MsrpLock {
    const_new! {
        /// Creates a free lock with 32 slots.
        pub fn new() -> Self {
            Self::with_slots()
        }
    }
}

impl Default for MsrpLock {
    fn default() -> Self {
        Self::new()
    }
}

impl<const W: usize> MsrpLock<W> {
    const_new! {
        /// Creates a free lock with `W` slots.
        pub fn with_slots() -> Self {
            Self { owner: Padded(AtomicU32::new(0)), ticket_lock: TicketLock::with_slots(()) }
        }
    }

    /// Locks. Spins for at most `limit`, see [Spinning](crate#spinning), and sleeps after that.
    ///
    /// # Errors
    ///
    /// Returns an [`MsrpLockError`] if the calling thread did not get the lock.
    #[inline]
    pub fn lock<'a>(
        &'a self,
        me: &'a MsrpThread,
        limit: Duration,
    ) -> Result<MsrpGuard<'a, W>, MsrpLockError> {
        self.lock_while(me, spin::within(limit))
    }

    /// Locks like [`lock`](Self::lock), spinning while `go_on`, called before each check, returns
    /// `true`.
    ///
    /// # Errors
    ///
    /// Returns an [`MsrpLockError`] if the calling thread did not get the lock.
    #[inline]
    pub fn lock_while<'a>(
        &'a self,
        me: &'a MsrpThread,
        go_on: impl FnMut() -> bool,
    ) -> Result<MsrpGuard<'a, W>, MsrpLockError> {
        let owner = &self.owner.0;
        if futex::is_owned(owner, me.thread) {
            return Err(MsrpLockError::Reentrant);
        }
        // The turn did not come within the bound, or no slot was free: without the token, the
        // kernel determines the order.
        let token = self.ticket_lock.lock_while(go_on).ok();
        // Acquire: pairs with the release of the last owner, regardless of the token.
        match futex::lock_owned(owner, me.thread, Ordering::Acquire) {
            Ok(()) => Ok(MsrpGuard { lock: self, me, token }),
            Err(Errno::DEADLK) => Err(MsrpLockError::Deadlock),
            Err(other) => Err(MsrpLockError::Refused(other.raw_os_error())),
        }
    }

    /// Returns the number of slots in use: by the holder unless it has slept for the lock, by
    /// threads that spin or sleep with their turn, and by those that reached their bounds and have
    /// not been passed over yet.
    pub fn queued(&self) -> u32 {
        self.ticket_lock.tickets()
    }
}

impl<const W: usize> fmt::Debug for MsrpLock<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = self.owner.0.load(Ordering::Relaxed);
        f.debug_struct("MsrpLock")
            .field("held", &(owner != 0))
            .field("queued", &self.queued())
            .finish_non_exhaustive()
    }
}

/// The calling thread as a contender for locks. It stores the TID, so that locking need not ask the
/// kernel.
///
/// It is neither `Send` nor `Sync`, so it stays on its thread. A thread may have several.
///
/// ```compile_fail
/// # use punctual_sync::MsrpThread;
/// let me = MsrpThread::current();
/// std::thread::spawn(move || drop(me));
/// ```
#[derive(Clone, Copy)]
pub struct MsrpThread {
    thread: u32,
    _not_send: PhantomData<*const ()>,
}

impl MsrpThread {
    /// Returns the calling thread. Makes a system call.
    pub fn current() -> Self {
        Self { thread: futex::thread_id(), _not_send: PhantomData }
    }
}

impl fmt::Debug for MsrpThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MsrpThread").field(&self.thread).finish()
    }
}

/// A held [`MsrpLock`]. Dropping it unlocks, on the thread that locked: it is not `Send`.
///
/// ```compile_fail
/// # use punctual_sync::{MsrpLock, MsrpThread};
/// # let (lock, me) = (MsrpLock::new(), MsrpThread::current());
/// let held = lock.lock_while(&me, || false).unwrap();
/// std::thread::scope(|scope| { scope.spawn(|| drop(held)); });
/// ```
///
/// # Panics
///
/// Dropping it panics if the kernel does not accept this thread as the owner: in the child of a
/// fork, with an [`MsrpThread`] from before the fork.
#[must_use]
pub struct MsrpGuard<'a, const W: usize = 32> {
    lock: &'a MsrpLock<W>,
    me: &'a MsrpThread,
    /// The token, passed on after `drop` below.
    token: Option<TicketGuard<'a, (), W>>,
}

impl<const W: usize> MsrpGuard<'_, W> {
    /// Returns `true` if the lock came in turn. Otherwise this thread reached its bound or found no
    /// slot: another thread held the lock for too long or did not run.
    #[inline]
    pub fn in_turn(&self) -> bool {
        self.token.is_some()
    }
}

impl<const W: usize> Drop for MsrpGuard<'_, W> {
    #[inline]
    fn drop(&mut self) {
        let owner = &self.lock.owner.0;
        // Release: the next owner may come without the token, so this store alone has to publish
        // the changes.
        let unlocked = futex::unlock_owned(owner, self.me.thread, Ordering::Release);
        unlocked.unwrap_or_else(|error| refused(error));
    }
}

#[cold]
fn refused(error: Errno) -> ! {
    panic!(
        "the kernel refuses to unlock ({error}): this thread is a fork of the one that called `MsrpThread::current`; \
         call it again in the child"
    );
}

impl<const W: usize> fmt::Debug for MsrpGuard<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MsrpGuard").field("in_turn", &self.in_turn()).finish_non_exhaustive()
    }
}

/// The reason an [`MsrpLock`] was not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MsrpLockError {
    /// The calling thread holds this lock already.
    Reentrant,
    /// A deadlock, through this lock and others.
    Deadlock,
    /// The kernel refused to wait, with this error number.
    Refused(i32),
}

impl fmt::Display for MsrpLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reentrant => f.write_str(
                "this thread holds the lock already: \
                 lock once, around all uses of the lock's resources",
            ),
            Self::Deadlock => f.write_str(
                "threads would deadlock: \
                 let resources that one job may hold at the same time share one lock",
            ),
            Self::Refused(number) => write!(f, "the kernel refused to wait, error number {number}"),
        }
    }
}

impl core::error::Error for MsrpLockError {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "refuses to unlock")]
    fn panics_if_it_cannot_unlock() {
        let (lock, me) = (MsrpLock::new(), MsrpThread::current());
        let held = lock.lock_while(&me, || false).unwrap();
        // Another thread owns the lock and a third one waits, as seen in the child of a fork.
        lock.owner.0.store(0x8000_0000 | 0x3fff_fffe, Ordering::Relaxed);
        drop(held);
    }
}

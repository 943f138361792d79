//! Exclusive access to a value, also across `.await`, first come, first served.
//!
//! ```
//! use punctual_sync::asynch::arbiter::Arbiter;
//!
//! // A slow device that several tasks use, like a bus.
//! static BUS: Arbiter<Vec<u8>> = Arbiter::new(Vec::new());
//!
//! async fn transfer(byte: u8) {
//!     let mut bus = BUS.access().await;
//!     bus.push(byte);
//!     // other tasks run; this task retains the bus
//! }
//! # let mut transfer = core::pin::pin!(transfer(17));
//! # let mut context = core::task::Context::from_waker(core::task::Waker::noop());
//! # assert!(transfer.as_mut().poll(&mut context).is_ready());
//! # assert_eq!(*BUS.try_access().unwrap(), [17]);
//! ```
//!
//! The names and the order of service are those of `rtic_sync::arbiter`.
//!
//! # Leaks
//!
//! A future or an access that is leaked, by `mem::forget` or in a cycle of `Rc`s, looks to the
//! others like that of a slow task: they cannot detect that it will never continue. This is sound,
//! and [`Arbiter::restore`] repairs it when the arbiter is not shared:
//!
//! * A leaked [`ExclusiveAccess`] never ends: `try_access` returns `None`, `access` waits forever.
//! * The same holds for an [`Access`] leaked while it waits, from the moment its turn comes; until
//!   then it occupies one of the `W` slots.
//! * An [`Access`] that was never polled, or has completed, occupies nothing.
//!
//! Real-time safety: nothing allocates, blocks or enters the kernel, except what wakers do.
//! Requesting and ending an access are lock-free, see the parent module.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::task::{Context, Poll};

use super::permits::Permits;
use super::waiters::Waiting;
use crate::atomic::UnsafeCell;

/// Gives one task at a time access to a value, with slots for `W` waiting tasks.
pub struct Arbiter<T, const W: usize = 16> {
    /// A single permit; its holder has access.
    permits: Permits<W>,
    inner: UnsafeCell<T>,
}

// SAFETY: only `ExclusiveAccess`, which holds the only permit, accesses the value; permits pass
// with release and acquire. Several threads use the value in turn: `T: Send`.
unsafe impl<T: Send, const W: usize> Sync for Arbiter<T, W> {}

impl<T> Arbiter<T> {
    crate::atomic::const_new! {
        /// Creates an arbiter with 16 slots.
        pub fn new(inner: T) -> Self {
            Self::with_slots(inner)
        }
    }
}

impl<T, const W: usize> Arbiter<T, W> {
    crate::atomic::const_new! {
        /// Creates an arbiter with `W` slots, up to 32.
        pub fn with_slots(inner: T) -> Self {
            Self { permits: Permits::new(1), inner: UnsafeCell::new(inner) }
        }
    }

    /// Waits for exclusive access. Tasks get it in the order in which they first polled for it.
    ///
    /// # Panics
    /// If polled while `W` tasks wait already.
    pub fn access(&self) -> Access<'_, T, W> {
        Access { arbiter: self, waiting: None, is_done: false }
    }

    /// Returns exclusive access if no task has it or waits for it.
    pub fn try_access(&self) -> Option<ExclusiveAccess<'_, T, W>> {
        self.permits.try_acquire().then(|| self.granted())
    }

    /// Returns the value without acquiring access: the mutable borrow proves that no access exists,
    /// not even a leaked one.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `self` is borrowed mutably for the lifetime of the result, and every access
        // borrows it.
        self.inner.with_mut(|inner| unsafe { &mut *inner })
    }

    /// Resets the arbiter, with all its slots, after an access or a future was leaked. The mutable
    /// borrow proves that all others have ended.
    pub fn restore(&mut self) {
        self.permits = Permits::new(1);
    }

    /// The caller has acquired the permit.
    fn granted(&self) -> ExclusiveAccess<'_, T, W> {
        ExclusiveAccess { arbiter: self, inner: PhantomData }
    }
}

impl<T, const W: usize> fmt::Debug for Arbiter<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arbiter").field("taken", &(self.permits.free() == 0)).finish_non_exhaustive()
    }
}

/// The future returned by [`Arbiter::access`]. Dropping it before it is ready leaves the queue;
/// leaking it does not, see the [module](self).
#[must_use = "futures do nothing unless they are awaited"]
pub struct Access<'a, T, const W: usize = 16> {
    arbiter: &'a Arbiter<T, W>,
    waiting: Option<Waiting>,
    is_done: bool,
}

impl<'a, T, const W: usize> Future for Access<'a, T, W> {
    type Output = ExclusiveAccess<'a, T, W>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_done, "an access that was granted was polled again");
        let arbiter = self.arbiter;
        let polled = arbiter.permits.poll_acquire(&mut self.waiting, cx.waker());
        self.is_done = polled.is_ready();
        polled.map(|()| arbiter.granted())
    }
}

impl<T, const W: usize> Drop for Access<'_, T, W> {
    fn drop(&mut self) {
        self.arbiter.permits.withdraw(&mut self.waiting);
    }
}

impl<T, const W: usize> fmt::Debug for Access<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("arbiter", self.arbiter).finish_non_exhaustive()
    }
}

/// Access to the value of an [`Arbiter`]. Dropping it, also while a panic unwinds, passes the
/// access to the next task; leaking it does not, see the [module](self).
pub struct ExclusiveAccess<'a, T, const W: usize = 16> {
    arbiter: &'a Arbiter<T, W>,
    /// An access may be sent or shared only if a `&mut T` may.
    inner: PhantomData<&'a mut T>,
}

impl<T, const W: usize> Deref for ExclusiveAccess<'_, T, W> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this access has the only permit, and it is borrowed.
        self.arbiter.inner.with(|inner| unsafe { &*inner })
    }
}

impl<T, const W: usize> DerefMut for ExclusiveAccess<'_, T, W> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this access has the only permit, and it is borrowed mutably.
        self.arbiter.inner.with_mut(|inner| unsafe { &mut *inner })
    }
}

impl<T, const W: usize> Drop for ExclusiveAccess<'_, T, W> {
    fn drop(&mut self) {
        self.arbiter.permits.release();
    }
}

impl<T: fmt::Debug, const W: usize> fmt::Debug for ExclusiveAccess<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExclusiveAccess").field(&**self).finish()
    }
}

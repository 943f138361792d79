//! A lock that is served in order of arrival, for threads on different CPUs and with a bound on the wait.
//!
//! ```
//! use punctual_sync::shared::TicketLock;
//!
//! static POSE: TicketLock<[f32; 3]> = TicketLock::new([0.0; 3]);
//!
//! POSE.lock(1_000).unwrap()[2] = 0.5;
//! let held = POSE.lock(1_000).unwrap();
//! assert!(POSE.try_lock().is_none());
//! assert!(POSE.lock(10).is_err());
//! assert_eq!(*held, [0.0, 0.0, 0.5]);
//! ```
//!
//! Waiting threads spin. On one CPU a high level would spin for a low one that it preempted, until the bound: use a
//! [PCP mutex](crate) between the levels of one CPU.
//!
//! Tickets with one place per waiter to spin on (T. E. Anderson, "The Performance of Spin Lock Alternatives for
//! Shared-Memory Multiprocessors", TPDS 1(1), 1990, section IV-D). A thread that gives up marks its place and goes;
//! the holder that comes to the mark passes over it (the idea is that of M. L. Scott, W. N. Scherer, "Scalable
//! Queue-Based Spin Locks with Timeout", PPoPP 2001, for queues of nodes).
//!
//! Real-time safety: nothing allocates or enters the kernel. Taking a ticket is lock-free: an attempt is repeated only
//! if another thread took one. Waiting ends by count. Unlocking passes over each mark once: `W` at most, unless
//! further threads give up meanwhile, each of which has spun through its bound.
//!
//! # Invariants
//!
//! *T1* There is one token. It is held by a guard, or lies as `GRANTED` in the place of the ticket `serving`, or is in
//! the hands of the thread that unlocks.
//! *T2* `serving ≤ next ≤ serving + W`: a place belongs to at most one ticket that is not finished.
//! *T3* The place of a ticket that is finished or not yet taken is `EMPTY`, except for that of `serving`.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use super::{LockError, Padded};
use crate::atomic::{AtomicU32, Ordering, UnsafeCell, relax};
use crate::seed::seeded;

/// What a place holds.
const EMPTY: u32 = 0;
const GRANTED: u32 = 1;
const ABANDONED: u32 = 2;

/// A value behind a ticket lock with places for `W` threads, a power of two.
#[repr(C)]
pub struct TicketLock<T, const W: usize = 16> {
    next: Padded<AtomicU32>,
    serving: Padded<AtomicU32>,
    places: [Padded<AtomicU32>; W],
    value: UnsafeCell<T>,
}

// SAFETY: by T1 one guard at a time reaches the value, and the token passes with release and acquire. The value is
// used by several threads in turn: `T: Send`.
unsafe impl<T: Send, const W: usize> Sync for TicketLock<T, W> {}
// SAFETY: a lock owns its value.
unsafe impl<T: Send, const W: usize> Send for TicketLock<T, W> {}

impl<T> TicketLock<T> {
    /// An unlocked lock with 16 places.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self::with_places(value)
    }

    /// An unlocked lock with 16 places.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self::with_places(value)
    }
}

impl<T, const W: usize> TicketLock<T, W> {
    const CHECK: () = assert!(W.is_power_of_two() && W <= 1 << 16, "places: a power of two up to 2^16");

    /// An unlocked lock.
    #[cfg(not(loom))]
    pub const fn with_places(value: T) -> Self {
        let () = Self::CHECK;
        let mut places = [const { Padded(AtomicU32::new(EMPTY)) }; W];
        places[0] = Padded(AtomicU32::new(GRANTED));
        let (next, serving) = (Padded(AtomicU32::new(0)), Padded(AtomicU32::new(0)));
        Self { next, serving, places, value: UnsafeCell::new(value) }
    }

    /// An unlocked lock.
    #[cfg(loom)]
    pub fn with_places(value: T) -> Self {
        let () = Self::CHECK;
        let place = |i| Padded(AtomicU32::new(if i == 0 { GRANTED } else { EMPTY }));
        let (next, serving) = (Padded(AtomicU32::new(0)), Padded(AtomicU32::new(0)));
        Self { next, serving, places: core::array::from_fn(place), value: UnsafeCell::new(value) }
    }

    /// Locks, spinning for at most `turns` turns of a loop. If a panic unwinds through the guard, it unlocks; the
    /// value is then as the panic left it.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] if the turn did not come, [`LockError::Full`] if all `W` places are taken.
    pub fn lock(&self, turns: u32) -> Result<TicketGuard<'_, T, W>, LockError> {
        let ticket = self.draw()?;
        let place = self.place(ticket);
        for _ in 0..turns {
            if place.load(Ordering::Acquire) == GRANTED {
                return Ok(self.guard(ticket));
            }
            relax();
        }
        if seeded!("seed-ticket-leave-blindly") {
            place.store(ABANDONED, Ordering::Relaxed);
            return Err(LockError::TimedOut);
        }
        // Acquire on failure: the token came at the last moment, with the value.
        match place.compare_exchange(EMPTY, ABANDONED, Ordering::Relaxed, Ordering::Acquire) {
            Ok(_) => Err(LockError::TimedOut),
            Err(_) => Ok(self.guard(ticket)),
        }
    }

    /// Locks if nobody holds the lock or waits for it.
    pub fn try_lock(&self) -> Option<TicketGuard<'_, T, W>> {
        let ticket = self.next.0.load(Ordering::Relaxed);
        // Acquire, and before the look at the place: a mark that an earlier lap left there has been overwritten.
        if self.serving.0.load(Ordering::Acquire) != ticket {
            return None;
        }
        // Acquire: the token comes with the value. If nobody draws this ticket first, it is the caller's.
        if self.place(ticket).load(Ordering::Acquire) != GRANTED {
            return None;
        }
        let drawn = ticket.wrapping_add(1);
        let exchange = self.next.0.compare_exchange(ticket, drawn, Ordering::Relaxed, Ordering::Relaxed);
        exchange.is_ok().then(|| self.guard(ticket))
    }

    /// Takes the next ticket.
    fn draw(&self) -> Result<u32, LockError> {
        let mut ticket = self.next.0.load(Ordering::Relaxed);
        loop {
            // Acquire: this thread finds the place as the unlocker of its last ticket left it, empty. If the ticket
            // is still the next one after this, then `serving` was not beyond it.
            let serving = self.serving.0.load(Ordering::Acquire);
            let ahead = ticket.wrapping_sub(serving);
            if ahead as usize >= W && ahead <= u32::MAX / 2 {
                return Err(LockError::Full);
            }
            let drawn = ticket.wrapping_add(1);
            match self.next.0.compare_exchange(ticket, drawn, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(ticket),
                Err(now) => ticket = now,
            }
        }
    }

    fn unlock(&self, mut ticket: u32) {
        loop {
            self.place(ticket).store(EMPTY, Ordering::Relaxed);
            ticket = ticket.wrapping_add(1);
            // Release: pairs with the acquire in `draw`.
            self.serving.0.store(ticket, Ordering::Release);
            let relaxed = seeded!("seed-ticket-grant-relaxed");
            // Release: the token goes with the value.
            let order = if relaxed { Ordering::Relaxed } else { Ordering::Release };
            let place = self.place(ticket);
            if place.compare_exchange(EMPTY, GRANTED, order, Ordering::Relaxed).is_ok() {
                return;
            }
            // Abandoned: its owner has gone, and this thread finishes the ticket as if it had held it.
        }
    }

    /// How many tickets are not finished at this moment.
    pub(crate) fn tickets(&self) -> u32 {
        // In this order, so that `next` is hardly ever the older one. Where it is, it says nothing about now.
        let serving = self.serving.0.load(Ordering::Acquire);
        let ahead = self.next.0.load(Ordering::Relaxed).wrapping_sub(serving);
        if ahead > u32::MAX / 2 { 0 } else { ahead }
    }

    fn place(&self, ticket: u32) -> &AtomicU32 {
        &self.places[ticket as usize % W].0
    }

    /// The caller received the token for `ticket`.
    fn guard(&self, ticket: u32) -> TicketGuard<'_, T, W> {
        TicketGuard { lock: self, ticket, value: PhantomData }
    }
}

impl<T, const W: usize> fmt::Debug for TicketLock<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketLock").field("tickets", &self.tickets()).finish_non_exhaustive()
    }
}

/// The right to use a [`TicketLock`]'s value. Dropping it unlocks.
#[must_use]
pub struct TicketGuard<'a, T, const W: usize = 16> {
    lock: &'a TicketLock<T, W>,
    ticket: u32,
    /// A guard may be shared only if the value may.
    value: PhantomData<&'a mut T>,
}

impl<T, const W: usize> Deref for TicketGuard<'_, T, W> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: by T1 this guard is the only one, and it is borrowed.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T, const W: usize> DerefMut for TicketGuard<'_, T, W> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: by T1 this guard is the only one, and it is borrowed mutably.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T, const W: usize> Drop for TicketGuard<'_, T, W> {
    fn drop(&mut self) {
        self.lock.unlock(self.ticket);
    }
}

impl<T: fmt::Debug, const W: usize> fmt::Debug for TicketGuard<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TicketGuard").field(&**self).finish()
    }
}

// SAFETY: `repr(C)` without pointers, and `T` has none. `write` sets what is not zero. Two processes are two threads
// to T1–T3, which rest on atomics alone.
#[cfg(not(loom))]
unsafe impl<T: super::Plain, const W: usize> super::Shareable for TicketLock<T, W> {
    const KIND: u32 = 5;
    const CAPACITY: usize = W;
    type Element = T;
    type Init = T;

    unsafe fn write(this: *mut Self, value: T) {
        let () = Self::CHECK;
        // SAFETY: `this` is valid for writes by the contract of this function.
        unsafe {
            (&raw mut (*this).places).cast::<Padded<AtomicU32>>().write(Padded(AtomicU32::new(GRANTED)));
            (&raw mut (*this).value).write(UnsafeCell::new(value));
        }
    }
}

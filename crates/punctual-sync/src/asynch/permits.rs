//! A number of permits that tasks acquire and release, first come, first served: the common part of [`Arbiter`] and
//! [`Channel`].
//!
//! A released permit goes to the task that has waited longest, which has it before it runs. Nobody overtakes.
//!
//! # Invariants
//!
//! *P1* Permits are neither made nor lost: each is counted in `free`, is in the hands of a thread inside
//! [`Permits::hand_on`], belongs to a notified place, or has been acquired.
//! *P2* A free permit and a waiting task never stay together. Whoever adds to `free` looks for waiting tasks
//! afterwards; whoever begins to wait looks at `free` afterwards; sequentially consistent fences stand between.
//!
//! Real-time safety: lock-free, apart from what wakers do. Nobody waits for a thread that was preempted.
//!
//! [`Arbiter`]: super::arbiter::Arbiter
//! [`Channel`]: super::channel::Channel

use core::task::{Poll, Waker};

use super::waiters::{Waiters, Waiting};
use crate::atomic::{AtomicU32, Ordering, fence};

pub(super) struct Permits<const W: usize> {
    free: AtomicU32,
    waiters: Waiters<W>,
}

impl<const W: usize> Permits<W> {
    #[cfg(not(loom))]
    pub(super) const fn new(free: u32) -> Self {
        Self { free: AtomicU32::new(free), waiters: Waiters::new() }
    }

    #[cfg(loom)]
    pub(super) fn new(free: u32) -> Self {
        Self { free: AtomicU32::new(free), waiters: Waiters::new() }
    }

    /// The number of free permits. A snapshot while others use them.
    pub(super) fn free(&self) -> u32 {
        self.free.load(Ordering::Relaxed)
    }

    /// Takes a permit if one is free and nobody waits for it.
    #[inline]
    pub(super) fn try_acquire(&self) -> bool {
        self.waiters.is_empty() && self.take_free()
    }

    /// Takes a permit, or waits for one in `waiting`.
    pub(super) fn poll_acquire(&self, waiting: &mut Option<Waiting>, waker: &Waker) -> Poll<()> {
        if waiting.is_none() {
            if self.try_acquire() {
                return Poll::Ready(());
            }
            *waiting = Some(self.waiters.begin(waker));
            // A permit may have become free before its releaser could see this task (P2). `begin` put the fence. It
            // goes to whoever is first, which may be this task.
            if self.take_free() {
                self.hand_on();
            }
        }
        if self.waiters.poll(waiting, waker) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Stops waiting, and passes on a permit that came too late.
    pub(super) fn withdraw(&self, waiting: &mut Option<Waiting>) {
        if self.waiters.withdraw(waiting) {
            self.hand_on();
        }
    }

    /// Returns a permit.
    #[inline]
    pub(super) fn release(&self) {
        self.hand_on();
    }

    /// Wakes every waiting task without giving it a permit: see `Channel`.
    pub(super) fn wake_all(&self) {
        self.waiters.wake_all();
    }

    /// Gives the permit in the caller's hands to the first in line, or makes it free.
    fn hand_on(&self) {
        loop {
            if self.waiters.wake_one() {
                return;
            }
            // Release: whoever takes the permit sees what its last holder did.
            self.free.fetch_add(1, Ordering::Release);
            // Somebody may have begun to wait who saw no free permit (P2). Pairs with the fence in `begin`.
            fence(Ordering::SeqCst);
            if self.waiters.is_empty() || !self.take_free() {
                return;
            }
        }
    }

    #[inline]
    fn take_free(&self) -> bool {
        let mut free = self.free.load(Ordering::Relaxed);
        while free > 0 {
            // Acquire: pairs with the release in `hand_on`.
            match self.free.compare_exchange_weak(free, free - 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => free = now,
            }
        }
        false
    }
}

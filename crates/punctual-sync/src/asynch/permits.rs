//! Permits that tasks acquire and release, first come, first served: the common part of [`Arbiter`]
//! and [`Channel`].
//!
//! A released permit goes to the task that has waited longest, which owns it before it runs. No
//! task overtakes another.
//!
//! # Invariants
//!
//! *P1* Permits are neither created nor lost: each is counted in `free`, is held by a thread inside
//! [`Permits::hand_on`], belongs to a notified slot, or has been acquired. *P2* A free permit and a
//! waiting task never coexist for long. A thread that adds to `free` checks for waiting tasks
//! afterwards; a task that begins to wait checks `free` afterwards; sequentially consistent fences
//! separate the two steps.
//!
//! Real-time safety: lock-free, except what wakers do. No thread waits for a preempted one.
//!
//! [`Arbiter`]: super::arbiter::Arbiter
//! [`Channel`]: super::channel::Channel

use core::task::{Poll, Waker};

use super::waiters::{Waiters, Waiting};
use crate::atomic::{AtomicU32, Ordering, const_new, fence};

pub(super) struct Permits<const W: usize> {
    free: AtomicU32,
    waiters: Waiters<W>,
}

impl<const W: usize> Permits<W> {
    const_new! {
        pub(super) fn new(free: u32) -> Self {
            Self { free: AtomicU32::new(free), waiters: Waiters::new() }
        }
    }

    /// Returns the number of free permits. A snapshot while others use them.
    pub(super) fn free(&self) -> u32 {
        self.free.load(Ordering::Relaxed)
    }

    /// Takes a permit if one is free and no task waits for it.
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
            // A permit may have become free before its releaser could see this task (P2). `begin`
            // executed the fence. The permit goes to the first task in line, which may be this one.
            if self.take_free() {
                self.hand_on();
            }
        }
        if self.waiters.poll(waiting, waker) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Stops waiting, and passes on a permit that came too late.
    pub(super) fn withdraw(&self, waiting: &mut Option<Waiting>) {
        let (is_notified, _waker) = self.waiters.withdraw(waiting);
        if is_notified {
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

    /// Gives the caller's permit to the first task in line, or frees it.
    fn hand_on(&self) {
        loop {
            if self.waiters.wake_one() {
                return;
            }
            // Release: the next owner of the permit sees the actions of its last holder.
            self.free.fetch_add(1, Ordering::Release);
            // A task may have begun to wait after it saw no free permit (P2). Pairs with the fence
            // in `begin`.
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

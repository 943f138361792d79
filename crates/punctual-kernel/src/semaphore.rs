//! Semaphores.

use core::cell::Cell;

use crate::kernel::Section;
use crate::slot::{State, ThreadSlot, Wake};
use crate::wait_queue::WaitQueue;
use crate::{Port, SignalError, WaitError};

/// A counter of units that threads take and return, or that represent events. Threads wait for a
/// unit in the order of their priorities, and in order of arrival within a priority; no thread
/// overtakes a waiting one.
///
/// Every operation takes a bounded number of steps: waiters are found by priority and not searched.
/// Only `p` and `p_until` wait; interrupt handlers can call the others.
///
/// # Examples
///
#[cfg_attr(not(feature = "sim"), doc = "```ignore")]
#[cfg_attr(feature = "sim", doc = "```")]
/// # mod guide { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/guide.rs")); }
/// # use guide::*;
/// # use punctual_kernel::{SignalError, WaitError};
/// # static STACK: Stack = Stack::new();
/// static SLOTS: Semaphore = Semaphore::new(1, 3); // one unit of at most three
///
/// # sim::run(|| {
/// # Thread::spawn(5, &STACK, |()| {
/// SLOTS.p().unwrap();
/// assert!(!SLOTS.try_p());
/// assert_eq!(SLOTS.p_until(Kernel::now() + 500), Err(WaitError::TimedOut));
/// SLOTS.v().unwrap();
/// SLOTS.v_by(2).unwrap(); // wakes up to two waiters, highest first
/// assert_eq!(SLOTS.v(), Err(SignalError::Overflow(3)));
/// # }, ()).unwrap();
/// # Kernel::run();
/// # });
/// ```
pub struct Semaphore<P: Port> {
    units: Cell<u32>,
    maximum: u32,
    waiters: WaitQueue<P>,
    home: P::Home,
}

// SAFETY: accessed with interrupts masked, on the one core or thread that the port lets in (see
// `Port`).
unsafe impl<P: Port> Sync for Semaphore<P> {}

impl<P: Port> Semaphore<P> {
    /// Creates a semaphore with `units`, which never has more than `maximum`.
    ///
    /// # Panics
    /// If `units` exceeds `maximum`.
    pub const fn new(units: u32, maximum: u32) -> Self {
        assert!(units <= maximum, "a semaphore begins with at most its maximum");
        Self { units: Cell::new(units), maximum, waiters: WaitQueue::new(), home: P::HOME }
    }

    /// P: takes a unit, waiting for one if necessary.
    ///
    /// # Errors
    /// [`WaitError::CannotBlock`] if no unit is free and the caller cannot wait.
    #[inline]
    pub fn p(&'static self) -> Result<(), WaitError> {
        let section = Section::<P>::enter(&self.home);
        if let Some(left) = self.units.get().checked_sub(1) {
            self.units.set(left);
            return Ok(());
        }
        self.wait(&section, None)
    }

    /// Takes a unit if one is free, and returns whether it did.
    #[inline]
    pub fn try_p(&'static self) -> bool {
        let _section = Section::<P>::enter(&self.home);
        let left = self.units.get().checked_sub(1);
        self.units.set(left.unwrap_or(0));
        left.is_some()
    }

    /// P that waits until `time` at most, in nanoseconds of [`Kernel::now`](crate::Kernel::now).
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] if no unit was free until then, [`WaitError::CannotBlock`] as for
    /// [`p`](Self::p).
    pub fn p_until(&'static self, time: u64) -> Result<(), WaitError> {
        let section = Section::enter(&self.home);
        if let Some(left) = self.units.get().checked_sub(1) {
            self.units.set(left);
            return Ok(());
        }
        self.wait(&section, Some(time))
    }

    #[cold]
    #[inline(never)]
    fn wait(&'static self, section: &Section<P>, until: Option<u64>) -> Result<(), WaitError> {
        let me = section.blocker().ok_or(WaitError::CannotBlock)?;
        if until.is_some_and(|time| time <= P::now()) {
            return Err(WaitError::TimedOut);
        }
        section.kernel.ready.remove(me);
        self.waiters.insert(me);
        match section.kernel.suspend(me, State::Waiting, until) {
            Wake::TimedOut => Err(WaitError::TimedOut),
            Wake::Granted | Wake::OwnerEnded => Ok(()),
        }
    }

    /// V: returns a unit. The first waiting thread gets it, and runs at once if it precedes the
    /// caller.
    ///
    /// # Errors
    /// [`SignalError::Overflow`] if the semaphore has its maximum.
    #[inline]
    pub fn v(&'static self) -> Result<(), SignalError> {
        let section = Section::enter(&self.home);
        let Some(first) = self.waiters.first() else {
            let units = self.units.get();
            if units == self.maximum {
                return Err(SignalError::Overflow(self.maximum));
            }
            self.units.set(units + 1);
            return Ok(());
        };
        self.grant(&section, first);
        Ok(())
    }

    #[inline(never)]
    fn grant(&self, section: &Section<P>, to: &'static ThreadSlot<P>) {
        self.waiters.remove_first(to);
        section.kernel.wake(to, Wake::Granted);
        section.preempt(to, to.rank.get());
    }

    /// V by `n`: returns `n` units at once, to the first `n` waiting threads, and keeps the rest.
    ///
    /// # Errors
    /// [`SignalError::Overflow`] if the maximum would be exceeded; then no unit is added.
    pub fn v_by(&'static self, n: u32) -> Result<(), SignalError> {
        let section = Section::<P>::enter(&self.home);
        let waiting = self.waiters.count(n);
        let units = self.units.get().checked_add(n - waiting).filter(|&units| units <= self.maximum);
        let units = units.ok_or(SignalError::Overflow(self.maximum))?;
        let highest = self.waiters.first();
        for _ in 0..waiting {
            if let Some(first) = self.waiters.first() {
                self.waiters.remove_first(first);
                section.kernel.wake(first, Wake::Granted);
            }
        }
        self.units.set(units);
        if let Some(highest) = highest
            && waiting > 0
        {
            section.preempt(highest, highest.rank.get());
        }
        Ok(())
    }

    /// Returns the current number of units.
    pub fn units(&'static self) -> u32 {
        let _section = Section::<P>::enter(&self.home);
        self.units.get()
    }
}

//! Timers in a list, the next due first. There is no tick: the port's alarm is set to the first.
//!
//! Arming takes as many steps as timers are due earlier, at most as many as there are threads and
//! callbacks.

use core::cell::Cell;

use crate::callback::Callback;
use crate::slot::ThreadSlot;
use crate::{Kernel, Port};

/// The owner of a timer.
pub(crate) enum Owner<P: Port> {
    Thread(&'static ThreadSlot<P>),
    Callback(&'static Callback<P>),
}

impl<P: Port> Clone for Owner<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Port> Copy for Owner<P> {}

type Link<P> = Cell<Option<&'static Timer<P>>>;

pub(crate) struct Timer<P: Port> {
    due: Cell<u64>,
    /// `None` if it is not armed.
    owner: Cell<Option<Owner<P>>>,
    next: Link<P>,
    previous: Link<P>,
}

impl<P: Port> Timer<P> {
    pub(crate) const fn new() -> Self {
        Self { due: Cell::new(0), owner: Cell::new(None), next: Cell::new(None), previous: Cell::new(None) }
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.owner.get().is_some()
    }
}

pub(crate) struct Timers<P: Port> {
    first: Link<P>,
    /// The current setting of the alarm.
    alarm: Cell<u64>,
    /// The end of the running thread's slice, if time is sliced.
    pub(crate) slice_end: Cell<u64>,
}

impl<P: Port> Timers<P> {
    pub(crate) const fn new() -> Self {
        Self { first: Cell::new(None), alarm: Cell::new(u64::MAX), slice_end: Cell::new(u64::MAX) }
    }

    /// Arms a timer that is not armed; after those that are due at the same time.
    pub(crate) fn arm(&self, timer: &'static Timer<P>, due: u64, owner: Owner<P>) {
        timer.due.set(due);
        timer.owner.set(Some(owner));
        let (mut before, mut at) = (None::<&'static Timer<P>>, self.first.get());
        while let Some(next) = at.filter(|next| next.due.get() <= due) {
            before = Some(next);
            at = next.next.get();
        }
        timer.previous.set(before);
        timer.next.set(at);
        match before {
            Some(before) => before.next.set(Some(timer)),
            None => self.first.set(Some(timer)),
        }
        if let Some(at) = at {
            at.previous.set(Some(timer));
        }
        self.program();
    }

    /// Disarms a timer, which may be armed or not. The alarm may still trigger spuriously.
    pub(crate) fn disarm(&self, timer: &'static Timer<P>) {
        if timer.owner.take().is_none() {
            return;
        }
        let (before, after) = (timer.previous.take(), timer.next.take());
        match before {
            Some(before) => before.next.set(after),
            None => self.first.set(after),
        }
        if let Some(after) = after {
            after.previous.set(before);
        }
    }

    /// Removes the first timer if it is due.
    pub(crate) fn take_due(&self, now: u64) -> Option<(u64, Owner<P>)> {
        let timer = self.first.get().filter(|timer| timer.due.get() <= now)?;
        let owner = timer.owner.get()?;
        self.disarm(timer);
        Some((timer.due.get(), owner))
    }

    /// Sets the alarm to the first due time, if that has changed.
    pub(crate) fn program(&self) {
        let due = self.first.get().map_or(u64::MAX, |timer| timer.due.get()).min(self.slice_end.get());
        if due != self.alarm.get() {
            self.alarm.set(due);
            P::alarm(due);
        }
    }

    /// Records that the alarm has triggered, so the port no longer has it.
    fn rung(&self) {
        self.alarm.set(u64::MAX);
    }
}

impl<P: Port> Kernel<P> {
    /// Does the due work. Called with interrupts masked.
    pub(crate) fn expire(&'static self) {
        let now = P::now();
        self.timers.rung();
        while let Some((due, owner)) = self.timers.take_due(now) {
            match owner {
                Owner::Thread(thread) => self.time_out(thread),
                Owner::Callback(callback) => callback.expired(self, due),
            }
        }
        self.end_slice(now);
        self.timers.program();
    }
}

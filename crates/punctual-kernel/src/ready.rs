//! The threads that could run: a ring for each priority, and a bit for each ring that has threads.

use core::cell::Cell;

use crate::Port;
use crate::slot::{Link, ThreadSlot, alone, append, neighbour, unlink};

/// How many priorities there are, from 1.
pub(crate) const PRIORITIES: usize = 32;

/// The threads that are ready, the running one among them. It is the first of its ring.
pub(crate) struct Ready<P: Port> {
    /// Bit `p - 1` is set if a thread of priority `p` is ready.
    bits: Cell<u32>,
    first: [Link<P>; PRIORITIES],
}

#[inline]
fn index(priority: u8) -> usize {
    // Priorities are 1 to 32; the mask shows it to the compiler.
    usize::from(priority.wrapping_sub(1)) & (PRIORITIES - 1)
}

impl<P: Port> Ready<P> {
    pub(crate) const fn new() -> Self {
        Self { bits: Cell::new(0), first: [const { Cell::new(None) }; PRIORITIES] }
    }

    /// Who has to run.
    #[inline]
    pub(crate) fn highest(&self) -> Option<&'static ThreadSlot<P>> {
        // Without any bit this is the ring of the highest priority, which has no first then.
        self.first[31_u32.wrapping_sub(self.bits.get().leading_zeros()) as usize & (PRIORITIES - 1)].get()
    }

    #[inline]
    pub(crate) fn push_last(&self, thread: &'static ThreadSlot<P>) {
        let index = index(thread.priority.get());
        match self.first[index].get() {
            Some(first) => append(first, thread),
            None => self.begin(index, thread),
        }
    }

    #[inline]
    pub(crate) fn push_first(&self, thread: &'static ThreadSlot<P>) {
        let index = index(thread.priority.get());
        match self.first[index].get() {
            Some(first) => {
                append(first, thread);
                self.first[index].set(Some(thread));
            }
            None => self.begin(index, thread),
        }
    }

    #[inline]
    fn begin(&self, index: usize, thread: &'static ThreadSlot<P>) {
        alone(thread);
        self.first[index].set(Some(thread));
        self.bits.set(self.bits.get() | 1 << index);
    }

    #[inline]
    pub(crate) fn remove(&self, thread: &'static ThreadSlot<P>) {
        let index = index(thread.priority.get());
        match unlink(thread) {
            None => {
                self.first[index].set(None);
                self.bits.set(self.bits.get() & !(1 << index));
            }
            Some(next) if self.first[index].get().is_some_and(|first| first.is(thread)) => {
                self.first[index].set(Some(next));
            }
            Some(_) => {}
        }
    }

    /// Puts a thread into the place of another of its priority, which is alone in its ring.
    #[inline]
    pub(crate) fn replace(&self, thread: &ThreadSlot<P>, by: &'static ThreadSlot<P>) {
        alone(by);
        self.first[index(thread.priority.get())].set(Some(by));
    }

    /// Has the ring begin with the thread after its first; returns that.
    #[inline]
    pub(crate) fn rotate(&self, first: &'static ThreadSlot<P>) -> &'static ThreadSlot<P> {
        let next = neighbour(&first.next, first);
        self.first[index(first.priority.get())].set(Some(next));
        next
    }

    /// Whether a ready thread is the only one of its priority that is.
    #[inline]
    pub(crate) fn is_alone(thread: &'static ThreadSlot<P>) -> bool {
        thread.next.get().is_some_and(|next| next.is(thread))
    }

    /// Whether others of the same priority are ready.
    #[inline]
    pub(crate) fn has_peers(thread: &'static ThreadSlot<P>) -> bool {
        !neighbour(&thread.next, thread).is(thread)
    }
}

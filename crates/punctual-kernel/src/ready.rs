//! The threads that could run: a ring for each priority, and a bit for each ring that has threads.

use core::cell::Cell;

use crate::Port;
use crate::rank::{RANKS, Rank};
use crate::slot::{Link, ThreadSlot, append, neighbour, unlink};

/// The threads that are ready, the running one among them. It is the first of its ring.
// In this order, as in `Kernel`: what is reached by an index takes no instruction more where it is at the front.
#[repr(C)]
pub(crate) struct Ready<P: Port> {
    /// Of each rank, and one more that no rank has: what `highest` finds where no bit is set.
    first: [Link<P>; RANKS + 1],
    /// The bits of those ranks of which a thread is ready.
    bits: Cell<u32>,
}

impl<P: Port> Ready<P> {
    pub(crate) const fn new() -> Self {
        Self { bits: Cell::new(0), first: [const { Cell::new(None) }; RANKS + 1] }
    }

    /// Who has to run.
    #[inline]
    pub(crate) fn highest(&self) -> Option<&'static ThreadSlot<P>> {
        self.first[self.bits.get().leading_zeros() as usize].get()
    }

    #[inline]
    pub(crate) fn push_last(&self, thread: &'static ThreadSlot<P>) {
        let rank = thread.rank.get();
        match self.first[rank.index()].get() {
            Some(first) => append(first, thread),
            None => self.begin(rank, thread),
        }
    }

    #[inline]
    pub(crate) fn push_first(&self, thread: &'static ThreadSlot<P>) {
        let rank = thread.rank.get();
        match self.first[rank.index()].get() {
            Some(first) => {
                append(first, thread);
                self.first[rank.index()].set(Some(thread));
            }
            None => self.begin(rank, thread),
        }
    }

    #[inline]
    fn begin(&self, rank: Rank, thread: &'static ThreadSlot<P>) {
        self.first[rank.index()].set(Some(thread));
        self.bits.set(self.bits.get() | rank.bit());
    }

    #[inline]
    pub(crate) fn remove(&self, thread: &'static ThreadSlot<P>) {
        let rank = thread.rank.get();
        match unlink(thread) {
            None => {
                self.first[rank.index()].set(None);
                self.bits.set(self.bits.get() & !rank.bit());
            }
            Some(next) if self.first[rank.index()].get().is_some_and(|first| first.is(thread)) => {
                self.first[rank.index()].set(Some(next));
            }
            Some(_) => {}
        }
    }

    /// Puts a thread into the place of another of its priority, which is alone in its ring.
    #[inline]
    pub(crate) fn replace(&self, rank: Rank, by: &'static ThreadSlot<P>) {
        self.first[rank.index()].set(Some(by));
    }

    /// Has the ring begin with the thread after its first; returns that.
    #[inline]
    pub(crate) fn rotate(&self, first: &'static ThreadSlot<P>) -> &'static ThreadSlot<P> {
        let next = neighbour(&first.next, first);
        self.first[first.rank.get().index()].set(Some(next));
        next
    }

    /// Whether a ready thread is the only one of its priority that is.
    #[inline]
    pub(crate) fn is_alone(thread: &'static ThreadSlot<P>) -> bool {
        thread.next.get().is_none_or(|next| next.is(thread))
    }
}

//! The ready threads: a ring for each priority, and a bit for each ring that has threads.

use core::cell::Cell;

use crate::Port;
use crate::rank::{RANKS, Rank};
use crate::slot::{Link, ThreadSlot, append, neighbor, unlink};

/// The threads that are ready, including the running one, which is the first of its ring.
// The order of the fields matters, as in `Kernel`: indexed access needs no extra instruction at the
// front.
#[repr(C)]
pub(crate) struct Ready<P: Port> {
    /// The first thread of each rank, and one more entry: the result of `highest` if no bit is set.
    first: [Link<P>; RANKS + 1],
    /// One bit for each rank with a ready thread.
    bits: Cell<u32>,
}

impl<P: Port> Ready<P> {
    pub(crate) const fn new() -> Self {
        Self { bits: Cell::new(0), first: [const { Cell::new(None) }; RANKS + 1] }
    }

    /// Returns the thread that has to run.
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

    /// Replaces a thread that is alone in its ring by another of its priority.
    #[inline]
    pub(crate) fn replace(&self, rank: Rank, by: &'static ThreadSlot<P>) {
        self.first[rank.index()].set(Some(by));
    }

    /// Rotates the ring so that it begins with the thread after its first; returns that thread.
    #[inline]
    pub(crate) fn rotate(&self, first: &'static ThreadSlot<P>) -> &'static ThreadSlot<P> {
        let next = neighbor(&first.next, first);
        self.first[first.rank.get().index()].set(Some(next));
        next
    }

    /// Returns `true` if a ready thread is the only ready one of its priority.
    #[inline]
    pub(crate) fn is_alone(thread: &'static ThreadSlot<P>) -> bool {
        thread.next.get().is_none_or(|next| next.is(thread))
    }
}

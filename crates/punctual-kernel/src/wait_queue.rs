//! A queue of waiting threads, the highest priority first, and in order of arrival within a
//! priority.
//!
//! Threads of one priority form a ring, and the first of each ring form a list. So inserting takes
//! as many steps as there are higher priorities, 31 at most, for any number of waiters; every other
//! operation takes constant time.

use core::cell::Cell;

use crate::Port;
use crate::slot::{Link, ThreadSlot, append, neighbor, unlink};

pub(crate) struct WaitQueue<P: Port> {
    highest: Link<P>,
}

impl<P: Port> WaitQueue<P> {
    pub(crate) const fn new() -> Self {
        Self { highest: Cell::new(None) }
    }

    /// Returns the thread to be woken first.
    #[inline]
    pub(crate) fn first(&self) -> Option<&'static ThreadSlot<P>> {
        self.highest.get()
    }

    /// Inserts a thread, which is in no ring.
    pub(crate) fn insert(&'static self, thread: &'static ThreadSlot<P>) {
        let rank = thread.rank.get();
        thread.queue.set(Some(self));
        let mut above = None;
        let mut at = self.highest.get();
        while let Some(first) = at {
            if first.rank.get() == rank {
                append(first, thread);
                return;
            }
            if first.rank.get() > rank {
                break;
            }
            above = Some(first);
            at = first.lower.get();
        }
        thread.higher.set(above);
        thread.lower.set(at);
        self.join(above, Some(thread));
        if let Some(below) = at {
            below.higher.set(Some(thread));
        }
    }

    /// Removes the first thread.
    #[inline]
    pub(crate) fn remove_first(&self, first: &'static ThreadSlot<P>) {
        first.queue.set(None);
        if first.lower.get().is_none() && neighbor(&first.next, first).is(first) {
            return self.highest.set(None);
        }
        let below = first.lower.take();
        let next = unlink(first);
        if let Some(next) = next {
            next.lower.set(below);
        }
        if let Some(below) = below {
            below.higher.set(next);
        }
        self.highest.set(next.or(below));
    }

    /// Removes a waiting thread.
    pub(crate) fn remove(&self, thread: &'static ThreadSlot<P>) {
        thread.queue.set(None);
        let (above, below) = (thread.higher.get(), thread.lower.get());
        let next = unlink(thread);
        let leads =
            self.highest.get().is_some_and(|first| first.is(thread)) || above.is_some() || below.is_some();
        if !leads {
            return;
        }
        thread.higher.set(None);
        thread.lower.set(None);
        if let Some(next) = next {
            next.higher.set(above);
            next.lower.set(below);
        }
        let now_below = next.or(below);
        self.join(above, now_below);
        if let Some(below) = below {
            below.higher.set(next.or(above));
        }
    }

    #[inline]
    fn join(&self, above: Option<&'static ThreadSlot<P>>, below: Option<&'static ThreadSlot<P>>) {
        match above {
            Some(above) => above.lower.set(below),
            None => self.highest.set(below),
        }
    }
}

impl<P: Port> WaitQueue<P> {
    /// Returns the number of waiting threads, at most `limit`. Takes a step for each.
    pub(crate) fn count(&self, limit: u32) -> u32 {
        let mut count = 0;
        let mut leader = self.highest.get();
        while let Some(first) = leader {
            let mut at = first;
            loop {
                if count == limit {
                    return count;
                }
                count += 1;
                at = neighbor(&at.next, at);
                if at.is(first) {
                    break;
                }
            }
            leader = first.lower.get();
        }
        count
    }
}

//! The queue and its senders.

use super::node::{Cargo, INDEX, INDEX_BITS, Nodes};
use super::pending::{Next, Pending};
use super::{Full, TimedReceiver};
use crate::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, UnsafeCell, const_new};
use crate::time::{Instant, now};
use crate::{Taken, futex};

/// The receiver sleeps, or is about to.
pub(super) const PARKED: u32 = 1 << INDEX_BITS;
/// There may be a scheduled item in the queue.
pub(super) const TIMERS: u32 = PARKED << 1;

/// A queue of up to `N` items, from any number of threads to one.
///
/// Senders share a reference; the receiving thread claims the [`TimedReceiver`]. See the
/// [module](super) for the order of items and the cost.
///
/// ```
/// use punctual_sync::TimedQueue;
///
/// static QUEUE: TimedQueue<u32, 2> = TimedQueue::new();
///
/// QUEUE.send(1)?;
/// QUEUE.send(2)?;
/// assert_eq!(QUEUE.send(3).unwrap_err().0, 3);
/// assert_eq!(QUEUE.receiver()?.try_recv().unwrap().value, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TimedQueue<T, const N: usize> {
    /// The futex: the item that arrived last, [`PARKED`] and [`TIMERS`].
    pub(super) inbox: AtomicU32,
    /// While parked: the wake-up time, in ns.
    pub(super) until: AtomicU64,
    claimed: AtomicBool,
    pub(super) nodes: Nodes<T, N>,
    /// Owned by the claimed receiver.
    pub(super) pending: UnsafeCell<Pending<N>>,
}

// SAFETY: items move from the sending thread to the receiving one, hence `T: Send`. Only the owner
// of a node accesses its item: the sender that claimed it, then, through the inbox, the receiver.
// `pending` is accessed only by the receiver, of which `claimed` allows one at a time, or with a
// mutable borrow of the queue.
unsafe impl<T: Send, const N: usize> Sync for TimedQueue<T, N> {}
// SAFETY: as above; no part of it is bound to a thread.
unsafe impl<T: Send, const N: usize> Send for TimedQueue<T, N> {}

impl<T, const N: usize> Default for TimedQueue<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> TimedQueue<T, N> {
    const_new! {
        /// Creates an empty queue. `N` is 1 to 65534, checked at compile time.
        pub fn new() -> Self {
            Self {
                inbox: AtomicU32::new(0),
                until: AtomicU64::new(0),
                claimed: AtomicBool::new(false),
                nodes: Nodes::new(),
                pending: UnsafeCell::new(Pending::new()),
            }
        }
    }

    /// Returns the queue's capacity, in items.
    pub const fn capacity(&self) -> usize {
        N
    }

    /// Sends an item that is ready at once.
    ///
    /// Enters the kernel only to wake a sleeping receiver. Does not allocate and does not block.
    ///
    /// # Errors
    ///
    /// [`Full`] with the item, if the queue holds `N` items.
    #[inline]
    pub fn send(&self, value: T) -> Result<(), Full<T>> {
        let Some(node) = self.nodes.claim() else { return Err(Full(value)) };
        let place = self.nodes.get(node);
        let mut word = self.inbox.load(Ordering::Relaxed);
        // An item scheduled after this load is scheduled during this call, so this item may count
        // as sent before.
        let time = sent(word);
        // SAFETY: `claim` gave the node to this thread, and it is pushed only below.
        unsafe { place.fill(Cargo { value, scheduled: false, time }) };
        loop {
            place.next.store(word & INDEX, Ordering::Relaxed);
            // Release: the receiver sees the item and its link. The thread that clears the flag
            // wakes.
            let pushed = word & TIMERS | (node + 1);
            match self.inbox.compare_exchange(word, pushed, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if word & PARKED != 0 {
            futex::wake(&self.inbox, 1);
        }
        Ok(())
    }

    /// Sends an item that is ready at `due`, or at once if that has passed.
    ///
    /// Enters the kernel only to wake a receiver that would sleep past `due`. Does not allocate and
    /// does not block.
    ///
    /// # Errors
    ///
    /// [`Full`] with the item, if the queue holds `N` items.
    pub fn send_at(&self, value: T, due: Instant) -> Result<(), Full<T>> {
        let Some(node) = self.nodes.claim() else { return Err(Full(value)) };
        let (place, time) = (self.nodes.get(node), due.as_ticks());
        // SAFETY: `claim` gave the node to this thread, and it is pushed only below.
        unsafe { place.fill(Cargo { value, scheduled: true, time }) };
        let mut word = self.inbox.load(Ordering::Relaxed);
        loop {
            place.next.store(word & INDEX, Ordering::Relaxed);
            let pushed = word & PARKED | TIMERS | (node + 1);
            // Acquire: if the receiver is parked, then its `until` is seen below.
            match self.inbox.compare_exchange(word, pushed, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if word & PARKED == 0 {
            return Ok(());
        }
        let until = self.until.load(Ordering::Relaxed);
        if time < until && self.inbox.fetch_and(!PARKED, Ordering::Relaxed) & PARKED != 0 {
            futex::wake(&self.inbox, 1);
        }
        Ok(())
    }

    /// Claims the receiving side, until the receiver is dropped. Any thread may claim it and move
    /// it to another thread.
    ///
    /// # Errors
    ///
    /// [`Taken`] if a receiver exists.
    pub fn receiver(&self) -> Result<TimedReceiver<'_, T, N>, Taken> {
        // Acquire: the last receiver has released `pending`.
        match self.claimed.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(TimedReceiver::new(self)),
            Err(_) => Err(Taken),
        }
    }

    /// Makes the receiving side available again.
    pub(super) fn unclaim(&self) {
        self.claimed.store(false, Ordering::Release);
    }

    /// Moves arrived items into `pending`, in order of arrival, and clears the parked flag.
    ///
    /// # Safety
    ///
    /// The caller is the receiver, and has no other reference to `pending`.
    #[inline]
    pub(super) unsafe fn collect(&self, pending: &mut Pending<N>) {
        let word = self.inbox.load(Ordering::Relaxed);
        if word & (INDEX | PARKED) == 0 && (word & TIMERS == 0 || pending.has_scheduled()) {
            return;
        }
        // Acquire: pairs with the release of every push since the last time.
        let mut last_in = self.inbox.fetch_and(TIMERS, Ordering::Acquire) & INDEX;
        let mut chain = 0;
        while last_in != 0 {
            let next = &self.nodes.get(last_in - 1).next;
            let before = next.load(Ordering::Relaxed);
            next.store(chain, Ordering::Relaxed);
            (chain, last_in) = (last_in, before);
        }
        while chain != 0 {
            let place = self.nodes.get(chain - 1);
            // SAFETY: a node from the inbox is filled and owned by the receiver, which is the
            // caller.
            match unsafe { place.time() } {
                (true, due) => pending.push_scheduled(chain - 1, due),
                (false, sent) => pending.push_immediate(chain - 1, sent),
            }
            chain = place.next.load(Ordering::Relaxed);
        }
        if !pending.has_scheduled() && word & TIMERS != 0 {
            // Fails if something has arrived since, which may be scheduled.
            let _ = self.inbox.compare_exchange(TIMERS, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// As [`collect`](Self::collect); but if there is a single item, and it is ready, returns its
    /// node instead of moving it. Calls `now` only if the item is scheduled.
    ///
    /// # Safety
    ///
    /// As for [`collect`](Self::collect).
    #[inline]
    pub(super) unsafe fn collect_or_take(
        &self,
        pending: &mut Pending<N>,
        now: impl FnOnce() -> u64,
    ) -> Option<u32> {
        // Acquire: pairs with the release of the push, for the link and the item.
        let word = self.inbox.load(Ordering::Acquire);
        if word & PARKED == 0
            && pending.is_empty()
            && let Some(node) = (word & INDEX).checked_sub(1)
            && self.nodes.get(node).next.load(Ordering::Relaxed) == 0
            // SAFETY: a node in the inbox is filled and owned by the receiver, which is the caller.
            && let (scheduled, due) = unsafe { self.nodes.get(node).time() }
            && (!scheduled || due <= now())
            // Relaxed: no other thread removes the node, so its link is unchanged. If another has
            // arrived since, both are collected. Afterwards no item is scheduled.
            && self.inbox.compare_exchange(word, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return Some(node);
        }
        // SAFETY: by this function's contract.
        unsafe { self.collect(pending) };
        None
    }

    /// Takes the item out of `node` and frees the node.
    ///
    /// # Safety
    ///
    /// The caller is the receiver and has just removed `node` from `pending`.
    #[inline]
    pub(super) unsafe fn unload(&self, node: u32) -> Cargo<T> {
        // SAFETY: `pending` held the node, so it is filled and owned by the receiver; it has been
        // removed, so this is the last use of its item.
        let cargo = unsafe { self.nodes.get(node).take() };
        self.nodes.release(node);
        cargo
    }
}

/// Returns the sending time of an immediate item, or 0 if no item is scheduled.
#[inline]
fn sent(word: u32) -> u64 {
    if word & TIMERS != 0 { now().as_ticks().max(1) } else { 0 }
}

impl<T, const N: usize> Drop for TimedQueue<T, N> {
    fn drop(&mut self) {
        self.pending.with_mut(|pending| {
            // SAFETY: the queue is borrowed mutably, so there is no receiver and no other reference
            // to `pending`.
            let pending = unsafe { &mut *pending };
            // SAFETY: as above, so this stands for the receiver.
            unsafe { self.collect(pending) };
            while let Next::Ready(node) = pending.next(|| u64::MAX) {
                // SAFETY: as above, and `next` has just returned the node.
                drop(unsafe { self.unload(node) });
            }
        });
    }
}

impl<T, const N: usize> core::fmt::Debug for TimedQueue<T, N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let parked = self.inbox.load(Ordering::Relaxed) & PARKED != 0;
        f.debug_struct("TimedQueue").field("capacity", &N).field("parked", &parked).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn senders_read_no_clock_without_scheduled_items() {
        let queue = TimedQueue::<u8, 2>::new();
        let mut receiver = queue.receiver().unwrap();
        let inbox = || queue.inbox.load(Ordering::Relaxed);
        queue.send_at(1, now()).unwrap();
        assert_eq!(inbox() & TIMERS, TIMERS);
        assert_eq!(receiver.try_recv().map(|item| item.value), Some(1));
        assert!(receiver.try_recv().is_none());
        assert_eq!(inbox(), 0);
        for value in [2, 3] {
            queue.send_at(value, now()).unwrap();
        }
        for value in [2, 3] {
            assert_eq!(receiver.try_recv().map(|item| item.value), Some(value));
        }
        assert!(receiver.try_recv().is_none());
        assert_eq!(inbox(), 0, "cleared after the last of several");
    }
}

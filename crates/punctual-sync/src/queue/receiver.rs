//! The receiving side of the queue.

use core::cell::Cell;
use core::marker::PhantomData;

use super::Item;
use super::pending::Next;
use super::timed::{PARKED, TIMERS, TimedQueue};
use crate::atomic::Ordering;
use crate::futex;
use crate::time::{Instant, now};

/// The receiving end of a [`TimedQueue`].
///
/// It can be moved to another thread but not shared. Dropping it leaves the items for the next
/// receiver; leaking it closes the receiving side permanently.
///
/// ```compile_fail
/// # use punctual_sync::{TimedReceiver, TimedQueue};
/// fn shared<T: Sync>(_: T) {}
/// shared(TimedQueue::<u8, 4>::new().receiver().unwrap());
/// ```
///
/// ```
/// use punctual_sync::{Duration, TimedQueue, now};
///
/// let queue = TimedQueue::<u8, 4>::new();
/// let mut receiver = queue.receiver()?;
/// assert!(queue.receiver().is_err(), "there is only one");
///
/// queue.send_at(1, now() + Duration::from_secs(3600))?;
/// assert_eq!(receiver.len(), 1);
/// assert_eq!(receiver.try_recv(), None);
/// assert_eq!(receiver.recv_deadline(now() + Duration::from_micros(10)), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TimedReceiver<'q, T, const N: usize> {
    queue: &'q TimedQueue<T, N>,
    /// `Send`, but not `Sync`.
    _one_thread: PhantomData<Cell<()>>,
}

/// The result of checking the queue.
enum CheckResult<T> {
    Item(Item<T>),
    /// No item is ready before this time in ns.
    Until(u64),
}

impl<'q, T, const N: usize> TimedReceiver<'q, T, N> {
    pub(super) fn new(queue: &'q TimedQueue<T, N>) -> Self {
        Self { queue, _one_thread: PhantomData }
    }

    /// Receives the next item, sleeping until one is ready.
    ///
    /// Enters the kernel only to sleep, and then once for each time that it is woken. Does not
    /// allocate.
    #[inline]
    pub fn recv(&mut self) -> Item<T> {
        loop {
            match self.check() {
                CheckResult::Item(item) => return item,
                CheckResult::Until(due) => self.park(due),
            }
        }
    }

    /// Receives the next item that is ready by `deadline`, or returns `None` once the deadline has
    /// passed.
    ///
    /// A ready item is received even if the deadline has passed. Otherwise as [`recv`](Self::recv).
    pub fn recv_deadline(&mut self, deadline: Instant) -> Option<Item<T>> {
        let deadline = deadline.as_ticks();
        loop {
            let due = match self.check() {
                CheckResult::Item(item) => return Some(item),
                CheckResult::Until(due) => due,
            };
            if deadline <= now().as_ticks() {
                return None;
            }
            self.park(due.min(deadline));
        }
    }

    /// Receives the next item if one is ready. Never enters the kernel, except where reading the
    /// clock does.
    #[inline]
    pub fn try_recv(&mut self) -> Option<Item<T>> {
        match self.check() {
            CheckResult::Item(item) => Some(item),
            CheckResult::Until(_) => None,
        }
    }

    /// Returns the number of items in the queue, ready or not.
    pub fn len(&mut self) -> usize {
        self.queue.pending.with_mut(|pending| {
            // SAFETY: `claimed` allows one receiver at a time, which is borrowed mutably here.
            let pending = unsafe { &mut *pending };
            // SAFETY: as above.
            unsafe { self.queue.collect(pending) };
            pending.len()
        })
    }

    /// Returns `true` if the queue has no items, ready or not.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn check(&mut self) -> CheckResult<T> {
        let queue = self.queue;
        let next = queue.pending.with_mut(|pending| {
            // SAFETY: `claimed` allows one receiver at a time, which is borrowed mutably here.
            let pending = unsafe { &mut *pending };
            // SAFETY: as above.
            let sole = unsafe { queue.collect_or_take(pending, || now().as_ticks()) };
            sole.map_or_else(|| pending.next(|| now().as_ticks()), Next::Ready)
        });
        let node = match next {
            Next::Ready(node) => node,
            Next::At(due) => return CheckResult::Until(due),
            Next::Nothing => return CheckResult::Until(u64::MAX),
        };
        // SAFETY: this is the receiver, and the node has just been removed from the inbox or
        // `pending`.
        let cargo = unsafe { queue.unload(node) };
        let due = cargo.scheduled.then(|| Instant::from_ticks(cargo.time));
        CheckResult::Item(Item { value: cargo.value, due })
    }

    /// Sleeps until `until`, unless an item arrives that is ready earlier or has arrived since the
    /// last check.
    #[cold]
    fn park(&mut self, until: u64) {
        let queue = self.queue;
        let word = queue.inbox.load(Ordering::Relaxed) & TIMERS;
        queue.until.store(until, Ordering::Relaxed);
        let parked = word | PARKED;
        // Release: a thread that sees the flag sees `until`. Fails if the inbox is no longer empty.
        let exchange = queue.inbox.compare_exchange(word, parked, Ordering::Release, Ordering::Relaxed);
        if exchange.is_err() {
            return;
        }
        let until = (until != u64::MAX).then(|| Instant::from_ticks(until));
        futex::wait(&queue.inbox, parked, until);
        // The next emptying of the inbox clears the flag; the caller does that now.
    }
}

impl<T, const N: usize> Drop for TimedReceiver<'_, T, N> {
    fn drop(&mut self) {
        self.queue.unclaim();
    }
}

impl<T, const N: usize> core::fmt::Debug for TimedReceiver<'_, T, N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TimedReceiver").finish_non_exhaustive()
    }
}

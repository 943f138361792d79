//! The entry of a job slot in its level's queue and among its timers.
//!
//! A timed spawn uses the node of its job slot, so any thread arms, cancels or reschedules it with
//! one atomic instruction on that node's state. The first change after the level's timekeeper has
//! scanned the node also [records](crate::timers) that the node has changed.

use crate::atomic::{AtomicU32, Halves, Ordering, UnsafeCell, const_new};
use crate::timers::Place;

/// The bits of a node's state that hold its tag.
const TAG: u32 = 0b11;
const IDLE: u32 = 0;
const ARMED: u32 = 1;
const MOVING: u32 = 2;

/// Set if the node is in the list of changed nodes, or about to be pushed there by the thread that
/// set the bit. Set in each key; the remaining bits of a key count how often the node was armed.
const CHANGED: u32 = 0b100;

/// The queue entry of one job slot: its link, its time, and the state of its timer.
///
/// The time is the job's release time or, while the timer is armed, its future release time (ns).
#[derive(Debug)]
pub struct Node {
    pub(crate) next: AtomicU32,
    /// The link in the list of changed nodes. Owned by the thread that set [`CHANGED`] until the
    /// node is pushed.
    pub(crate) next_changed: AtomicU32,
    state: AtomicU32,
    /// Written by the owner of the node. If the timekeeper reads it during a write, `state` reveals
    /// that.
    time: Halves,
    /// As `time`.
    order: Halves,
    /// Owned by the level's timekeeper.
    pub(crate) place: UnsafeCell<Place>,
}

// SAFETY: `place` is accessed only through the unsafe functions of `Heap`, whose callers are the
// timekeeper of the node's level. There is one timekeeper at a time: the level's worker or the one
// thread that runs every level, each with its `CurrentWorker`.
unsafe impl Sync for Node {}

/// `true` if the caller has to push the node to the list of changed nodes.
pub(crate) type First = bool;

impl Node {
    const_new! {
        /// Creates an entry that is in no queue.
        pub fn new() -> Self {
            Self {
                next: AtomicU32::new(0),
                next_changed: AtomicU32::new(0),
                state: AtomicU32::new(IDLE),
                time: Halves::new(0),
                order: Halves::new(0),
                place: UnsafeCell::new(Place::NONE),
            }
        }
    }

    /// Returns the release time in ns, 0 if the clock was not read.
    #[inline]
    pub fn time(&self) -> u64 {
        self.time.load()
    }

    #[inline]
    pub(crate) fn set_time(&self, time: u64) {
        // Skips the store if the value is the same, as it is without measurements: see
        // `Fifo::push`.
        if self.time() != time {
            self.write_time(time);
        }
    }

    #[inline]
    pub(crate) fn write_time(&self, time: u64) {
        self.time.store(time);
    }

    /// Arms an idle node that the caller owns; returns the key that cancels this arming and no
    /// later one.
    #[inline]
    pub(crate) fn arm(&self, time: u64, order: u64) -> (u32, First) {
        let last = self.state.load(Ordering::Relaxed);
        // Advances the arming count.
        let key = (last | CHANGED | TAG).wrapping_add(1 + ARMED) | CHANGED;
        self.time.store(time);
        self.order.store(order);
        (key, self.publish(key))
    }

    /// Disarms the node, if it is still armed under `key`; the caller then owns it.
    #[inline(always)]
    pub(crate) fn disarm(&self, key: u32) -> Option<First> {
        // Acquire: as in `keep_armed`. If the timekeeper has not looked at the node since it was
        // armed, the key is the state.
        let idle = key - ARMED + IDLE;
        match self.state.compare_exchange(key, idle, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Some(false),
            Err(_) => self.disarm_seen(key),
        }
    }

    /// [`disarm`](Self::disarm) of a node that the timekeeper may have looked at.
    #[inline(never)]
    fn disarm_seen(&self, key: u32) -> Option<First> {
        self.keep_armed(key, IDLE, CHANGED).map(|state| state & CHANGED == 0)
    }

    /// Disarms the node, if it is still armed for the time that [`peek`](Self::peek) returned; the
    /// caller, the level's timekeeper, then owns it.
    pub(crate) fn expire(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        if state & TAG != ARMED || state & CHANGED != 0 {
            return false;
        }
        let idle = state & !TAG;
        // Relaxed: `peek` has acquired, the state has not changed since, and this exchange
        // publishes nothing.
        self.state.compare_exchange(state, idle, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Moves an arming to another time; returns `None` if the node is no longer armed under `key`.
    pub(crate) fn rearm(&self, key: u32, time: u64, order: u64) -> Option<First> {
        // Between the two states no thread can release the node, so time and order change together.
        self.keep_armed(key, MOVING, 0)?;
        self.time.store(time);
        self.order.store(order);
        Some(self.publish(key))
    }

    /// Marks the node as armed under `key`, which contains [`CHANGED`]; returns whether it was
    /// unchanged.
    #[inline(always)]
    fn publish(&self, key: u32) -> First {
        // Release: a thread that disarms or scans the node sees its time and the job's arguments.
        // Acquire: a thread that has to push it to the list of changed nodes writes its link after
        // the last reader there. Sequentially consistent: the thread then loads the time at which
        // the timekeeper wakes; see `Timers::note`. Only the timekeeper, which clears `CHANGED`,
        // changes the state concurrently.
        let before = self.state.swap(key, Ordering::SeqCst);
        before & CHANGED == 0
    }

    /// For the timekeeper, after it has removed the node from the list of changed nodes: returns
    /// the time and order for which the node is armed, if it is. Every later change is recorded
    /// again.
    pub(crate) fn peek(&self) -> Option<(u64, u64)> {
        // Acquire: this thread sees the time, and later the arguments, of the thread that armed the
        // node, including one that did so after the node was pushed and so did not push it.
        // Release: the thread that pushes it next writes its link after this thread has read it.
        let state = self.state.fetch_and(!CHANGED, Ordering::AcqRel);
        // If the node is armed again while these are read, they may belong to two armings; then
        // `expire` does not find the matching state, and the node is scanned again.
        let armed = state & TAG == ARMED;
        armed.then(|| (self.time.load(), self.order.load()))
    }

    /// Returns whether the node is armed under `key`, for any time.
    #[inline]
    pub(crate) fn is_armed(&self, key: u32) -> bool {
        // Relaxed: the caller reads nothing that depends on the state.
        self.state.load(Ordering::Relaxed) | CHANGED == key
    }

    /// Returns the time for which the node is armed, if it is.
    pub(crate) fn due(&self) -> Option<u64> {
        let armed = self.state.load(Ordering::Acquire) & TAG == ARMED;
        armed.then(|| self.time())
    }

    /// Disarms the node, whatever its key. For a thread that alone uses the level.
    pub(crate) fn forget(&self) {
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state & !TAG, Ordering::Relaxed);
    }

    /// Resets the node between two runs of an app.
    pub(crate) fn reset(&self) {
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state & !TAG & !CHANGED, Ordering::Relaxed);
    }

    /// Changes the tag of a node armed under `key`, for any time; returns the previous state.
    #[inline(always)]
    fn keep_armed(&self, key: u32, tag: u32, note: u32) -> Option<u32> {
        let mut state = self.state.load(Ordering::Relaxed);
        while state | CHANGED == key {
            let to = state & !TAG | tag | note;
            // Acquire: the caller sees the job's arguments, and writes its time after the thread
            // that moved it before. Publishes nothing.
            match self.state.compare_exchange_weak(state, to, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(state),
                Err(now) => state = now,
            }
        }
        None
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn timer_key_is_valid_for_one_arming() {
        let node = Node::new();
        let (first, _) = node.arm(1, 0);
        assert!(node.disarm(first).is_some());
        assert!(node.disarm(first).is_none());
        let (second, _) = node.arm(2, 1);
        assert!(node.rearm(first, 9, 2).is_none(), "a stale handle must not move the next arming");
        assert_eq!(node.peek(), Some((2, 1)));
        assert!(node.rearm(second, 3, 2).is_some());
        assert!(!node.expire(), "the scanned time is stale");
        assert_eq!(node.peek(), Some((3, 2)));
        assert!(node.expire());
        assert!(node.disarm(second).is_none());
    }

    #[test]
    fn first_change_notes_the_timer() {
        let node = Node::new();
        let (key, first) = node.arm(1, 0);
        assert!(first);
        assert_eq!((node.rearm(key, 2, 1), node.disarm(key)), (Some(false), Some(false)));
        assert_eq!(node.peek(), None);
        let (key, first) = node.arm(1, 0);
        assert!(first);
        node.peek();
        assert_eq!(node.rearm(key, 2, 1), Some(true));
        node.peek();
        assert_eq!(node.disarm(key), Some(true));
    }
}

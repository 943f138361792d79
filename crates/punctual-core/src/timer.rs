//! The entry of a job slot in its level's queue and among its timers.
//!
//! A timed spawn lives in the node of its job slot, so arming, cancelling and rescheduling are one atomic instruction on that
//! node's state from any thread. The first of them since the thread that keeps the level's time has looked at the node also
//! [notes](crate::timers) that it has changed.

use crate::atomic::{AtomicU32, Halves, Ordering, UnsafeCell, const_new};
use crate::timers::Place;

/// The part of a node's state that says what it is.
const TAG: u32 = 0b11;
const IDLE: u32 = 0;
const ARMED: u32 = 1;
const MOVING: u32 = 2;

/// Whether the node is among the changed ones, or about to be put there by the thread that set this. It is no part of the key, of which the
/// rest counts how often the node was armed.
const CHANGED: u32 = 0b100;

/// The queue entry of one job slot: its link, its time, and whether a timer holds it.
///
/// The time is when the job was released, or, while armed, when it will be (ns).
#[derive(Debug)]
pub struct Node {
    pub(crate) next: AtomicU32,
    /// The link among the changed nodes. Of the thread that set [`CHANGED`] until the node is there.
    pub(crate) next_changed: AtomicU32,
    state: AtomicU32,
    /// Written by whoever owns the node. If the thread that keeps the time reads it meanwhile, `state` tells.
    time: Halves,
    /// As `time`.
    order: Halves,
    /// Of the thread that keeps the level's time.
    pub(crate) place: UnsafeCell<Place>,
}

// SAFETY: `place` is reached only through the unsafe functions of `Heap`, whose callers keep the time of the node's level. That
// is one thread at a time: the level's worker or the one thread that runs every level, each with its `CurrentWorker`.
unsafe impl Sync for Node {}

/// Whether the caller has to put the node among the changed ones.
pub(crate) type First = bool;

impl Node {
    const_new! {
        /// An entry that is in no queue.
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

    /// The release time in ns, 0 if nobody looked at the clock.
    #[inline]
    pub fn time(&self) -> u64 {
        self.time.load()
    }

    #[inline]
    pub(crate) fn set_time(&self, time: u64) {
        // Not written if it is there already, as where nobody measures: see `Fifo::push`.
        if self.time() != time {
            self.write_time(time);
        }
    }

    #[inline]
    pub(crate) fn write_time(&self, time: u64) {
        self.time.store(time);
    }

    /// Arms an idle node that the caller owns; returns the key that cancels this arming and no later one.
    pub(crate) fn arm(&self, time: u64, order: u64) -> (u32, First) {
        let last = self.state.load(Ordering::Relaxed);
        // The next count.
        let key = (last | CHANGED | TAG).wrapping_add(1 + ARMED);
        self.time.store(time);
        self.order.store(order);
        (key, self.publish(key))
    }

    /// Takes the node out of the timer, if it is still armed under `key`; the caller then owns it.
    pub(crate) fn disarm(&self, key: u32) -> Option<First> {
        self.leave_armed(key, IDLE, CHANGED).map(|state| state & CHANGED == 0)
    }

    /// Takes the node out of the timer, if it is still armed for the time that [`look`](Self::look) told; the caller, who keeps
    /// the level's time, then owns it.
    pub(crate) fn expire(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        if state & TAG != ARMED || state & CHANGED != 0 {
            return false;
        }
        let idle = state & !TAG;
        // Relaxed: it has acquired when it looked, since when nothing has changed, and hands nothing over by this.
        self.state.compare_exchange(state, idle, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Moves an arming to another time; `None` if it is no longer armed under `key`.
    pub(crate) fn rearm(&self, key: u32, time: u64, order: u64) -> Option<First> {
        // Between the two states the node is nobody's to release, so time and order change together.
        let state = self.leave_armed(key, MOVING, 0)?;
        self.time.store(time);
        self.order.store(order);
        Some(self.publish(state))
    }

    /// Says that the node is armed, and changed.
    fn publish(&self, state: u32) -> First {
        // Release: who disarms the node or looks at it sees its time and the job's arguments. Acquire: who has to put it
        // among the changed ones writes its link after it was read there the last time. Nobody but the thread that keeps the
        // time, which takes `CHANGED` away, changes the state meanwhile.
        let before = self.state.swap(state | CHANGED, Ordering::AcqRel);
        before & CHANGED == 0
    }

    /// For the thread that keeps the level's time and has taken the node from the changed ones: the time and order for which
    /// it is armed, if it is. Whatever changes it from now on is noted anew.
    pub(crate) fn look(&self) -> Option<(u64, u64)> {
        // Acquire: this thread sees the time, and later the arguments, of whoever armed the node; also of who did after it was put
        // among the changed ones, and so did not put it there. Release: who puts it there next, writes its link after
        // this thread has read that.
        let state = self.state.fetch_and(!CHANGED, Ordering::AcqRel);
        // If it is armed anew while these are read, they may be of two armings; then `expire` does not find the state that
        // belongs to them, and the node is looked at again.
        let armed = state & TAG == ARMED;
        armed.then(|| (self.time.load(), self.order.load()))
    }

    /// The time for which it is armed, if it is.
    pub(crate) fn due(&self) -> Option<u64> {
        let armed = self.state.load(Ordering::Acquire) & TAG == ARMED;
        armed.then(|| self.time())
    }

    /// Forgets whatever the node was, between two runs of an app.
    pub(crate) fn reset(&self) {
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state & !TAG & !CHANGED, Ordering::Relaxed);
    }

    /// Turns a node armed under `key`, for whatever time, into something else; returns what it was.
    fn leave_armed(&self, key: u32, tag: u32, note: u32) -> Option<u32> {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & !CHANGED == key {
            let to = state & !TAG | tag | note;
            // Acquire: the caller sees the job's arguments, and writes its time after whoever moved it before. It hands
            // nothing over by this.
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
    fn a_key_is_good_for_one_arming() {
        let node = Node::new();
        let (first, _) = node.arm(1, 0);
        assert!(node.disarm(first).is_some());
        assert!(node.disarm(first).is_none());
        let (second, _) = node.arm(2, 1);
        assert!(node.rearm(first, 9, 2).is_none(), "a stale handle must not move the next arming");
        assert_eq!(node.look(), Some((2, 1)));
        assert!(node.rearm(second, 3, 2).is_some());
        assert!(!node.expire(), "it is no longer armed for the time that was looked at");
        assert_eq!(node.look(), Some((3, 2)));
        assert!(node.expire());
        assert!(node.disarm(second).is_none());
    }

    #[test]
    fn who_changes_it_first_has_to_note_it() {
        let node = Node::new();
        let (key, first) = node.arm(1, 0);
        assert!(first);
        assert_eq!((node.rearm(key, 2, 1), node.disarm(key)), (Some(false), Some(false)));
        assert_eq!(node.look(), None);
        let (key, first) = node.arm(1, 0);
        assert!(first);
        node.look();
        assert_eq!(node.rearm(key, 2, 1), Some(true));
        node.look();
        assert_eq!(node.disarm(key), Some(true));
    }
}

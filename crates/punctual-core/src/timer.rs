//! Timed releases: which nodes of a level wait for a time, and which of them is next.
//!
//! A timed spawn lives in the node of its job slot, so arming, cancelling and rescheduling are
//! compare-and-swaps on that node from any thread, with no list to repair and no tombstones. The thread
//! that sleeps for the level looks for the earliest armed node before it sleeps: linear in the number of
//! slots of that level, about a nanosecond each, which is small beside the sleep that follows. Order is
//! by (time, insertion).

use crate::atomic::{AtomicU32, AtomicU64, Ordering, const_new};

/// The part of a node's key that says what it is; the rest counts how often it was armed.
const TAG: u32 = 0b11;
const IDLE: u32 = 0;
const ARMED: u32 = 1;
const MOVING: u32 = 2;

/// The upper half of a node's state counts how often this arming was moved; the lower half is its key. Who
/// cancels or moves a timer needs the key; who releases it needs the time it looked at to be the last one.
const MOVED: u64 = 1 << 32;

/// The queue entry of one job slot: its link, its time, and whether a timer holds it.
///
/// The time is when the job was released, or, while armed, when it will be (ns).
#[derive(Debug)]
pub struct Node {
    pub(crate) next: AtomicU32,
    state: AtomicU64,
    time: AtomicU64,
    order: AtomicU64,
}

impl Node {
    const_new! {
        /// An entry that is in no queue.
        pub fn new() -> Self {
            Self {
                next: AtomicU32::new(0),
                state: AtomicU64::new(IDLE as u64),
                time: AtomicU64::new(0),
                order: AtomicU64::new(0),
            }
        }
    }

    /// The release time in ns, 0 if nobody looked at the clock.
    #[inline]
    pub fn time(&self) -> u64 {
        self.time.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_time(&self, time: u64) {
        // Not written if it is there already, as where nobody measures: see `Fifo::push`.
        if self.time() != time {
            self.time.store(time, Ordering::Relaxed);
        }
    }

    /// Arms an idle node that the caller owns; returns the key that cancels this arming and no later one.
    pub(crate) fn arm(&self, time: u64, order: u64) -> u32 {
        let last = self.state.load(Ordering::Relaxed) as u32;
        // The next count.
        let key = (last | TAG).wrapping_add(1 + ARMED);
        self.time.store(time, Ordering::Relaxed);
        self.order.store(order, Ordering::Relaxed);
        // Release: who disarms the node sees its time and the job's arguments.
        self.state.store(key.into(), Ordering::Release);
        key
    }

    /// Takes the node out of the timer, if it is still armed under `key`; the caller then owns it.
    pub(crate) fn disarm(&self, key: u32) -> bool {
        self.leave_armed(key, IDLE).is_some()
    }

    /// Takes the node out of the timer, if it is still armed for the time that [`armed`](Self::armed) told
    /// along with `state`; the caller then owns it.
    pub(crate) fn expire(&self, state: u64) -> bool {
        let idle = state & !u64::from(TAG);
        // Relaxed: it has acquired with `state`, and hands nothing over by this.
        self.state.compare_exchange(state, idle, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Moves an arming to another time; `false` if it is no longer armed under `key`.
    pub(crate) fn rearm(&self, key: u32, time: u64, order: u64) -> bool {
        // Between the two states the node is nobody's to release, so time and order change together.
        let Some(state) = self.leave_armed(key, MOVING) else { return false };
        self.time.store(time, Ordering::Relaxed);
        self.order.store(order, Ordering::Relaxed);
        self.state.store(state.wrapping_add(MOVED), Ordering::Release);
        true
    }

    /// If armed: (time, order, state).
    #[inline]
    pub(crate) fn armed(&self) -> Option<(u64, u64, u64)> {
        let state = self.state.load(Ordering::Acquire);
        if state as u32 & TAG != ARMED {
            return None;
        }
        Some((self.time.load(Ordering::Relaxed), self.order.load(Ordering::Relaxed), state))
    }

    /// Forgets whatever the node was, between two runs of an app.
    pub(crate) fn reset(&self) {
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state & !u64::from(TAG), Ordering::Relaxed);
    }

    /// Turns a node armed under `key`, for whatever time, into something else; returns what it was.
    fn leave_armed(&self, key: u32, tag: u32) -> Option<u64> {
        let mut state = self.state.load(Ordering::Relaxed);
        while state as u32 == key {
            let to = state & !u64::from(TAG) | u64::from(tag);
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

/// The earliest armed node: (time, node, state).
pub(crate) fn earliest(nodes: &[Node]) -> Option<(u64, u32, u64)> {
    let armed = nodes.iter().enumerate().filter_map(|(i, node)| {
        let (time, order, state) = node.armed()?;
        Some((time, order, i as u32, state))
    });
    armed.min().map(|(time, _, node, state)| (time, node, state))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn earliest_is_by_time_then_insertion() {
        let nodes: [Node; 4] = Default::default();
        assert_eq!(earliest(&nodes), None);
        nodes[2].arm(50, 0);
        nodes[0].arm(50, 1);
        let key = nodes[3].arm(40, 2);
        assert_eq!(earliest(&nodes).map(|e| e.1), Some(3));
        assert!(nodes[3].disarm(key));
        assert_eq!(earliest(&nodes).map(|e| e.1), Some(2), "inserted before node 0");
    }

    #[test]
    fn a_key_is_good_for_one_arming() {
        let node = Node::new();
        let first = node.arm(1, 0);
        assert!(node.disarm(first));
        assert!(!node.disarm(first));
        let second = node.arm(2, 1);
        assert!(!node.rearm(first, 9, 2), "a stale handle must not move the next arming");
        let before = node.armed().unwrap();
        assert!(node.rearm(second, 3, 2));
        let after = node.armed().unwrap();
        assert_eq!((after.0, after.1), (3, 2));
        assert!(!node.expire(before.2), "it is no longer armed for the time that was looked at");
        assert!(node.expire(after.2));
        assert!(!node.disarm(second));
    }
}

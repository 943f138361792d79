//! Timed releases: the armed nodes of a level, and the earliest of them.
//!
//! Like the queue of a level, the timers have two parts. Any thread arms, cancels and moves timers
//! on their [nodes](crate::Node); the level's timekeeper keeps the armed ones in a *heap*. A node
//! that changes is pushed onto a stack of *changed* nodes unless it is there already. Before the
//! timekeeper determines the due jobs or the next due time, it removes all nodes from the stack,
//! one by one, and inserts each into the heap or removes it. So no thread ever waits for another. A
//! change is at most two atomic instructions, and for any capacity of the level, releasing,
//! inserting or removing a timer takes a number of steps that is logarithmic in the number of armed
//! nodes. With no change and no due job, the timekeeper compares a single time.
//!
//! Armed timers delay a periodic job of their level as follows:
//!
//! * Not at all if they are due later: the release compares its time with that of the earliest.
//! * Not at all if they were armed, canceled or moved during the sleep from which the worker wakes
//!   for the job: it inserts them after the job.
//! * By one insertion or removal each if they changed while the worker was awake, or before another
//!   timer woke it, and the job became due before the worker slept again.
//! * By their jobs if they are due earlier: a level runs its jobs in FIFO order.
//!
//! A node may have changed without being on the stack yet, if the thread that is about to push it
//! was preempted. Its place in the heap is stale then, and [`expire`](crate::Node::expire) does not
//! release it but removes it; the push, which is still to come, causes another scan.
//!
//! The heap is binary and stored in the nodes themselves: the entry at position `p` is in node `p`,
//! regardless of the node it refers to. The order is by (time, insertion).

use crate::atomic::{AtomicU32, AtomicU64, Halves, Ordering, const_new};
use crate::timer::Node;

/// No time: no timer is armed.
pub(crate) const NEVER: u64 = u64::MAX;

/// In `changed`: the grids of the level have started.
const GRIDS: u32 = 1 << 31;

/// A node's part of the heap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The entry at this node's position.
    entry: Entry,
    /// The position of the entry for this node, plus 1; 0 if it has none.
    position: u32,
}

impl Place {
    pub(crate) const NONE: Self = Self { entry: Entry { time: 0, order: 0, node: 0 }, position: 0 };
}

/// An armed node; ordered by the fields in sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    order: u64,
    node: u32,
}

/// The timers of a level, except for the parts in its nodes.
#[derive(Debug)]
pub(crate) struct Timers {
    /// The top of the stack of changed nodes, plus 1; and [`GRIDS`].
    changed: AtomicU32,
    /// The size of the heap. Written by the timekeeper.
    armed: AtomicU32,
    /// No job is due before this time, not counting pending changes. Owned by the timekeeper.
    next: Halves,
    /// Order of insertion among timers of equal time.
    order: AtomicU64,
}

impl Timers {
    const_new! {
        pub(crate) fn new() -> Self {
            Self {
                changed: AtomicU32::new(0),
                armed: AtomicU32::new(0),
                next: Halves::new(NEVER),
                order: AtomicU64::new(0),
            }
        }
    }

    #[inline(always)]
    pub(crate) fn order(&self) -> u64 {
        self.order.fetch_add(1, Ordering::Relaxed)
    }

    /// Records that `node`, whose index is `index`, has changed. For the thread that was the first
    /// to change it.
    #[inline(never)]
    pub(crate) fn note(&self, node: &Node, index: u32) {
        let mut top = self.changed.load(Ordering::Relaxed);
        loop {
            node.next_changed.store(top & !GRIDS, Ordering::Relaxed);
            let pushed = (index + 1) | (top & GRIDS);
            // Release: the thread that takes the node sees its link. Sequentially consistent: the
            // timekeeper goes to sleep after a load of `changed`, which a fence precedes, and the
            // thread that arms a timer decides by such a load whether to wake it. A timer that is
            // armed in a node that was pushed before, also by another thread, precedes that load
            // too: an arming is sequentially consistent, and happens after the push.
            match self.changed.compare_exchange_weak(top, pushed, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Records that the grids have started.
    pub(crate) fn note_grids(&self) {
        // Release: a thread that sees the bit sees the grids. Sequentially consistent: as in
        // `note`.
        self.changed.fetch_or(GRIDS, Ordering::SeqCst);
    }

    /// Returns `true` if there are changes that [`take_changes`](Self::take_changes) has not seen.
    #[inline]
    pub(crate) fn has_changes(&self) -> bool {
        self.changed.load(Ordering::Relaxed) != 0
    }

    /// Returns the time before which no job is due, not counting pending changes.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next.load()
    }

    #[inline]
    pub(crate) fn set_next(&self, next: u64) {
        self.next.store(next);
    }

    /// Brings the heap up to date.
    ///
    /// # Safety
    /// The calling thread is the level's timekeeper.
    pub(crate) unsafe fn take_changes(&self, nodes: &[Node]) {
        // Acquire: pairs with the pushes, and with the start of the grids.
        let mut top = self.changed.swap(0, Ordering::Acquire) & !GRIDS;
        while top != 0 {
            let (node, changed) = (top - 1, &nodes[top as usize - 1]);
            // Before `peek`, after which the node may be pushed again.
            top = changed.next_changed.load(Ordering::Relaxed);
            let armed = changed.peek();
            let heap = Heap { nodes, armed: &self.armed };
            // SAFETY: this thread is the level's timekeeper, by this function's contract.
            unsafe {
                heap.remove(node);
                if let Some((time, order)) = armed {
                    heap.insert(Entry { time, order, node });
                }
            }
        }
    }

    /// Returns the time and the node of the earliest timer.
    ///
    /// # Safety
    /// The calling thread is the level's timekeeper.
    #[inline]
    pub(crate) unsafe fn earliest(&self, nodes: &[Node]) -> Option<(u64, u32)> {
        if self.armed.load(Ordering::Relaxed) == 0 {
            return None;
        }
        // SAFETY: this thread is the level's timekeeper, by this function's contract.
        let first = unsafe { Heap { nodes, armed: &self.armed }.entry(0) };
        Some((first.time, first.node))
    }

    /// Removes the earliest timer, that of `node`, from the heap; returns whether it was still
    /// armed, so that the caller owns the node.
    ///
    /// # Safety
    /// The calling thread is the level's timekeeper, and a timer is armed.
    #[inline]
    pub(crate) unsafe fn expire(&self, nodes: &[Node], node: u32) -> bool {
        // SAFETY: this thread is the level's timekeeper, and the heap has an entry at the first
        // position, by this function's contract.
        unsafe { Heap { nodes, armed: &self.armed }.remove_first(node) };
        nodes[node as usize].expire()
    }

    /// [Removes](Self::expire) the earliest timer; returns its node if it was still armed, and the
    /// time of the next.
    ///
    /// # Safety
    /// As for [`expire`](Self::expire).
    #[inline]
    pub(crate) unsafe fn expire_first(&self, nodes: &[Node]) -> (Option<u32>, u64) {
        let heap = Heap { nodes, armed: &self.armed };
        // SAFETY: as in `expire`. The heap contains only nodes of the level, so there is at least
        // one.
        unsafe {
            let node = heap.first().node;
            let left = heap.remove_first(node);
            let due = nodes.get_unchecked(node as usize).expire().then_some(node);
            (due, if left == 0 { NEVER } else { heap.first().time })
        }
    }

    /// Discards all timers.
    ///
    /// # Safety
    /// No other thread uses the level.
    pub(crate) unsafe fn reset(&self, nodes: &[Node]) {
        for node in nodes {
            node.reset();
            // SAFETY: no other thread uses the level, by this function's contract.
            node.place.with_mut(|place| unsafe { *place = Place::NONE });
        }
        self.changed.store(0, Ordering::Relaxed);
        self.armed.store(0, Ordering::Relaxed);
        self.next.store(NEVER);
    }
}

/// The armed nodes as a binary heap, the earliest at position 0. Its unsafe functions are reserved
/// for the level's timekeeper.
#[derive(Clone, Copy)]
struct Heap<'a> {
    nodes: &'a [Node],
    armed: &'a AtomicU32,
}

impl Heap<'_> {
    #[inline]
    unsafe fn entry(self, position: u32) -> Entry {
        // SAFETY: this thread is the only user of the nodes' places.
        self.nodes[position as usize].place.with(|place| unsafe { (*place).entry })
    }

    /// Returns the entry at position 0. The heap must not be empty.
    #[inline]
    unsafe fn first(self) -> Entry {
        // SAFETY: a nonempty heap implies a node, and this thread is the only user of the nodes'
        // places.
        unsafe { self.nodes.get_unchecked(0).place.with(|place| (*place).entry) }
    }

    #[inline]
    unsafe fn set(self, position: u32, entry: Entry) {
        // SAFETY: this thread is the only user of the nodes' places.
        self.nodes[position as usize].place.with_mut(|place| unsafe { (*place).entry = entry });
        // SAFETY: as above.
        self.nodes[entry.node as usize].place.with_mut(|place| unsafe { (*place).position = position + 1 });
    }

    /// Adds a node that is not in the heap.
    unsafe fn insert(self, entry: Entry) {
        let last = self.armed.load(Ordering::Relaxed);
        self.armed.store(last + 1, Ordering::Relaxed);
        // SAFETY: this thread is the level's timekeeper, and the new position is free.
        unsafe { self.rise(last, entry) };
    }

    /// Removes a node, if it is in the heap.
    unsafe fn remove(self, node: u32) {
        let place = &self.nodes[node as usize].place;
        // SAFETY: this thread is the only user of the nodes' places.
        let position = place.with_mut(|place| unsafe { core::mem::take(&mut (*place).position) });
        let Some(free) = position.checked_sub(1) else { return };
        let last = self.armed.load(Ordering::Relaxed) - 1;
        self.armed.store(last, Ordering::Relaxed);
        if free != last {
            // SAFETY: this thread is the level's timekeeper.
            unsafe { Self::fill(self.nodes, self.armed, free, last) };
        }
    }

    /// Removes the entry at position 0, which is that of `node`. Returns the number of remaining
    /// entries.
    #[inline]
    unsafe fn remove_first(self, node: u32) -> u32 {
        // SAFETY: the heap contains only nodes of the level, and this thread is the only user of
        // their places.
        unsafe { self.nodes.get_unchecked(node as usize).place.with_mut(|place| (*place).position = 0) };
        let last = self.armed.load(Ordering::Relaxed) - 1;
        self.armed.store(last, Ordering::Relaxed);
        if last != 0 {
            // SAFETY: this thread is the level's timekeeper, and entries remain.
            unsafe { Self::fill(self.nodes, self.armed, 0, last) };
        }
        last
    }

    /// Moves the entry at the last position to its correct place, given a free position.
    // Takes the parts of `self`, which as a whole would be passed through memory even if there is
    // nothing to move.
    #[inline(never)]
    unsafe fn fill(nodes: &[Node], armed: &AtomicU32, free: u32, last: u32) {
        let heap = Heap { nodes, armed };
        // SAFETY: this thread is the level's timekeeper.
        unsafe {
            let entry = heap.entry(last);
            let free = heap.sink(free);
            heap.rise(free, entry);
        }
    }

    /// Moves the earlier child into the free position `at`, and so on; returns the free position at
    /// the bottom.
    ///
    /// The entry that is then placed came from the bottom and usually belongs there, so this saves
    /// a comparison at each step.
    unsafe fn sink(self, mut at: u32) -> u32 {
        let size = self.armed.load(Ordering::Relaxed);
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= size {
                return at;
            }
            // SAFETY: this thread is the level's timekeeper.
            unsafe {
                let (mut child, mut entry) = (left, self.entry(left));
                if right < size {
                    let other = self.entry(right);
                    if other < entry {
                        (child, entry) = (right, other);
                    }
                }
                self.set(at, entry);
                at = child;
            }
        }
    }

    /// Puts `entry` into the free position `at` or an ancestor, moving later entries down.
    unsafe fn rise(self, mut at: u32, entry: Entry) {
        while at > 0 {
            let parent = (at - 1) / 2;
            // SAFETY: this thread is the level's timekeeper.
            unsafe {
                let above = self.entry(parent);
                if above <= entry {
                    break;
                }
                self.set(at, above);
            }
            at = parent;
        }
        // SAFETY: this thread is the level's timekeeper.
        unsafe { self.set(at, entry) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Few<const N: usize> {
        nodes: [Node; N],
        timers: Timers,
    }

    impl<const N: usize> Few<N> {
        fn new() -> Self {
            Self { nodes: [const { Node::new() }; N], timers: Timers::new() }
        }

        fn arm(&self, node: u32, time: u64) -> u32 {
            let (key, first) = self.nodes[node as usize].arm(time, self.timers.order());
            if first {
                self.timers.note(&self.nodes[node as usize], node);
            }
            key
        }

        /// Disarms or moves a timer.
        fn change(&self, node: u32, key: u32, time: Option<u64>) -> bool {
            let changed = &self.nodes[node as usize];
            let first = match time {
                None => changed.disarm(key),
                Some(time) => changed.rearm(key, time, self.timers.order()),
            };
            if first == Some(true) {
                self.timers.note(&self.nodes[node as usize], node);
            }
            first.is_some()
        }

        fn earliest(&self) -> Option<(u64, u32)> {
            // SAFETY: a single thread.
            unsafe {
                self.timers.take_changes(&self.nodes);
                self.timers.earliest(&self.nodes)
            }
        }

        fn expire(&self) -> Option<(u64, u32)> {
            let (time, node) = self.earliest()?;
            // SAFETY: a single thread.
            assert!(unsafe { self.timers.expire(&self.nodes, node) });
            Some((time, node))
        }
    }

    #[test]
    fn orders_by_time_then_insertion() {
        let few = Few::<4>::new();
        assert_eq!(few.earliest(), None);
        few.arm(2, 50);
        few.arm(0, 50);
        let key = few.arm(3, 40);
        assert_eq!(few.earliest(), Some((40, 3)));
        assert!(few.change(3, key, None));
        assert_eq!(few.earliest(), Some((50, 2)), "inserted before node 0");
    }

    #[test]
    fn agrees_with_sorted_list_under_random_operations() {
        const N: u64 = 37;
        let few = Few::<{ N as usize }>::new();
        let mut armed: Vec<(u64, u64, u32, u32)> = Vec::new();
        let mut random = 1_u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        // Miri takes milliseconds per iteration.
        for order in 0..if cfg!(miri) { 500 } else { 20_000 } {
            let (node, time) = (draw(N) as u32, draw(50));
            let known = armed.iter().position(|timer| timer.2 == node);
            match (known, draw(4)) {
                (None, _) => armed.push((time, order, node, few.arm(node, time))),
                (Some(at), 0) => assert!(few.change(node, armed.swap_remove(at).3, None)),
                (Some(at), 1) => {
                    assert!(few.change(node, armed[at].3, Some(time)));
                    (armed[at].0, armed[at].1) = (time, order);
                }
                (_, 2) => {
                    let first = armed.iter().min().copied().unwrap();
                    assert_eq!(few.expire(), Some((first.0, first.2)));
                    armed.retain(|timer| timer.2 != first.2);
                }
                _ => assert_eq!(few.earliest(), armed.iter().min().map(|first| (first.0, first.2))),
            }
        }
    }

    #[test]
    fn releases_no_timer_with_a_pending_change() {
        let few = Few::<2>::new();
        let key = few.arm(0, 5);
        few.arm(1, 5);
        assert_eq!(few.earliest(), Some((5, 0)));
        assert_eq!(few.nodes[0].rearm(key, 9, few.timers.order()), Some(true));
        // SAFETY: a single thread.
        assert!(!unsafe { few.timers.expire(&few.nodes, 0) });
        assert_eq!(few.expire(), Some((5, 1)));
        assert_eq!(few.earliest(), None);
        few.timers.note(&few.nodes[0], 0);
        assert_eq!(few.expire(), Some((9, 0)));
    }

    #[test]
    fn reset_disarms_timers() {
        let few = Few::<4>::new();
        for node in 0..3 {
            few.arm(node, 5);
        }
        assert_eq!(few.earliest(), Some((5, 0)));
        few.arm(3, 4);
        // SAFETY: a single thread.
        unsafe { few.timers.reset(&few.nodes) };
        assert_eq!(few.earliest(), None);
        few.arm(2, 9);
        few.arm(1, 8);
        assert_eq!([few.expire(), few.expire(), few.expire()], [Some((8, 1)), Some((9, 2)), None]);
    }
}

//! The order of jobs at one level: many threads add at the back, and the thread that occupies the
//! level removes from the front.
//!
//! The structure has two parts. The *inbox* is a stack that any thread pushes with one
//! compare-and-swap (R. K. Treiber, IBM RJ 5118, 1986). The *queue* proper belongs to the thread
//! that occupies the level, which at times empties the inbox into it, reversing it into arrival
//! order. A push is complete the moment it is visible, so a thread preempted in the middle of a
//! push never hides the jobs that others push after it. A ring with claimed but unpublished cells
//! would do so.
//!
//! Nodes are linked by index + 1. In the inbox, 0 ends the list; in the queue, the tail does, and
//! its link has no meaning. So a job that is queued alone neither writes nor reads its link.

use crate::atomic::{AtomicU32, Ordering, UnsafeCell, const_new};
use crate::jobs::Popped;
use crate::timer::Node;

#[derive(Debug)]
struct Ends {
    head: u32,
    /// Meaningless while `head` is 0.
    tail: u32,
}

impl Ends {
    /// Returns the job behind the one at `at`, which is queued; 0 if that is the last one.
    ///
    /// # Safety
    /// The queue contains nodes of `nodes`.
    #[inline]
    unsafe fn behind(&self, nodes: &[Node], at: u32) -> u32 {
        if at == self.tail {
            return 0;
        }
        // SAFETY: a queued node is one of `nodes`, by this function's contract.
        unsafe { link(nodes, at - 1) }.load(Ordering::Relaxed)
    }

    /// Adds the linked jobs from `first` to `last` at the back.
    ///
    /// # Safety
    /// These and all queued nodes are among `nodes`.
    #[inline]
    unsafe fn append(&mut self, nodes: &[Node], first: u32, last: u32) {
        match self.head {
            0 => self.head = first,
            // SAFETY: if there is a head, `tail` is the last queued node, which is among `nodes`.
            _ => unsafe { link(nodes, self.tail - 1) }.store(first, Ordering::Relaxed),
        }
        self.tail = last;
    }
}

/// A multi-producer queue of node indices, consumed by the thread that occupies the level.
///
/// Every call on one queue passes the same nodes, those of its level.
///
/// Aligned to a cache line, since a polling thread reads the neighboring data all the time.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Fifo {
    inbox: AtomicU32,
    ends: UnsafeCell<Ends>,
}

// SAFETY: `ends` is accessed only through the `unsafe` methods, whose callers occupy the level; one
// thread at a time occupies a level, handed over with release and acquire on the partition's word.
unsafe impl Sync for Fifo {}

impl Fifo {
    const_new! {
        pub(crate) fn new() -> Self {
            Self { inbox: AtomicU32::new(0), ends: UnsafeCell::new(Ends { head: 0, tail: 0 }) }
        }
    }

    /// Adds `node` at the back; any thread. The caller must mark the level ready afterwards.
    ///
    /// # Safety
    /// `node` is one of `nodes`, and every other call passes the same `nodes`.
    #[inline]
    pub(crate) unsafe fn push(&self, nodes: &[Node], node: u32) {
        let mut first = self.inbox.load(Ordering::Relaxed);
        loop {
            // SAFETY: the node is one of `nodes`, by this function's contract.
            let next = unsafe { link(nodes, node) };
            // Skips the store if the value is the same: the node's cache line need not come from
            // the CPU that ran it last.
            if next.load(Ordering::Relaxed) != first {
                next.store(first, Ordering::Relaxed);
            }
            // Release: the thread that takes the inbox sees the node's link, its time and its
            // arguments.
            match self.inbox.compare_exchange_weak(first, node + 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Adds `node` at the back, behind everything in the inbox, without an atomic instruction.
    ///
    /// # Safety
    /// As for [`push`](Self::push); and the calling thread must occupy the level.
    #[inline]
    pub(crate) unsafe fn push_own(&self, nodes: &[Node], node: u32) {
        // SAFETY: the caller occupies the level, so no other reference to `ends` exists; the node
        // is one of `nodes`.
        unsafe {
            self.empty_inbox(nodes);
            self.append(nodes, node);
        }
    }

    /// [`push_own`](Self::push_own) without checking the inbox, for a caller that has just found it
    /// empty.
    ///
    /// # Safety
    /// As for [`push_own`](Self::push_own).
    #[inline]
    pub(crate) unsafe fn append(&self, nodes: &[Node], node: u32) {
        // SAFETY: the caller occupies the level, so no other reference to `ends` exists; the node
        // is one of `nodes`.
        self.ends.with_mut(|ends| unsafe { (*ends).append(nodes, node + 1, node + 1) });
    }

    /// Inserts `node` before the first job that was released later.
    ///
    /// For a timer that expired while the level was busy: the order follows the release times.
    /// `after` is a job that was inserted by this function and is still queued, if any. The search
    /// begins behind it unless it was released later, so inserting many nodes in order of time
    /// takes a number of steps that is linear in their number and the number of queued jobs, both
    /// bounded by the capacities.
    ///
    /// # Safety
    /// The calling thread must occupy the level.
    pub(crate) unsafe fn insert_by_time(&self, nodes: &[Node], node: u32, after: Option<u32>) {
        // SAFETY: the caller occupies the level.
        unsafe { self.empty_inbox(nodes) };
        let time = nodes[node as usize].time();
        let after = after.filter(|&after| nodes[after as usize].time() <= time).map_or(0, |after| after + 1);
        self.ends.with_mut(|ends| {
            // SAFETY: the caller occupies the level, so no other reference to `ends` exists.
            let ends = unsafe { &mut *ends };
            // SAFETY: only nodes of the slice are ever pushed.
            let behind = |at| unsafe { ends.behind(nodes, at) };
            let (mut before, mut at) = match after {
                0 => (0, ends.head),
                after => (after, behind(after)),
            };
            while at != 0 && nodes[at as usize - 1].time() <= time {
                before = at;
                at = behind(at);
            }
            if at == 0 {
                // SAFETY: the indexing above has found the node among `nodes`.
                return unsafe { ends.append(nodes, node + 1, node + 1) };
            }
            nodes[node as usize].next.store(at, Ordering::Relaxed);
            match before {
                0 => ends.head = node + 1,
                _ => nodes[before as usize - 1].next.store(node + 1, Ordering::Relaxed),
            }
        });
    }

    /// Returns `true` if the inbox has jobs.
    #[inline]
    pub(crate) fn has_inbox(&self) -> bool {
        self.inbox.load(Ordering::Relaxed) != 0
    }

    /// Returns `true` if the inbox or the queue has jobs.
    ///
    /// # Safety
    /// The calling thread must occupy the level.
    #[inline]
    pub(crate) unsafe fn has_jobs(&self) -> bool {
        // SAFETY: the caller occupies the level, so `ends` is not written concurrently. A single
        // comparison, since both are usually empty.
        self.inbox.load(Ordering::Relaxed) | self.ends.with(|ends| unsafe { (*ends).head }) != 0
    }

    /// Removes the job at the front.
    ///
    /// # Safety
    /// The calling thread must occupy the level, and `nodes` is the slice that every other call
    /// passes.
    #[inline]
    pub(crate) unsafe fn pop(&self, nodes: &[Node]) -> Option<Popped> {
        // Jobs are added to the queue behind those of the inbox, so the inbox has only younger
        // jobs.
        // SAFETY: the caller occupies the level, so no other reference to `ends` exists; `nodes`
        // are its nodes.
        unsafe {
            if self.ends.with(|ends| (*ends).head) == 0 {
                self.empty_inbox(nodes);
            }
            self.ends.with_mut(|ends| {
                let ends = &mut *ends;
                let job = Popped::from_link(ends.head)?;
                // Only nodes of the slice are ever pushed, so each queued index is in range.
                ends.head = ends.behind(nodes, ends.head);
                Some(job)
            })
        }
    }

    /// Moves the inbox behind the queue, in order of arrival.
    ///
    /// # Safety
    /// The calling thread must occupy the level, and `nodes` is the slice that every other call
    /// passes.
    #[inline]
    unsafe fn empty_inbox(&self, nodes: &[Node]) {
        // A push that this load misses marks the level ready afterwards, and the thread that
        // occupies the level cannot miss the mark.
        if self.inbox.load(Ordering::Relaxed) != 0 {
            // SAFETY: by this function's contract.
            unsafe { self.take_inbox(nodes) };
        }
    }

    /// # Safety
    /// As for [`empty_inbox`](Self::empty_inbox).
    #[inline(never)]
    unsafe fn take_inbox(&self, nodes: &[Node]) {
        let last = self.inbox.swap(0, Ordering::Acquire);
        let (mut first, mut rest) = (0, last);
        while rest != 0 {
            let next = nodes[rest as usize - 1].next.load(Ordering::Relaxed);
            nodes[rest as usize - 1].next.store(first, Ordering::Relaxed);
            (first, rest) = (rest, next);
        }
        // SAFETY: the caller occupies the level, so no other reference to `ends` exists; only nodes
        // of the slice are ever pushed.
        self.ends.with_mut(|ends| unsafe { (*ends).append(nodes, first, last) });
    }
}

/// Returns the link of `node`.
///
/// # Safety
/// `node` is one of `nodes`.
#[inline]
unsafe fn link(nodes: &[Node], node: u32) -> &AtomicU32 {
    // SAFETY: the node is one of `nodes`, by this function's contract.
    unsafe { &nodes.get_unchecked(node as usize).next }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn drain(fifo: &Fifo, nodes: &[Node]) -> Vec<u32> {
        // SAFETY: a single thread, which stands for the occupant of the level.
        std::iter::from_fn(|| unsafe { fifo.pop(nodes) }).map(Popped::node).collect()
    }

    #[test]
    fn keeps_arrival_order_across_inbox_and_queue() {
        let nodes: [Node; 6] = Default::default();
        let fifo = Fifo::new();
        // SAFETY: the nodes are in no other queue.
        unsafe { fifo.push(&nodes, 3) };
        // SAFETY: the nodes are in no other queue.
        unsafe { fifo.push(&nodes, 1) };
        // SAFETY: a single thread.
        unsafe { fifo.push_own(&nodes, 5) };
        // SAFETY: the nodes are in no other queue.
        unsafe { fifo.push(&nodes, 0) };
        // SAFETY: a single thread.
        unsafe { fifo.push_own(&nodes, 2) };
        assert_eq!(drain(&fifo, &nodes), [3, 1, 5, 0, 2]);
        // SAFETY: the nodes are in no other queue.
        unsafe { fifo.push(&nodes, 4) };
        assert_eq!(drain(&fifo, &nodes), [4]);
    }

    #[test]
    fn appends_nodes_behind_waiting_ones() {
        let nodes: [Node; 3] = Default::default();
        let fifo = Fifo::new();
        // SAFETY: a single thread; the nodes are in no other queue, and the inbox is empty when the
        // last of them is appended.
        unsafe {
            fifo.push(&nodes, 0);
            fifo.push_own(&nodes, 1);
            fifo.append(&nodes, 2);
        }
        assert_eq!(drain(&fifo, &nodes), [0, 1, 2]);
    }

    #[test]
    fn inserts_late_timer_by_release_time() {
        let nodes: [Node; 5] = Default::default();
        let fifo = Fifo::new();
        for (node, time) in [(0, 10), (1, 20), (2, 20), (3, 5), (4, 15)] {
            nodes[node as usize].set_time(time);
            // SAFETY: a single thread.
            unsafe { fifo.insert_by_time(&nodes, node, None) };
        }
        assert_eq!(drain(&fifo, &nodes), [3, 0, 4, 1, 2]);
    }

    #[test]
    fn searches_late_timer_from_hint() {
        let nodes: [Node; 5] = Default::default();
        let fifo = Fifo::new();
        let mut after = None;
        let insert = |node: u32, time, after| {
            nodes[node as usize].set_time(time);
            // SAFETY: a single thread.
            unsafe { fifo.insert_by_time(&nodes, node, after) };
        };
        insert(0, 20, None);
        insert(4, 40, None);
        for (node, time) in [(3, 10), (2, 30), (1, 30)] {
            insert(node, time, after.replace(node));
        }
        assert_eq!(drain(&fifo, &nodes), [3, 0, 2, 1, 4]);
    }

    #[test]
    fn searches_from_front_if_hint_is_later() {
        let nodes: [Node; 3] = Default::default();
        let fifo = Fifo::new();
        for (node, time, after) in [(0, 30, None), (1, 40, Some(0)), (2, 20, Some(1))] {
            nodes[node as usize].set_time(time);
            // SAFETY: a single thread.
            unsafe { fifo.insert_by_time(&nodes, node, after) };
        }
        assert_eq!(drain(&fifo, &nodes), [2, 0, 1]);
    }

    #[test]
    fn has_jobs_while_inbox_or_queue_is_not_empty() {
        let nodes: [Node; 2] = Default::default();
        let fifo = Fifo::new();
        // SAFETY: a single thread; the nodes are in no other queue.
        unsafe {
            assert!(!fifo.has_jobs());
            fifo.push(&nodes, 0);
            assert!(fifo.has_jobs(), "the inbox has one");
            fifo.push_own(&nodes, 1);
            assert_eq!(fifo.pop(&nodes).map(Popped::node), Some(0));
            assert!(fifo.has_jobs() && !fifo.has_inbox(), "the queue has one");
            assert_eq!(fifo.pop(&nodes).map(Popped::node), Some(1));
            assert!(!fifo.has_jobs());
        }
    }

    #[test]
    fn removed_node_keeps_no_link() {
        let nodes: [Node; 3] = Default::default();
        let fifo = Fifo::new();
        // SAFETY: the nodes are in no other queue.
        (0..3).for_each(|node| unsafe { fifo.push(&nodes, node) });
        assert_eq!(drain(&fifo, &nodes), [0, 1, 2]);
        // SAFETY: a single thread.
        unsafe { fifo.push_own(&nodes, 0) };
        assert_eq!(drain(&fifo, &nodes), [0]);
        nodes[1].set_time(5);
        // SAFETY: a single thread.
        unsafe { fifo.insert_by_time(&nodes, 1, None) };
        // SAFETY: the nodes are in no other queue.
        unsafe { fifo.push(&nodes, 2) };
        assert!(fifo.has_inbox());
        assert_eq!(drain(&fifo, &nodes), [1, 2]);
        assert!(!fifo.has_inbox());
    }
}

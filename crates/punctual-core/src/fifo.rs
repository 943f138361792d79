//! The order of jobs at one level: many threads add at the back, the thread that occupies the level
//! takes from the front.
//!
//! Two parts. The *inbox* is a stack that any thread pushes with one compare-and-swap (R. K. Treiber,
//! IBM RJ 5118, 1986); the *queue* proper belongs to whoever occupies the level, which now and then
//! empties the inbox into it, reversing it into arrival order. A push is complete the moment it is
//! visible, so a thread preempted in the middle of one never hides the jobs that others push after it —
//! which a ring with claimed but unpublished cells would do.
//!
//! Nodes are linked by index + 1; 0 ends a list.

use crate::atomic::{AtomicU32, Ordering, UnsafeCell, const_new};
use crate::timer::Node;

#[derive(Debug)]
struct Ends {
    head: u32,
    tail: u32,
}

/// A multi-producer queue of node indices, consumed by the holder of a level.
///
/// On a cache line of its own: a thread that polls reads what is beside it all the time.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Fifo {
    inbox: AtomicU32,
    ends: UnsafeCell<Ends>,
}

// SAFETY: `ends` is reached only through the `unsafe` methods, whose callers occupy the level; levels
// are occupied by one thread at a time and handed over with release and acquire on the partition's word.
unsafe impl Sync for Fifo {}

impl Fifo {
    const_new! {
        pub(crate) fn new() -> Self {
            Self { inbox: AtomicU32::new(0), ends: UnsafeCell::new(Ends { head: 0, tail: 0 }) }
        }
    }

    /// Adds `node` at the back; any thread. The caller must mark the level ready afterwards.
    #[inline]
    pub(crate) fn push(&self, nodes: &[Node], node: u32) {
        let mut first = self.inbox.load(Ordering::Relaxed);
        loop {
            let next = &nodes[node as usize].next;
            // Not written if it is there already: the line of the node need not come from the CPU that ran it last.
            if next.load(Ordering::Relaxed) != first {
                next.store(first, Ordering::Relaxed);
            }
            // Release: whoever takes the inbox sees the node's link, its time and its arguments.
            match self.inbox.compare_exchange_weak(first, node + 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Adds `node` at the back, behind everything in the inbox, without an atomic instruction.
    ///
    /// # Safety
    /// The calling thread must occupy the level.
    #[inline]
    pub(crate) unsafe fn push_own(&self, nodes: &[Node], node: u32) {
        // SAFETY: the caller occupies the level.
        unsafe { self.empty_inbox(nodes) };
        self.ends.with_mut(|ends| {
            // SAFETY: the caller occupies the level, so no other reference to `ends` exists.
            append(unsafe { &mut *ends }, nodes, node);
        });
    }

    /// Inserts `node` before the first job that was released later than it was.
    ///
    /// For a timer that expired while the level was busy: it keeps its place in time. `after` is a job that was inserted in
    /// this way and is still there, if there is one: the search begins behind it unless it was released later, so that to
    /// insert many in order of time takes a number of steps that is linear in them and the number of waiting jobs, which the
    /// capacities bound.
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
            let (mut before, mut at) = match after {
                0 => (0, ends.head),
                after => (after, nodes[after as usize - 1].next.load(Ordering::Relaxed)),
            };
            while at != 0 && nodes[at as usize - 1].time() <= time {
                before = at;
                at = nodes[at as usize - 1].next.load(Ordering::Relaxed);
            }
            if at == 0 {
                return append(ends, nodes, node);
            }
            nodes[node as usize].next.store(at, Ordering::Relaxed);
            match before {
                0 => ends.head = node + 1,
                _ => nodes[before as usize - 1].next.store(node + 1, Ordering::Relaxed),
            }
        });
    }

    /// Whether the inbox holds anything.
    #[inline]
    pub(crate) fn has_inbox(&self) -> bool {
        self.inbox.load(Ordering::Relaxed) != 0
    }

    /// Whether it holds anything at all.
    ///
    /// # Safety
    /// The calling thread must occupy the level.
    #[inline]
    pub(crate) unsafe fn has_jobs(&self) -> bool {
        // SAFETY: the caller occupies the level, so `ends` is not written meanwhile.
        self.has_inbox() || self.ends.with(|ends| unsafe { (*ends).head != 0 })
    }

    /// Takes the job at the front.
    ///
    /// # Safety
    /// The calling thread must occupy the level.
    #[inline]
    pub(crate) unsafe fn pop(&self, nodes: &[Node]) -> Option<u32> {
        // SAFETY: the caller occupies the level.
        unsafe { self.empty_inbox(nodes) };
        self.ends.with_mut(|ends| {
            // SAFETY: the caller occupies the level, so no other reference to `ends` exists.
            let ends = unsafe { &mut *ends };
            let node = ends.head.checked_sub(1)?;
            ends.head = nodes[node as usize].next.load(Ordering::Relaxed);
            if ends.head == 0 {
                ends.tail = 0;
            }
            Some(node)
        })
    }

    /// Moves the inbox behind the queue, in order of arrival.
    ///
    /// # Safety
    /// The calling thread must occupy the level.
    #[inline]
    unsafe fn empty_inbox(&self, nodes: &[Node]) {
        // A push that this load misses marks the level ready after it, which the holder cannot miss.
        if self.inbox.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut last_in = self.inbox.swap(0, Ordering::Acquire);
        let mut chain = 0;
        while last_in != 0 {
            let next = nodes[last_in as usize - 1].next.load(Ordering::Relaxed);
            nodes[last_in as usize - 1].next.store(chain, Ordering::Relaxed);
            chain = last_in;
            last_in = next;
        }
        self.ends.with_mut(|ends| {
            // SAFETY: the caller occupies the level, so no other reference to `ends` exists.
            let ends = unsafe { &mut *ends };
            while chain != 0 {
                let next = nodes[chain as usize - 1].next.load(Ordering::Relaxed);
                append(ends, nodes, chain - 1);
                chain = next;
            }
        });
    }
}

#[inline]
fn append(ends: &mut Ends, nodes: &[Node], node: u32) {
    nodes[node as usize].next.store(0, Ordering::Relaxed);
    match ends.tail {
        0 => ends.head = node + 1,
        tail => nodes[tail as usize - 1].next.store(node + 1, Ordering::Relaxed),
    }
    ends.tail = node + 1;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn drain(fifo: &Fifo, nodes: &[Node]) -> Vec<u32> {
        // SAFETY: a single thread, which stands for the holder of the level.
        std::iter::from_fn(|| unsafe { fifo.pop(nodes) }).collect()
    }

    #[test]
    fn arrival_order_across_inbox_and_queue() {
        let nodes: [Node; 6] = Default::default();
        let fifo = Fifo::new();
        fifo.push(&nodes, 3);
        fifo.push(&nodes, 1);
        // SAFETY: a single thread.
        unsafe { fifo.push_own(&nodes, 5) };
        fifo.push(&nodes, 0);
        // SAFETY: a single thread.
        unsafe { fifo.push_own(&nodes, 2) };
        assert_eq!(drain(&fifo, &nodes), [3, 1, 5, 0, 2]);
        fifo.push(&nodes, 4);
        assert_eq!(drain(&fifo, &nodes), [4]);
    }

    #[test]
    fn a_late_timer_keeps_its_place_in_time() {
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
    fn a_late_timer_is_looked_for_behind_the_one_before() {
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
    fn a_node_leaves_its_link_behind() {
        let nodes: [Node; 3] = Default::default();
        let fifo = Fifo::new();
        (0..3).for_each(|node| fifo.push(&nodes, node));
        assert_eq!(drain(&fifo, &nodes), [0, 1, 2]);
        // SAFETY: a single thread.
        unsafe { fifo.push_own(&nodes, 0) };
        assert_eq!(drain(&fifo, &nodes), [0]);
        nodes[1].set_time(5);
        // SAFETY: a single thread.
        unsafe { fifo.insert_by_time(&nodes, 1, None) };
        fifo.push(&nodes, 2);
        assert!(fifo.has_inbox());
        assert_eq!(drain(&fifo, &nodes), [1, 2]);
        assert!(!fifo.has_inbox());
    }
}

//! The nodes that hold the items, and the list of free nodes.
//!
//! A node is free, owned by a sender, in the inbox, or owned by the receiver. Nodes are linked by
//! index + 1; 0 ends a list.

use core::mem::MaybeUninit;

use crate::atomic::{AtomicU32, AtomicU64, Ordering, UnsafeCell, const_new};

/// Bits of an index + 1.
pub(super) const INDEX_BITS: u32 = 16;
pub(super) const INDEX: u32 = (1 << INDEX_BITS) - 1;

/// An item with its link and its time.
pub(super) struct Cargo<T> {
    pub(super) value: T,
    pub(super) scheduled: bool,
    /// In ns: the due time of a scheduled item; otherwise the sending time, or 0 if no item was
    /// scheduled then.
    pub(super) time: u64,
}

pub(super) struct Node<T> {
    pub(super) next: AtomicU32,
    cargo: UnsafeCell<MaybeUninit<Cargo<T>>>,
}

impl<T> Node<T> {
    const_new! {
        fn new(next: u32) -> Self {
            Self { next: AtomicU32::new(next), cargo: UnsafeCell::new(MaybeUninit::uninit()) }
        }
    }

    /// Fills the node.
    ///
    /// # Safety
    ///
    /// The calling sender owns the node, and its previous item has been taken out.
    #[inline(always)]
    pub(super) unsafe fn fill(&self, cargo: Cargo<T>) {
        // SAFETY: the caller owns the node.
        self.cargo.with_mut(|place| unsafe { (*place).write(cargo) });
    }

    /// Returns whether the item is scheduled, and its time.
    ///
    /// # Safety
    ///
    /// The calling receiver owns the node, which is filled.
    #[inline(always)]
    pub(super) unsafe fn time(&self) -> (bool, u64) {
        self.cargo.with(|place| {
            // SAFETY: the caller owns the node, and it is filled.
            let cargo = unsafe { (*place).assume_init_ref() };
            (cargo.scheduled, cargo.time)
        })
    }

    /// Takes the item out.
    ///
    /// # Safety
    ///
    /// The calling receiver owns the node, which is filled; afterwards it is not.
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> Cargo<T> {
        // SAFETY: the caller owns the node, and takes its item only once.
        self.cargo.with_mut(|place| unsafe { (*place).assume_init_read() })
    }
}

/// `N` nodes and the free list, which senders take from and the receiver adds to.
pub(super) struct Nodes<T, const N: usize> {
    nodes: [Node<T>; N],
    /// The first free node, and a count of removals: without the count, a preempted sender would
    /// not notice that the first node left and returned. The 48 bits of the count take a month to
    /// wrap.
    free: AtomicU64,
    /// A free node that the receiver has returned, or 0. Only the receiver stores a node, and only
    /// if there is none: so a plain store suffices, where the list needs a locked instruction.
    /// Senders check here first, which empties it.
    returned: AtomicU32,
}

const fn is_possible(nodes: usize) -> bool {
    nodes > 0 && nodes < INDEX as usize
}

impl<T, const N: usize> Nodes<T, N> {
    const_new! {
        /// Creates `N` free nodes.
        pub(super) fn new() -> Self {
            const { assert!(is_possible(N), "a queue has a capacity of 1 to 65534 items") };
            #[cfg(loom)]
            let nodes = core::array::from_fn(|i| Node::new((i as u32 + 2) % (N as u32 + 1)));
            #[cfg(not(loom))]
            let nodes = {
                let mut nodes = [const { Node::new(0) }; N];
                let mut i = 1;
                while i < N {
                    nodes[i - 1].next = AtomicU32::new(i as u32 + 1);
                    i += 1;
                }
                nodes
            };
            Self { nodes, free: AtomicU64::new(1), returned: AtomicU32::new(0) }
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, node: u32) -> &Node<T> {
        &self.nodes[node as usize]
    }

    /// Takes a node from the free list; any thread. The caller then owns it.
    #[inline]
    pub(super) fn claim(&self) -> Option<u32> {
        loop {
            // Relaxed: the swap decides. Acquire: its last item has been taken out. Release: a
            // thread that finds 0 sees the nodes that were in the list by then.
            if self.returned.load(Ordering::Relaxed) != 0
                && let Some(node) = self.returned.swap(0, Ordering::AcqRel).checked_sub(1)
            {
                return Some(node);
            }
            // Acquire: the link of the first node, and that its last item has been taken out.
            let free = self.free.load(Ordering::Acquire);
            let Some(node) = (free as u32 & INDEX).checked_sub(1) else {
                // Acquire: the second check comes after this one. No word ever repeats, so the list
                // was empty all the time between its two checks, and there was no other free node
                // at some instant in between.
                if self.returned.load(Ordering::Acquire) == 0 && self.free.load(Ordering::Relaxed) == free {
                    return None;
                }
                continue;
            };
            // If the node is no longer free, this value is arbitrary, and the swap fails.
            let next = self.get(node).next.load(Ordering::Relaxed) & INDEX;
            let claims = (free >> INDEX_BITS) + 1;
            let rest = claims << INDEX_BITS | next as u64;
            // Relaxed: the count makes every word unique, so a successful exchange finds the
            // acquired value.
            if self.free.compare_exchange(free, rest, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return Some(node);
            }
        }
    }

    /// Frees a node that is no longer referenced.
    #[inline]
    pub(super) fn release(&self, node: u32) {
        // Relaxed: only the receiver stores a nonzero value.
        if self.returned.load(Ordering::Relaxed) == 0 {
            // Release: the next sender fills the node after its last item has been taken out.
            self.returned.store(node + 1, Ordering::Release);
            return;
        }
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            self.get(node).next.store(free as u32 & INDEX, Ordering::Relaxed);
            let longer = free & !(INDEX as u64) | (node + 1) as u64;
            // Release: as above.
            match self.free.compare_exchange(free, longer, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => free = now,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn claims_and_returns_every_node_once() {
        let nodes = Nodes::<u8, 3>::new();
        let mut claimed: Vec<_> = std::iter::from_fn(|| nodes.claim()).collect();
        claimed.sort_unstable();
        assert_eq!(claimed, [0, 1, 2]);
        nodes.release(1);
        assert_eq!((nodes.claim(), nodes.claim()), (Some(1), None));
    }

    #[test]
    fn free_list_state_never_recurs() {
        let nodes = Nodes::<u8, 2>::new();
        let mut words: Vec<_> = (0..500)
            .map(|_| {
                let both = [nodes.claim().unwrap(), nodes.claim().unwrap()];
                assert_eq!(nodes.claim(), None);
                // The first is returned together with the list.
                both.into_iter().for_each(|node| nodes.release(node));
                nodes.free.load(Ordering::Relaxed)
            })
            .collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 500);
    }

    #[test]
    fn accepts_1_to_65534_nodes() {
        assert_eq!([0, 1, 65_534, 65_535].map(is_possible), [false, true, true, false]);
    }
}

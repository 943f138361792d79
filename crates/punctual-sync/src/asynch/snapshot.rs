//! The newest of the values that several threads write and several threads read: the common part of
//! [`Signal`] and [`Watch`].
//!
//! Values are stored in nodes. A writer takes an unused node, writes it, and makes it the current
//! one. A reader registers as a user of the current node and then checks that the node is still
//! current; if so, the node is not written before the reader deregisters (the counted form of M.
//! Michael, "Hazard Pointers", TPDS 15(6), 2004: announce, then validate).
//!
//! # Invariants
//!
//! *N1* A node's `users` counts the registered readers, plus one while the node is current or is
//! just being replaced, plus [`WRITER`] while a writer owns it. A writer takes only a node that has
//! no users. *N2* A reader that registered and then found the node current reads a node that no
//! writer owns: it was current at that moment, so no writer owned it, and none takes it while the
//! reader is registered. If instead a writer had taken the node before the registration, then the
//! registration acquired that another node had become current, and the check fails unless the
//! writer has made this one current since; then the check acquires the new value. *N3* There are at
//! most `K − 1` ends, each with one operation at a time, which occupies one node: the one it
//! registered on, is writing, or has just replaced. One more node is current. So one of the `K`
//! nodes is free for each writer.
//!
//! Real-time safety: nothing allocates, blocks or enters the kernel. Both sides are lock-free: a
//! reader repeats its attempt only if a writer has finished in the meantime, and a writer rescans
//! the nodes only if another end took the free one.
//!
//! [`Signal`]: super::signal::Signal
//! [`Watch`]: super::watch::Watch

use core::mem::MaybeUninit;

use crate::atomic::{AtomicU32, AtomicU64, Ordering, UnsafeCell};

/// In `users`: a writer owns the node. The lower bits count; they carry into this one only with 2³¹
/// readers.
const WRITER: u32 = 1 << 31;

/// The word `current`: the node in the lowest bits, then a flag for "no value", then the version.
const NODE: u64 = 0xff;
const EMPTY: u64 = 0x100;
const ONE_VERSION: u64 = 0x200;

/// The newest of several values of type `T: Copy`, so that overwriting a value runs no destructor.
pub(super) struct Snapshot<T, const K: usize> {
    current: AtomicU64,
    nodes: [Node<T>; K],
}

struct Node<T> {
    users: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

const fn is_possible(nodes: usize) -> bool {
    nodes >= 2 && nodes <= 32
}

/// Identifies one write. 0 means that the object was never written.
pub(super) type Version = u64;

// SAFETY: by N1–N3 one thread writes a node while no thread reads it; otherwise nodes are read
// through shared references and by copy. Values move between threads: `T: Send`. They are not
// shared: several readers may copy the bytes at the same time, which is the only access that `T:
// Copy` permits.
unsafe impl<T: Copy + Send, const K: usize> Sync for Snapshot<T, K> {}

impl<T: Copy, const K: usize> Snapshot<T, K> {
    const CHECK: () = assert!(is_possible(K), "there are 2 to 32 slots");

    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        let () = Self::CHECK;
        let mut nodes =
            [const { Node { users: AtomicU32::new(0), value: UnsafeCell::new(MaybeUninit::uninit()) } }; K];
        nodes[0].users = AtomicU32::new(1);
        Self { current: AtomicU64::new(EMPTY), nodes }
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        let () = Self::CHECK;
        let node = |node| Node {
            users: AtomicU32::new(if node == 0 { 1 } else { 0 }),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        };
        Self { current: AtomicU64::new(EMPTY), nodes: core::array::from_fn(node) }
    }

    /// Makes `value` the newest one.
    pub(super) fn write(&self, value: T) {
        let index = self.take_node();
        let node = &self.nodes[index];
        node.value.with_mut(|cell| {
            // SAFETY: by N1 this writer owns the node exclusively.
            unsafe { (*cell).write(value) };
        });
        // From "owned by a writer" to "current"; readers that register in vain stay counted.
        // Release: the next writer of the node writes after this one.
        node.users.fetch_sub(WRITER - 1, Ordering::Release);
        let mut word = self.current.load(Ordering::Relaxed);
        loop {
            let next = (word & !(NODE | EMPTY)).wrapping_add(ONE_VERSION) | index as u64;
            // Release: a thread that sees the word sees the value.
            match self.current.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        // Release: the next thread that takes this node sees that it is no longer current (N2).
        self.node(word).users.fetch_sub(1, Ordering::Release);
    }

    /// Removes the value.
    pub(super) fn clear(&self) {
        let mut word = self.current.load(Ordering::Relaxed);
        loop {
            // The node stays current, although it is not read.
            let next = word.wrapping_add(ONE_VERSION) | EMPTY;
            // Relaxed: publishes no value.
            match self.current.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Returns the version of the newest write and, unless it was a [`clear`](Self::clear), its
    /// value.
    pub(super) fn read(&self) -> (Version, Option<T>) {
        // Relaxed: a guess, which the second load confirms with acquire.
        let mut word = self.current.load(Ordering::Relaxed);
        loop {
            if word & EMPTY != 0 {
                return (word / ONE_VERSION, None);
            }
            let node = self.node(word);
            // Acquire: if a writer had the node, this sees that another is current (N2).
            node.users.fetch_add(1, Ordering::Acquire);
            let now = self.current.load(Ordering::Acquire);
            let valid = now & (NODE | EMPTY) == word & (NODE | EMPTY);
            // SAFETY: by N2 the node is not written while this reader is registered. It holds a
            // value: it is current and the word's `EMPTY` flag is clear.
            let value = valid.then(|| node.value.with(|cell| unsafe { (*cell).assume_init_read() }));
            // Release: the next writer of the node writes after this read.
            node.users.fetch_sub(1, Ordering::Release);
            if value.is_some() {
                return (now / ONE_VERSION, value);
            }
            word = now;
        }
    }

    /// Returns the version of the newest write.
    pub(super) fn version(&self) -> Version {
        self.current.load(Ordering::Relaxed) / ONE_VERSION
    }

    /// Takes an unused node.
    fn take_node(&self) -> usize {
        loop {
            for (index, node) in self.nodes.iter().enumerate() {
                // Checks first: an attempt that must fail would still take the cache line from the
                // readers.
                let is_free = node.users.load(Ordering::Relaxed) == 0;
                // Acquire: all readers have finished with the node, and it is seen not to be
                // current. A reader that registers too late sees that as well (N2): the exchange
                // passes on what it found released.
                if is_free
                    && node.users.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok()
                {
                    return index;
                }
            }
            // By N3 one node was free at every moment, though not the same one. The thread that
            // took it has made progress.
            crate::atomic::relax();
        }
    }

    fn node(&self, word: u64) -> &Node<T> {
        &self.nodes[(word & NODE) as usize]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn versions_count_writes_and_clears() {
        let snapshot = Snapshot::<u64, 2>::new();
        assert_eq!((snapshot.version(), snapshot.read()), (0, (0, None)));
        // Larger than the lower bits of the word could hide in a division.
        for version in (1..2_000).step_by(2) {
            snapshot.write(version);
            assert_eq!((snapshot.version(), snapshot.read()), (version, (version, Some(version))));
            snapshot.clear();
            assert_eq!((snapshot.version(), snapshot.read()), (version + 1, (version + 1, None)));
        }
    }

    #[test]
    fn protects_current_node_from_first_writer() {
        let snapshot = Snapshot::<u8, 3>::new();
        assert_eq!(snapshot.nodes.each_ref().map(|node| node.users.load(Ordering::Relaxed)), [1, 0, 0]);
        snapshot.write(1);
        let current = snapshot.current.load(Ordering::Relaxed);
        assert_eq!(snapshot.node(current).users.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn readers_are_counted_out() {
        let snapshot = Snapshot::<u8, 2>::new();
        snapshot.write(1);
        assert_eq!(snapshot.read().1, Some(1));
        let mut users = snapshot.nodes.each_ref().map(|node| node.users.load(Ordering::Relaxed));
        users.sort_unstable();
        assert_eq!(users, [0, 1], "one node is current, and the other unused");
    }

    #[test]
    fn accepts_2_to_32_nodes() {
        assert_eq!([1, 2, 32, 33].map(is_possible), [false, true, true, false]);
    }
}

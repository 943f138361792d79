//! A wait-free queue from one producer to one consumer.
//!
//! ```
//! use punctual_sync::shared::Ring;
//!
//! static LOG: Ring<u32, 4> = Ring::new();
//!
//! let (mut producer, mut consumer) = LOG.split().unwrap();
//! // A batch: written one by one, published at once.
//! producer.stage(1).unwrap();
//! producer.stage(2).unwrap();
//! assert_eq!(consumer.pop(), None);
//! producer.publish();
//!
//! // Taken one by one, and the slots returned at once.
//! assert_eq!((consumer.take(), consumer.take(), consumer.take()), (Some(1), Some(2), None));
//! consumer.release();
//!
//! assert_eq!(producer.push_slice(&[3, 4, 5, 6, 7]), 4);
//! assert_eq!(producer.push(7), Err(7));
//! ```
//!
//! Two counters that only grow: `tail` counts published items, `head` returned slots. Each is
//! written by one side (L. Lamport, "Specifying Concurrent Program Modules", TOPLAS 5(2), 1983).
//! Each side caches the other's counter and rereads it only when the cached value does not suffice,
//! so that most operations access no cache line of the other side; batches save the remaining
//! accesses (P. P. C. Lee, T. Bu, G. Chandranmenon, "A lock-free, cache-efficient multi-core
//! synchronization mechanism for line-rate network traffic monitoring", IPDPS 2010).
//!
//! Real-time safety: nothing here allocates, blocks or enters the kernel. Every operation is
//! wait-free: at most one load of the other side's counter and one store of this side's, plus the
//! copying of the items. If the ring is in shared memory, taking an end queries the process's
//! identity from the kernel once in the lifetime of a process; taking over queries it every time.
//!
//! # When a process dies
//!
//! An end records which process owns it. When that process has died, at any instruction, another
//! process, or the same program started again, gets the end from [`Ring::take_over_producer`] or
//! [`Ring::take_over_consumer`]; while it is alive they fail. Published items are preserved, each
//! completely and once. Items that the dead producer had not published are lost; items that the
//! dead consumer had taken and not released are delivered again, since it is unknown whether they
//! were processed. The other end is not affected.
//!
//! # Invariants
//!
//! *R1* `head ≤ tail ≤ head + N`, counted without wrapping. The producer stores `tail` only after
//! it saw a `head` with `tail − head ≤ N`, and `head` only grows; the consumer advances `head` only
//! up to a `tail` it saw. *R2* The slot of counter `i` belongs to the consumer if `head ≤ i <
//! tail`, otherwise to the producer. Ownership passes with the counter: a release store on one
//! side, an acquire load on the other. *R3* There is at most one producer and one consumer: each
//! holds a claim while it exists.

use core::fmt;
use core::mem::MaybeUninit;

use super::Padded;
use super::owner::{Claim, Home, TakeOverError};
use crate::Taken;
use crate::atomic::{AtomicU32, Ordering, UnsafeCell, const_array, const_new};

/// A bounded queue of `N` items, `N` a power of two up to 2³¹.
#[repr(C)]
pub struct Ring<T, const N: usize> {
    tail: Padded<AtomicU32>,
    head: Padded<AtomicU32>,
    producer: Padded<Claim>,
    consumer: Claim,
    home: Home,
    items: Padded<[UnsafeCell<MaybeUninit<T>>; N]>,
}

// SAFETY: by R2 and R3 one thread at a time accesses each slot, whose owner changes with release
// and acquire. Items move between threads: `T: Send`.
unsafe impl<T: Send, const N: usize> Sync for Ring<T, N> {}
// SAFETY: a ring owns its items.
unsafe impl<T: Send, const N: usize> Send for Ring<T, N> {}

const fn is_possible(capacity: usize) -> bool {
    capacity.is_power_of_two() && capacity <= 1 << 31
}

impl<T, const N: usize> Ring<T, N> {
    const MASK: u32 = {
        assert!(is_possible(N), "a ring's capacity is a power of two up to 2^31");
        N as u32 - 1
    };

    const_new! {
        /// Creates an empty ring.
        pub fn new() -> Self {
            let _ = Self::MASK;
            Self {
                tail: Padded(AtomicU32::new(0)),
                head: Padded(AtomicU32::new(0)),
                producer: Padded(Claim::new()),
                consumer: Claim::new(),
                home: Home::NOWHERE,
                items: Padded(const_array![UnsafeCell::new(MaybeUninit::uninit()); N]),
            }
        }
    }

    /// Returns both ends.
    ///
    /// # Errors
    /// [`Taken`] if one of them is in use; the other stays free.
    pub fn split(&self) -> Result<(RingProducer<'_, T, N>, RingConsumer<'_, T, N>), Taken> {
        // If the second is in use, the first is dropped and returns its claim.
        let producer = self.producer()?;
        Ok((producer, self.consumer()?))
    }

    /// Returns the producing end. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if it is in use.
    pub fn producer(&self) -> Result<RingProducer<'_, T, N>, Taken> {
        self.producer.0.take(&self.home).map(|()| self.producer_now())
    }

    /// Returns the consuming end. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if it is in use.
    pub fn consumer(&self) -> Result<RingConsumer<'_, T, N>, Taken> {
        self.consumer.take(&self.home).map(|()| self.consumer_now())
    }

    /// Returns the producing end, if it is free or the process that had it is dead.
    ///
    /// Items that the dead producer had not published are lost.
    ///
    /// # Errors
    /// [`TakeOverError`] if its process is alive or cannot be identified.
    pub fn take_over_producer(&self) -> Result<RingProducer<'_, T, N>, TakeOverError>
    where
        T: Copy,
    {
        self.producer.0.take_over(&self.home).map(|()| self.producer_now())
    }

    /// Returns the consuming end, if it is free or the process that had it is dead.
    ///
    /// Items that the dead consumer took and did not release are delivered again.
    ///
    /// # Errors
    /// [`TakeOverError`] if its process is alive or cannot be identified.
    pub fn take_over_consumer(&self) -> Result<RingConsumer<'_, T, N>, TakeOverError>
    where
        T: Copy,
    {
        self.consumer.take_over(&self.home).map(|()| self.consumer_now())
    }

    /// Returns the producing end regardless of its owner: for a process with better knowledge than
    /// the kernel, see [`TakeOverError::Unknown`].
    ///
    /// # Safety
    /// The previous producer is never used again, and no other thread takes the end concurrently.
    pub unsafe fn take_over_producer_unchecked(&self) -> RingProducer<'_, T, N>
    where
        T: Copy,
    {
        self.producer.0.seize(&self.home);
        self.producer_now()
    }

    /// Returns the consuming end regardless of its owner: for a process with better knowledge than
    /// the kernel, see [`TakeOverError::Unknown`].
    ///
    /// # Safety
    /// The previous consumer is never used again, and no other thread takes the end concurrently.
    pub unsafe fn take_over_consumer_unchecked(&self) -> RingConsumer<'_, T, N>
    where
        T: Copy,
    {
        self.consumer.seize(&self.home);
        self.consumer_now()
    }

    fn producer_now(&self) -> RingProducer<'_, T, N> {
        // Relaxed: the claim ordered this after the previous producer's last store.
        let next = self.tail.0.load(Ordering::Relaxed);
        // Acquire: as in `RingProducer::has_room`.
        RingProducer { ring: self, next, head: self.head.0.load(Ordering::Acquire) }
    }

    fn consumer_now(&self) -> RingConsumer<'_, T, N> {
        // Relaxed: the claim ordered this after the previous consumer's last store.
        let head = self.head.0.load(Ordering::Relaxed);
        // Acquire: as in `RingConsumer::has_item`.
        RingConsumer { ring: self, head, tail: self.tail.0.load(Ordering::Acquire) }
    }

    /// Returns the number of items. A snapshot while others use the ring.
    pub fn len(&self) -> usize {
        // Acquire: `tail` is not older than the one that the consumer saw. Relaxed: no item is
        // read.
        let head = self.head.0.load(Ordering::Acquire);
        let tail = self.tail.0.load(Ordering::Relaxed);
        // `head` is the older of the two, so this may count items that have been consumed.
        (tail.wrapping_sub(head) as usize).min(N)
    }

    /// Returns `true` if there is no item. A snapshot while others use the ring.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the capacity, in items: `N`.
    pub const fn capacity(&self) -> usize {
        N
    }

    #[inline(always)]
    fn item(&self, counter: u32) -> &UnsafeCell<MaybeUninit<T>> {
        // Masked, so that every counter stays in the array, even one that another process
        // corrupted.
        &self.items.0[(counter & Self::MASK) as usize]
    }

    /// Visits the slots of `count` items, at most `N`, from a counter on: one piece up to the end
    /// of the array, and another from its beginning. Calls `copy` with the index of the first slot
    /// of each piece and the range of items that belong there.
    #[cfg(not(loom))]
    #[inline(always)]
    fn pieces(&self, counter: u32, count: usize, mut copy: impl FnMut(usize, core::ops::Range<usize>)) {
        let at = (counter & Self::MASK) as usize;
        let first = N - at;
        if count <= first {
            // All of it, so that a constant length remains constant.
            copy(at, 0..count);
        } else {
            copy(at, 0..first);
            copy(0, first..count);
        }
    }

    /// The same in pieces of one, since loom's cells are not contiguous.
    #[cfg(loom)]
    fn pieces(&self, counter: u32, count: usize, mut copy: impl FnMut(usize, core::ops::Range<usize>)) {
        for item in 0..count {
            let number = (counter.wrapping_add(item as u32) & Self::MASK) as usize;
            // Shows the access to loom; the copying side owns the slot, or shares it with no
            // writer.
            self.items.0[number].with_mut(|_| ());
            copy(number, item..item + 1);
        }
    }

    /// Returns a pointer to the slot with this index, valid for the following slots too.
    /// Dereferencing it is up to unsafe code.
    #[inline(always)]
    fn place(&self, number: usize) -> *mut T {
        // A pointer to the first slot, valid for all of them; both wrappers are transparent.
        #[cfg(not(loom))]
        let place = self.items.0.as_ptr().cast_mut().cast::<T>().wrapping_add(number);
        #[cfg(loom)]
        let place = self.items.0[number].with_mut(|place| place.cast::<T>());
        place
    }
}

impl<T, const N: usize> Default for Ring<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> fmt::Debug for Ring<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("len", &self.len()).field("capacity", &N).finish()
    }
}

impl<T, const N: usize> Drop for Ring<T, N> {
    fn drop(&mut self) {
        // A leaked consumer may have taken items that `head` does not show as taken. Then the
        // remaining items are leaked too. Otherwise dropping a consumer drops no items and only
        // returns the claim.
        if core::mem::needs_drop::<T>() && !self.consumer.is_taken() {
            let mut consumer = self.consumer_now();
            while consumer.pop().is_some() {}
        }
    }
}

/// The producing end of a [`Ring`]. Dropping it publishes the staged items.
pub struct RingProducer<'a, T, const N: usize> {
    ring: &'a Ring<T, N>,
    /// The counter of the next item: at or after the published `tail`. Cached here, as the consumer
    /// caches its own: a producer that loads `tail` for each item, from a line that the consumer
    /// polls, may be so slow that the consumer always waits for it, and then each item costs a
    /// round trip of that line, five times as much in `benches/cells.rs`.
    next: u32,
    /// The last seen `head`.
    head: u32,
}

impl<T, const N: usize> RingProducer<'_, T, N> {
    /// Appends an item and publishes it, and everything staged before it.
    ///
    /// # Errors
    /// Returns the item if the ring is full.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        self.stage(item)?;
        self.publish();
        Ok(())
    }

    /// Appends an item that the consumer sees after the next [`publish`](Self::publish).
    ///
    /// # Errors
    /// Returns the item if the ring is full.
    #[inline]
    pub fn stage(&mut self, item: T) -> Result<(), T> {
        if !self.has_room() {
            return Err(item);
        }
        self.ring.item(self.next).with_mut(|place| {
            // SAFETY: by R1 and R2 the only producer owns the slots of counters
            // from `tail` to `head + N`; `has_room` checked that `next` is in that range.
            unsafe { (*place).write(item) };
        });
        self.next = self.next.wrapping_add(1);
        Ok(())
    }

    /// Publishes everything staged, in one store.
    #[inline]
    pub fn publish(&mut self) {
        // Release: the consumer that sees the counter sees the items.
        self.ring.tail.0.store(self.next, Ordering::Release);
    }

    /// Appends as many of `items` as fit and publishes them in one store, with everything staged
    /// before them; returns their number.
    #[inline]
    pub fn push_slice(&mut self, items: &[T]) -> usize
    where
        T: Copy,
    {
        // Separate branches, so that a constant length stays constant.
        let count = if self.has_room_for(items.len()) {
            self.copy_in(items);
            items.len()
        } else {
            let count = self.cached_room();
            self.copy_in(&items[..count]);
            count
        };
        self.publish();
        count
    }

    /// Stages items that are known to fit.
    #[inline(always)]
    fn copy_in(&mut self, items: &[T])
    where
        T: Copy,
    {
        self.ring.pieces(self.next, items.len(), |number, items_from| {
            let piece = &items[items_from];
            // SAFETY: by R1 and R2 the only producer owns the slots of counters
            // from `tail` to `head + N`; the items fit, and `pieces` visits the slots of that many
            // counters from `next` on, each once. `items` is foreign memory, since a producer has
            // no reference into the ring's.
            unsafe { self.ring.place(number).copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
        });
        self.next = self.next.wrapping_add(items.len() as u32);
    }

    /// Returns the number of items that fit. It only grows until the next item is appended.
    #[inline]
    pub fn room(&mut self) -> usize {
        // Acquire: as in `has_room`.
        self.head = self.ring.head.0.load(Ordering::Acquire);
        self.cached_room()
    }

    /// Returns `true` if `items` items fit. Rereads the consumer's counter only if they did not fit
    /// by the cached value, which makes it cheaper than [`room`](Self::room).
    #[inline]
    pub fn has_room_for(&mut self, items: usize) -> bool {
        self.cached_room() >= items || self.room() >= items
    }

    #[inline(always)]
    fn cached_room(&self) -> usize {
        // Saturating, for a `head` that another process corrupted.
        N.saturating_sub(self.next.wrapping_sub(self.head) as usize)
    }

    #[inline(always)]
    fn has_room(&mut self) -> bool {
        if self.next.wrapping_sub(self.head) < N as u32 {
            return true;
        }
        // Acquire: the consumer has read the items of the slots it returned.
        self.head = self.ring.head.0.load(Ordering::Acquire);
        self.next.wrapping_sub(self.head) < N as u32
    }
}

impl<T, const N: usize> Drop for RingProducer<'_, T, N> {
    fn drop(&mut self) {
        let Ring { producer: Padded(claim), home, .. } = self.ring;
        if claim.is_own(home) {
            self.publish();
            claim.give_back(home);
        }
    }
}

impl<T, const N: usize> fmt::Debug for RingProducer<'_, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let staged = self.next.wrapping_sub(self.ring.tail.0.load(Ordering::Relaxed));
        f.debug_struct("RingProducer").field("ring", self.ring).field("staged", &staged).finish()
    }
}

/// The consuming end of a [`Ring`]. Dropping it releases the taken items.
pub struct RingConsumer<'a, T, const N: usize> {
    ring: &'a Ring<T, N>,
    /// The counter of the next item: at or after the published `head`.
    head: u32,
    /// The last seen `tail`.
    tail: u32,
}

impl<T, const N: usize> RingConsumer<'_, T, N> {
    /// Takes the oldest item and returns its slot, with the slots of everything taken before it.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let item = self.take()?;
        self.release();
        Some(item)
    }

    /// Takes the oldest item; its slot becomes free with the next [`release`](Self::release).
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        if !self.has_item() {
            return None;
        }
        // SAFETY: by R1 and R2 the slots from `head` to `tail` hold items and belong to the
        // only consumer; `has_item` checked that `head` is in that range.
        // Advancing `head` ensures that the item is read once.
        let item = self.ring.item(self.head).with(|place| unsafe { (*place).assume_init_read() });
        self.head = self.head.wrapping_add(1);
        Some(item)
    }

    /// Returns the slots of everything taken to the producer, in one store.
    #[inline]
    pub fn release(&mut self) {
        // Release: the producer that sees the counter writes after these reads.
        self.ring.head.0.store(self.head, Ordering::Release);
    }

    /// Fills `items` with as many of the oldest items as available and releases them in one store;
    /// returns their number.
    #[inline]
    pub fn pop_slice(&mut self, items: &mut [T]) -> usize
    where
        T: Copy,
    {
        // Separate branches, so that a constant length stays constant.
        let count = if self.has_ready(items.len()) {
            self.copy_out(items);
            items.len()
        } else {
            let count = self.cached_ready();
            self.copy_out(&mut items[..count]);
            count
        };
        self.release();
        count
    }

    /// Takes as many items as `items` has room for, which are available.
    #[inline(always)]
    fn copy_out(&mut self, items: &mut [T])
    where
        T: Copy,
    {
        self.ring.pieces(self.head, items.len(), |number, items_from| {
            let piece = &mut items[items_from];
            // SAFETY: by R1 and R2 the slots from `head` to `tail` hold items and belong to the
            // only consumer; enough are available, and `pieces` visits the slots
            // of that many counters from `head` on, each once. `T: Copy`, so an item may be read
            // while its slot still holds it. `items` is foreign memory.
            unsafe { piece.as_mut_ptr().copy_from_nonoverlapping(self.ring.place(number), piece.len()) };
        });
        self.head = self.head.wrapping_add(items.len() as u32);
    }

    /// Returns the number of available items. It only grows until the next one is taken.
    #[inline]
    pub fn ready(&mut self) -> usize {
        // Acquire: as in `has_item`.
        self.tail = self.ring.tail.0.load(Ordering::Acquire);
        self.cached_ready()
    }

    /// Returns `true` if `items` items are available. Rereads the producer's counter only if they
    /// were not by the cached value, which makes it cheaper than [`ready`](Self::ready).
    #[inline]
    pub fn has_ready(&mut self, items: usize) -> bool {
        self.cached_ready() >= items || self.ready() >= items
    }

    #[inline(always)]
    fn cached_ready(&self) -> usize {
        // At most `N`, even with a `tail` that another process corrupted.
        (self.tail.wrapping_sub(self.head) as usize).min(N)
    }

    #[inline(always)]
    fn has_item(&mut self) -> bool {
        if self.head != self.tail {
            return true;
        }
        // Acquire: the producer has written the items it published.
        self.tail = self.ring.tail.0.load(Ordering::Acquire);
        self.head != self.tail
    }
}

impl<T, const N: usize> Drop for RingConsumer<'_, T, N> {
    fn drop(&mut self) {
        let Ring { consumer: claim, home, .. } = self.ring;
        if claim.is_own(home) {
            self.release();
            claim.give_back(home);
        }
    }
}

impl<T, const N: usize> fmt::Debug for RingConsumer<'_, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unreleased = self.head.wrapping_sub(self.ring.head.0.load(Ordering::Relaxed));
        f.debug_struct("RingConsumer").field("ring", self.ring).field("unreleased", &unreleased).finish()
    }
}

// SAFETY: `repr(C)` without pointers, as is `T`. A ring that is zero except for its home is empty
// and has no claims. To R1–R3, which rely on atomics only, two processes are two threads.
#[cfg(not(loom))]
unsafe impl<T: super::Plain, const N: usize> super::Shareable for Ring<T, N> {
    const KIND: u32 = 1;
    const CAPACITY: usize = N;
    type Element = T;
    type Init = ();

    unsafe fn write(this: *mut Self, (): ()) {
        let _ = Self::MASK;
        // SAFETY: `this` is valid for writes by the contract of this function.
        unsafe { (&raw mut (*this).home).write(Home::here()) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

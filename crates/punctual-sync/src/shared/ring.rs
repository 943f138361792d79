//! A wait-free queue from one producer to one consumer.
//!
//! ```
//! use punctual_sync::shared::Ring;
//!
//! static LOG: Ring<u32, 4> = Ring::new();
//!
//! let (mut producer, mut consumer) = LOG.split().unwrap();
//! // A batch: written one by one, seen at once.
//! producer.stage(1).unwrap();
//! producer.stage(2).unwrap();
//! assert_eq!(consumer.pop(), None);
//! producer.publish();
//!
//! // Taken one by one, and the places given back at once.
//! assert_eq!((consumer.take(), consumer.take(), consumer.take()), (Some(1), Some(2), None));
//! consumer.release();
//!
//! assert_eq!(producer.push_slice(&[3, 4, 5, 6, 7]), 4);
//! assert_eq!(producer.push(7), Err(7));
//! ```
//!
//! Two counters that only grow: `tail` counts published items, `head` places given back. Each is written by one side
//! (L. Lamport, "Specifying Concurrent Program Modules", TOPLAS 5(2), 1983). Each side remembers what it last saw of
//! the other's counter and looks again only when that does not suffice, so that most operations touch no cache line
//! of the other side's; batches save the rest (P. P. C. Lee, T. Bu, G. Chandranmenon, "A lock-free, cache-efficient
//! multi-core synchronization mechanism for line-rate network traffic monitoring", IPDPS 2010).
//!
//! Real-time safety: nothing here allocates, blocks or enters the kernel. Every operation is wait-free: one load of
//! the other side's counter and one store of the own one at most, plus the copying of the items. Taking an end asks the
//! kernel once in the life of a process who that is, if the ring is in shared memory; taking over asks it every time.
//!
//! # When a process dies
//!
//! An end records which process has it. When that has died, at any instruction, another process, or the same program
//! started again, gets the end from [`Ring::take_over_producer`] or [`Ring::take_over_consumer`]; while it lives they
//! fail. Published items are there, each whole and once. Items that the dead producer had not published are lost; items
//! that the dead consumer had taken and not released come again, since nobody can know what became of them. The other end
//! notices nothing.
//!
//! # Invariants
//!
//! *R1* `head ≤ tail ≤ head + N`, counted without wrapping. The producer stores `tail` only after it saw a `head`
//! with `tail − head ≤ N`, and `head` only grows; the consumer moves `head` only up to a `tail` it saw.
//! *R2* The place of counter `i` belongs to the consumer if `head ≤ i < tail`, otherwise to the producer. It changes
//! hands with the counter: a release store on one side, an acquire load on the other.
//! *R3* There is at most one producer and one consumer: each holds a claim while it lives.

use core::fmt;
use core::mem::MaybeUninit;

use super::Padded;
use super::owner::{Claim, Home, TakeOverError};
use crate::Taken;
use crate::atomic::{AtomicU32, Ordering, UnsafeCell};

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

// SAFETY: by R2 and R3 each place is touched by one thread at a time, and changes hands with release and acquire.
// Items cross threads: `T: Send`.
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

    /// An empty ring.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        let _ = Self::MASK;
        Self {
            tail: Padded(AtomicU32::new(0)),
            head: Padded(AtomicU32::new(0)),
            producer: Padded(Claim::new()),
            consumer: Claim::new(),
            home: Home::NOWHERE,
            items: Padded([const { UnsafeCell::new(MaybeUninit::uninit()) }; N]),
        }
    }

    /// An empty ring.
    #[cfg(loom)]
    pub fn new() -> Self {
        let _ = Self::MASK;
        Self {
            tail: Padded(AtomicU32::new(0)),
            head: Padded(AtomicU32::new(0)),
            producer: Padded(Claim::new()),
            consumer: Claim::new(),
            home: Home::NOWHERE,
            items: Padded(core::array::from_fn(|_| UnsafeCell::new(MaybeUninit::uninit()))),
        }
    }

    /// Both ends.
    ///
    /// # Errors
    /// [`Taken`] if one of them is in use; the other one stays free.
    pub fn split(&self) -> Result<(RingProducer<'_, T, N>, RingConsumer<'_, T, N>), Taken> {
        // If the second is in use, the first is dropped and gives its claim back.
        let producer = self.producer()?;
        Ok((producer, self.consumer()?))
    }

    /// The producing end. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if it is in use.
    pub fn producer(&self) -> Result<RingProducer<'_, T, N>, Taken> {
        self.producer.0.take(&self.home).map(|()| self.producer_now())
    }

    /// The consuming end. Dropping it makes it available again.
    ///
    /// # Errors
    /// [`Taken`] if it is in use.
    pub fn consumer(&self) -> Result<RingConsumer<'_, T, N>, Taken> {
        self.consumer.take(&self.home).map(|()| self.consumer_now())
    }

    /// The producing end, if it is free or the process that had it is dead.
    ///
    /// What the dead producer had not published is lost.
    ///
    /// # Errors
    /// [`TakeOverError`] if its process is alive, or cannot be identified.
    pub fn take_over_producer(&self) -> Result<RingProducer<'_, T, N>, TakeOverError>
    where
        T: Copy,
    {
        self.producer.0.take_over(&self.home).map(|()| self.producer_now())
    }

    /// The consuming end, if it is free or the process that had it is dead.
    ///
    /// Items that the dead consumer took and did not release come once more.
    ///
    /// # Errors
    /// [`TakeOverError`] if its process is alive, or cannot be identified.
    pub fn take_over_consumer(&self) -> Result<RingConsumer<'_, T, N>, TakeOverError>
    where
        T: Copy,
    {
        self.consumer.take_over(&self.home).map(|()| self.consumer_now())
    }

    /// The producing end, whoever has it: for a process that knows better than the kernel, see
    /// [`TakeOverError::Unknown`].
    ///
    /// # Safety
    /// The previous producer will never be used again, and nobody else takes the end at this moment.
    pub unsafe fn take_over_producer_unchecked(&self) -> RingProducer<'_, T, N>
    where
        T: Copy,
    {
        self.producer.0.seize(&self.home);
        self.producer_now()
    }

    /// The consuming end, whoever has it: for a process that knows better than the kernel, see
    /// [`TakeOverError::Unknown`].
    ///
    /// # Safety
    /// The previous consumer will never be used again, and nobody else takes the end at this moment.
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

    /// The number of items. A snapshot while others use the ring.
    pub fn len(&self) -> usize {
        // Acquire: `tail` is not older than the one that the consumer saw. Relaxed: no item is read.
        let head = self.head.0.load(Ordering::Acquire);
        let tail = self.tail.0.load(Ordering::Relaxed);
        // `head` is the older of the two, so this may count items that have gone by now.
        (tail.wrapping_sub(head) as usize).min(N)
    }

    /// Whether there is no item. A snapshot while others use the ring.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The capacity, in items: `N`.
    pub const fn capacity(&self) -> usize {
        N
    }

    #[inline(always)]
    fn item(&self, counter: u32) -> &UnsafeCell<MaybeUninit<T>> {
        // Masked, so that no counter leads out of the array, not even one that another process corrupted.
        &self.items.0[(counter & Self::MASK) as usize]
    }

    /// The places of `count` items, at most `N`, from a counter on: in one piece up to the end of the array, and in another from its
    /// beginning. Calls `copy` with the number of the first place of each and the part of the items that is for it.
    #[cfg(not(loom))]
    #[inline(always)]
    fn pieces(&self, counter: u32, count: usize, mut copy: impl FnMut(usize, core::ops::Range<usize>)) {
        let at = (counter & Self::MASK) as usize;
        let first = N - at;
        if count <= first {
            // All of it, so that a length that the compiler knows remains one.
            copy(at, 0..count);
        } else {
            copy(at, 0..first);
            copy(0, first..count);
        }
    }

    /// The same in pieces of one, since loom's cells do not lie one behind the other.
    #[cfg(loom)]
    fn pieces(&self, counter: u32, count: usize, mut copy: impl FnMut(usize, core::ops::Range<usize>)) {
        for item in 0..count {
            let number = (counter.wrapping_add(item as u32) & Self::MASK) as usize;
            // Only that loom sees it; who copies has the place for itself, or shares it with nobody who writes.
            self.items.0[number].with_mut(|_| ());
            copy(number, item..item + 1);
        }
    }

    /// Where the place of this number is, and those behind it are. Dereferencing it is up to unsafe code.
    #[inline(always)]
    fn place(&self, number: usize) -> *mut T {
        // A pointer to the first, valid for all of them; both wrappers are transparent.
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
        // A consumer that was leaked may have taken items which `head` does not show as taken. Then what is left is
        // leaked too. Otherwise dropping a consumer drops nothing, it only gives the claim back.
        if core::mem::needs_drop::<T>() && !self.consumer.is_taken() {
            let mut consumer = self.consumer_now();
            while consumer.pop().is_some() {}
        }
    }
}

/// The producing end of a [`Ring`]. Dropping it publishes what was staged.
pub struct RingProducer<'a, T, const N: usize> {
    ring: &'a Ring<T, N>,
    /// The counter of the next item: at or beyond the published `tail`. Kept here besides, as the consumer keeps its own: a producer that
    /// loads `tail` for each item, from a line that the consumer polls, may be so slow that the consumer always waits for it, and then each item
    /// costs that line's way there and back, which is five times as much in `benches/cells.rs`.
    next: u32,
    /// The last seen `head`.
    head: u32,
}

impl<T, const N: usize> RingProducer<'_, T, N> {
    /// Appends an item and publishes it, and everything staged before it.
    ///
    /// # Errors
    /// Gives the item back if the ring is full.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        self.stage(item)?;
        self.publish();
        Ok(())
    }

    /// Appends an item that the consumer sees after the next [`publish`](Self::publish).
    ///
    /// # Errors
    /// Gives the item back if the ring is full.
    #[inline]
    pub fn stage(&mut self, item: T) -> Result<(), T> {
        if !self.has_room() {
            return Err(item);
        }
        self.ring.item(self.next).with_mut(|place| {
            // SAFETY: by R1 and R2 the place of a counter from `tail` to `head + N` is the producer's, of which
            // there is one; `has_room` saw that `next` is in that range.
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

    /// Appends as many of `items` as there is room for and publishes them in one store, and everything staged before
    /// them; returns how many.
    #[inline]
    pub fn push_slice(&mut self, items: &[T]) -> usize
    where
        T: Copy,
    {
        // Apart, for a length that the compiler knows.
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

    /// Stages items, for which there is room.
    #[inline(always)]
    fn copy_in(&mut self, items: &[T])
    where
        T: Copy,
    {
        self.ring.pieces(self.next, items.len(), |number, items_from| {
            let piece = &items[items_from];
            // SAFETY: by R1 and R2 the places of counters from `tail` to `head + N` are the producer's, of which there is one; there
            // is room for the items, and `pieces` gives the places of so many counters from `next` on, each once. `items` is
            // somebody else's memory, since a producer has no reference into the ring's.
            unsafe { self.ring.place(number).copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
        });
        self.next = self.next.wrapping_add(items.len() as u32);
    }

    /// How many items there is room for. It only grows until the next item is appended.
    #[inline]
    pub fn room(&mut self) -> usize {
        // Acquire: as in `has_room`.
        self.head = self.ring.head.0.load(Ordering::Acquire);
        self.cached_room()
    }

    /// Whether there is room for so many items. Asks the consumer's side only if there was not when it did so last, which makes it cheaper
    /// than [`room`](Self::room).
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
        // Acquire: the consumer has read the items of the places it gave back.
        self.head = self.ring.head.0.load(Ordering::Acquire);
        self.next.wrapping_sub(self.head) < N as u32
    }
}

impl<T, const N: usize> Drop for RingProducer<'_, T, N> {
    fn drop(&mut self) {
        self.publish();
        self.ring.producer.0.give_back(&self.ring.home);
    }
}

impl<T, const N: usize> fmt::Debug for RingProducer<'_, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let staged = self.next.wrapping_sub(self.ring.tail.0.load(Ordering::Relaxed));
        f.debug_struct("RingProducer").field("ring", self.ring).field("staged", &staged).finish()
    }
}

/// The consuming end of a [`Ring`]. Dropping it releases what was taken.
pub struct RingConsumer<'a, T, const N: usize> {
    ring: &'a Ring<T, N>,
    /// The counter of the next item: at or beyond the published `head`.
    head: u32,
    /// The last seen `tail`.
    tail: u32,
}

impl<T, const N: usize> RingConsumer<'_, T, N> {
    /// Takes the oldest item and gives its place back, and the places of everything taken before it.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let item = self.take()?;
        self.release();
        Some(item)
    }

    /// Takes the oldest item; its place becomes free with the next [`release`](Self::release).
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        if !self.has_item() {
            return None;
        }
        // SAFETY: by R1 and R2 the places from `head` to `tail` hold items and are the consumer's, of which there is
        // one; `has_item` saw that `head` is in that range. Moving `head` on makes sure the item is read once.
        let item = self.ring.item(self.head).with(|place| unsafe { (*place).assume_init_read() });
        self.head = self.head.wrapping_add(1);
        Some(item)
    }

    /// Gives the places of everything taken back to the producer, in one store.
    #[inline]
    pub fn release(&mut self) {
        // Release: the producer that sees the counter writes after these reads.
        self.ring.head.0.store(self.head, Ordering::Release);
    }

    /// Fills `items` with as many of the oldest items as there are and releases them in one store; returns how many.
    #[inline]
    pub fn pop_slice(&mut self, items: &mut [T]) -> usize
    where
        T: Copy,
    {
        // Apart, for a length that the compiler knows.
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

    /// Takes as many items as `items` has, which are there.
    #[inline(always)]
    fn copy_out(&mut self, items: &mut [T])
    where
        T: Copy,
    {
        self.ring.pieces(self.head, items.len(), |number, items_from| {
            let piece = &mut items[items_from];
            // SAFETY: by R1 and R2 the places from `head` to `tail` hold items and are the consumer's, of which there is one; there
            // are so many, and `pieces` gives the places of so many counters from `head` on, each once. `T: Copy`, so that an item
            // may be read while its place still holds it. `items` is somebody else's memory.
            unsafe { piece.as_mut_ptr().copy_from_nonoverlapping(self.ring.place(number), piece.len()) };
        });
        self.head = self.head.wrapping_add(items.len() as u32);
    }

    /// How many items there are to take. It only grows until the next one is taken.
    #[inline]
    pub fn ready(&mut self) -> usize {
        // Acquire: as in `has_item`.
        self.tail = self.ring.tail.0.load(Ordering::Acquire);
        self.cached_ready()
    }

    /// Whether there are so many items to take. Asks the producer's side only if there were not when it did so last, which makes it cheaper
    /// than [`ready`](Self::ready).
    #[inline]
    pub fn has_ready(&mut self, items: usize) -> bool {
        self.cached_ready() >= items || self.ready() >= items
    }

    #[inline(always)]
    fn cached_ready(&self) -> usize {
        // At most `N`, also with a `tail` that another process corrupted.
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
        self.release();
        self.ring.consumer.give_back(&self.ring.home);
    }
}

impl<T, const N: usize> fmt::Debug for RingConsumer<'_, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unreleased = self.head.wrapping_sub(self.ring.head.0.load(Ordering::Relaxed));
        f.debug_struct("RingConsumer").field("ring", self.ring).field("unreleased", &unreleased).finish()
    }
}

// SAFETY: `repr(C)` without pointers, and `T` has none. All zero but its home is an empty ring without claims. For R1–R3,
// which rest on atomics alone, two processes are two threads.
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
mod tests {
    use super::super::owner::Owner;
    use super::*;

    #[test]
    fn no_end_believes_a_counter_that_another_process_corrupted() {
        let ring = Ring::<u8, 4>::new();
        let (mut producer, mut consumer) = ring.split().unwrap();
        ring.tail.0.store(100, Ordering::Relaxed);
        // The producer knows its own counter.
        assert_eq!((ring.len(), consumer.ready(), producer.room()), (4, 4, 4));
        ring.head.0.store(100, Ordering::Relaxed);
        assert_eq!((producer.room(), producer.has_room_for(1), producer.push(1)), (0, false, Err(1)));
    }

    #[test]
    fn an_end_is_told_of_just_enough_items_and_room() {
        let ring = Ring::<u8, 4>::new();
        let (mut producer, mut consumer) = ring.split().unwrap();
        assert!(!consumer.has_ready(1));
        assert_eq!(producer.push_slice(&[1, 2, 3, 4]), 4);
        assert!(!producer.has_room_for(1));
        // Both have looked when there was less.
        assert!(consumer.has_ready(4) && !consumer.has_ready(5));
        (1..4).for_each(|item| assert_eq!(consumer.pop(), Some(item)));
        assert!(producer.has_room_for(3) && !producer.has_room_for(4));
    }

    #[test]
    fn an_end_that_is_seized_is_the_new_owners() {
        let ring = Ring::<u8, 4>::new();
        let another = Owner::new(1, 1);
        for claim in [&ring.producer.0, &ring.consumer] {
            claim.give_to(another);
        }
        assert!(ring.split().is_err());
        // SAFETY: nobody has the ends.
        drop(unsafe { (ring.take_over_producer_unchecked(), ring.take_over_consumer_unchecked()) });
        assert!(ring.split().is_ok(), "it gave them back");
    }

    #[test]
    fn a_capacity_is_a_power_of_two_that_counters_can_tell_from_nothing() {
        let possible = [0, 1, 2, 3, 1 << 31, 1 << 32].map(is_possible);
        assert_eq!(possible, [false, true, true, false, true, false]);
    }
}

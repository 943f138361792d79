//! Messages from many senders to one side that takes them in batches, and the bell that wakes it.
//!
//! ```
//! use punctual_sync::shared::Inbox;
//!
//! static ORDERS: Inbox<u32, 2> = Inbox::new();
//!
//! assert_eq!((ORDERS.send(7), ORDERS.send(8)), (Ok(()), Ok(())));
//! assert_eq!(ORDERS.send(9), Err(9), "there is room for two");
//!
//! let mut taken = Vec::new();
//! ORDERS.drain(|order| taken.push(order));
//! assert_eq!(taken, [7, 8]);
//! assert_eq!(ORDERS.send(9), Ok(()));
//! ```
//!
//! A sender claims a slot by a bit, fills it, takes a number, and says by another bit that it is there. Whoever drains takes all
//! bits that are there in one exchange, in the order of their numbers. So a sender that is preempted, or dies, between its claim and
//! its last step keeps one slot and holds up nobody: in a queue of cells, those behind it would wait for a task of a lower level.
//!
//! Real-time safety: nothing here allocates, blocks or enters the kernel. Sending is lock-free: an attempt fails only because another
//! sender or the receiver has succeeded. Draining takes one exchange and one atomic instruction for each message, and at most
//! `N` comparisons for each.
//!
//! # Invariants
//!
//! *B1* A slot is touched by the sender that has set its bit in `used`, until that sets its bit in `ready`; then by the one drain that
//! has cleared that bit, until that clears the one in `used`. Each step releases what was done to the slot, and the next
//! acquires it.
//! *B2* Messages of one sender are drained in the order in which they were sent: when it takes a number, all of its earlier messages are
//! ready with smaller ones, or drained.
//! *B3* If a message is ready and nobody drains, then the receiver has not gone to sleep, or its bell is answered by whoever sent
//! it: see [`Doorbell`].

use core::fmt;
use core::mem::MaybeUninit;

use super::Padded;
use crate::atomic::{AtomicU32, AtomicU64, Ordering, UnsafeCell, const_new, fence};

/// Room for `N` messages, 1 to 64. Zeroed memory is an empty one.
#[repr(C)]
pub struct Inbox<T, const N: usize> {
    /// A bit for each slot with a message to be drained.
    ready: Padded<AtomicU64>,
    senders: Padded<Senders>,
    slots: Padded<[Slot<T>; N]>,
}

/// What only senders contend for, but for the bits that a drain gives back.
#[repr(C)]
struct Senders {
    /// A bit for each slot that is not free.
    used: AtomicU64,
    /// The number of the next message.
    next: AtomicU32,
}

#[repr(C)]
struct Slot<T> {
    number: UnsafeCell<u32>,
    message: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: by B1 each slot is touched by one thread at a time, and changes hands with release and acquire. Messages cross
// threads: `T: Send`.
unsafe impl<T: Send, const N: usize> Sync for Inbox<T, N> {}

impl<T: Copy, const N: usize> Inbox<T, N> {
    const ALL: u64 = {
        assert!(N >= 1 && N <= 64, "an inbox has room for 1 to 64 messages");
        u64::MAX >> (64 - N)
    };

    /// An empty one.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        let _ = Self::ALL;
        Self {
            ready: Padded(AtomicU64::new(0)),
            senders: Padded(Senders { used: AtomicU64::new(0), next: AtomicU32::new(0) }),
            slots: Padded(
                [const { Slot { number: UnsafeCell::new(0), message: UnsafeCell::new(MaybeUninit::uninit()) } };
                    N],
            ),
        }
    }

    /// An empty one.
    #[cfg(loom)]
    pub fn new() -> Self {
        let _ = Self::ALL;
        let slot = |_| Slot { number: UnsafeCell::new(0), message: UnsafeCell::new(MaybeUninit::uninit()) };
        Self {
            ready: Padded(AtomicU64::new(0)),
            senders: Padded(Senders { used: AtomicU64::new(0), next: AtomicU32::new(0) }),
            slots: Padded(core::array::from_fn(slot)),
        }
    }

    /// Puts a message in.
    ///
    /// # Errors
    /// Gives it back if there is no room.
    pub fn send(&self, message: T) -> Result<(), T> {
        let used = &self.senders.0.used;
        let mut now = used.load(Ordering::Relaxed);
        let slot = loop {
            let free = !now & Self::ALL;
            if free == 0 {
                return Err(message);
            }
            let slot = free.trailing_zeros();
            // Acquire: whoever drained the slot has read it (B1).
            match used.compare_exchange_weak(now, now | 1 << slot, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break slot,
                Err(other) => now = other,
            }
        };
        // Relaxed: B2 is about one sender, whose numbers grow, and a drain reads them after it has acquired the bits.
        let number = self.senders.0.next.fetch_add(1, Ordering::Relaxed);
        let place = &self.slots.0[slot as usize];
        // SAFETY: by B1 the slot is this sender's.
        place.number.with_mut(|cell| unsafe { *cell = number });
        // SAFETY: likewise.
        place.message.with_mut(|cell| unsafe { *cell = MaybeUninit::new(message) });
        // Release: the drain that gets the bit sees the slot (B1).
        self.ready.0.fetch_or(1 << slot, Ordering::Release);
        Ok(())
    }

    /// Hands every message that is ready to `each`, in the order in which they were sent; returns how many there were. Of
    /// two drains at once each gets some.
    ///
    /// # Panics
    /// If `each` does; what it has not been given then is given to the next drain.
    pub fn drain(&self, mut each: impl FnMut(T)) -> usize {
        // Relaxed: the exchange below decides.
        if self.ready.0.load(Ordering::Relaxed) & Self::ALL == 0 {
            return 0;
        }
        // Acquire: the senders have filled these slots (B1). Others than there are do not exist, whatever another process wrote.
        let mut taken = Taken { inbox: self, bits: self.ready.0.swap(0, Ordering::Acquire) & Self::ALL };
        let count = taken.bits.count_ones() as usize;
        // Numbers wrap, and those that are ready are close to each other.
        let now = self.senders.0.next.load(Ordering::Relaxed);
        while let Some(slot) = taken.oldest(now) {
            // SAFETY: by B1 the slot is this drain's, and was filled. A message is `Copy`.
            let message = self.slots.0[slot].message.with(|cell| unsafe { (*cell).assume_init_read() });
            taken.bits &= !(1 << slot);
            // Release: the next sender writes after this read (B1).
            self.senders.0.used.fetch_and(!(1 << slot), Ordering::Release);
            each(message);
        }
        count
    }

    /// Whether no message is ready. A snapshot while others use the inbox.
    pub fn is_empty(&self) -> bool {
        // Acquire: see `Doorbell::sleep`.
        self.ready.0.load(Ordering::Acquire) & Self::ALL == 0
    }
}

/// What a drain has taken and not handed on.
struct Taken<'a, T: Copy, const N: usize> {
    inbox: &'a Inbox<T, N>,
    bits: u64,
}

impl<T: Copy, const N: usize> Taken<'_, T, N> {
    fn oldest(&self, now: u32) -> Option<usize> {
        let slots = (0..N).filter(|slot| self.bits & 1 << slot != 0);
        slots.max_by_key(|&slot| {
            // SAFETY: by B1 the slot is this drain's.
            now.wrapping_sub(self.inbox.slots.0[slot].number.with(|cell| unsafe { *cell }))
        })
    }
}

impl<T: Copy, const N: usize> Drop for Taken<'_, T, N> {
    fn drop(&mut self) {
        if self.bits != 0 {
            // Release: whoever drains next sees what the senders wrote, which this has acquired.
            self.inbox.ready.0.fetch_or(self.bits, Ordering::Release);
        }
    }
}

impl<T: Copy, const N: usize> Default for Inbox<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> fmt::Debug for Inbox<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ready = self.ready.0.load(Ordering::Relaxed).count_ones();
        f.debug_struct("Inbox").field("ready", &ready).field("capacity", &N).finish()
    }
}

/// Says whether whoever receives sleeps, so that only then a sender has to wake it, which enters the kernel or interrupts a CPU.
///
/// The receiver calls [`sleep`](Self::sleep), looks once more, and then either sleeps or calls [`stay`](Self::stay). The sender
/// sends, and then wakes the receiver if [`is_to_ring`](Self::is_to_ring) says so. Zeroed memory is the bell of one that does not sleep.
///
/// Real-time safety: wait-free; never enters the kernel.
#[derive(Debug)]
#[repr(C)]
pub struct Doorbell(AtomicU32);

impl Doorbell {
    const_new! {
        /// That of a receiver that does not sleep.
        pub fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// Says that the receiver is about to sleep. It has to look once more after this.
    pub fn sleep(&self) {
        self.0.store(1, Ordering::Relaxed);
        // Of the two fences one comes first. If it is this, the sender reads the mark; otherwise the receiver's look finds what was
        // sent (B3).
        fence(Ordering::SeqCst);
    }

    /// Says that it does not sleep after all.
    pub fn stay(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether a sender has to wake the receiver, after it has sent. Of several, one has to.
    #[must_use]
    pub fn is_to_ring(&self) -> bool {
        // See `sleep`.
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::Relaxed) != 0
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn drained<const N: usize>(inbox: &Inbox<u32, N>) -> Vec<u32> {
        let mut all = Vec::new();
        inbox.drain(|message| all.push(message));
        all
    }

    #[test]
    fn keeps_the_order_whatever_slots_are_free() {
        let inbox = Inbox::<u32, 3>::new();
        for round in 0..10 {
            assert_eq!(inbox.send(3 * round), Ok(()));
            inbox.drain(|_| {
                // The slot is free already, and what is sent now is for the next drain.
                assert_eq!(inbox.send(3 * round + 1), Ok(()));
                assert_eq!(inbox.send(3 * round + 2), Ok(()));
            });
            assert_eq!(drained(&inbox), [3 * round + 1, 3 * round + 2]);
            assert!(inbox.is_empty());
        }
    }

    #[test]
    fn keeps_the_order_when_numbers_wrap() {
        let inbox = Inbox::<u32, 64>::new();
        inbox.senders.0.next.store(u32::MAX - 2, Ordering::Relaxed);
        (0..64).for_each(|message| inbox.send(message).unwrap());
        assert_eq!(inbox.send(64), Err(64));
        assert_eq!(drained(&inbox), (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn a_sender_in_between_holds_up_nobody() {
        let inbox = Inbox::<u32, 2>::new();
        // It has claimed its slot, and goes no further.
        inbox.senders.0.used.store(1, Ordering::Relaxed);
        for message in 0..5 {
            inbox.send(message).unwrap();
            assert_eq!(inbox.send(9), Err(9));
            assert_eq!(drained(&inbox), [message]);
        }
    }

    #[test]
    fn a_panic_loses_only_what_it_was_given() {
        let inbox = Inbox::<u32, 4>::new();
        (0..3).for_each(|message| inbox.send(message).unwrap());
        let panics = std::panic::AssertUnwindSafe(|| inbox.drain(|message| assert_ne!(message, 1)));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(drained(&inbox), [2]);
    }

    #[test]
    fn one_of_several_rings_for_who_sleeps() {
        let bell = Doorbell::new();
        assert!(!bell.is_to_ring());
        bell.sleep();
        assert_eq!([bell.is_to_ring(), bell.is_to_ring()], [true, false]);
        bell.sleep();
        bell.stay();
        assert!(!bell.is_to_ring());
    }
}

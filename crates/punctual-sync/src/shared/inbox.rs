//! Messages from many senders to one receiver that takes them in batches, and the doorbell that
//! wakes it.
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
//! A sender claims a slot with a bit, fills it, takes a number, and marks the slot ready with
//! another bit. A drain takes all ready slots in one exchange, in the order of their numbers. So a
//! sender that is preempted, or dies, between its claim and its last step occupies one slot and
//! delays no other thread: in a queue of cells, those behind it would wait for a task of a lower
//! level.
//!
//! Real-time safety: nothing here allocates, blocks or enters the kernel. Sending is lock-free: an
//! attempt fails only because another sender or the receiver has succeeded. Draining takes one
//! exchange, and for each message one atomic instruction and at most `N` comparisons.
//!
//! # Invariants
//!
//! *B1* A slot is accessed by the sender that has set its bit in `used`, until that sender sets its
//! bit in `ready`; then by the drain that has cleared that bit, until the drain clears the one in
//! `used`. Each step releases the changes to the slot, and the next acquires them. *B2* Messages of
//! one sender are drained in the order in which they were sent: when it takes a number, all of its
//! earlier messages are ready with smaller ones, or drained. *B3* If a message is ready and no
//! thread drains, then the receiver has not gone to sleep, or the sender rings its doorbell: see
//! [`Doorbell`].

use core::fmt;
use core::mem::MaybeUninit;

use super::Padded;
use crate::atomic::{AtomicU32, AtomicU64, Ordering, UnsafeCell, const_array, const_new, fence};

/// An inbox for `N` messages, 1 to 64. Zeroed memory is an empty inbox.
#[repr(C)]
pub struct Inbox<T, const N: usize> {
    /// One bit per slot, set if the slot has a message to be drained.
    ready: Padded<AtomicU64>,
    senders: Padded<Senders>,
    slots: Padded<[Slot<T>; N]>,
}

/// The state contended by senders only, except for the bits that a drain frees.
#[repr(C)]
struct Senders {
    /// One bit per slot, set if the slot is not free.
    used: AtomicU64,
    /// The number of the next message.
    next: AtomicU32,
}

#[repr(C)]
struct Slot<T> {
    number: UnsafeCell<u32>,
    message: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: by B1 one thread at a time accesses each slot, whose owner changes with release and
// acquire. Messages move between threads: `T: Send`.
unsafe impl<T: Send, const N: usize> Sync for Inbox<T, N> {}

impl<T: Copy, const N: usize> Inbox<T, N> {
    const ALL: u64 = {
        assert!(N >= 1 && N <= 64, "an inbox has room for 1 to 64 messages");
        u64::MAX >> (64 - N)
    };

    const_new! {
        /// Creates an empty inbox.
        pub fn new() -> Self {
            let _ = Self::ALL;
            Self {
                ready: Padded(AtomicU64::new(0)),
                senders: Padded(Senders { used: AtomicU64::new(0), next: AtomicU32::new(0) }),
                slots: Padded(const_array![
                    Slot { number: UnsafeCell::new(0), message: UnsafeCell::new(MaybeUninit::uninit()) };
                    N
                ]),
            }
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Returns the message if there is no room.
    pub fn send(&self, message: T) -> Result<(), T> {
        let used = &self.senders.0.used;
        let mut now = used.load(Ordering::Relaxed);
        let slot = loop {
            let free = !now & Self::ALL;
            if free == 0 {
                return Err(message);
            }
            let slot = free.trailing_zeros();
            // Acquire: the thread that drained the slot has read it (B1).
            match used.compare_exchange_weak(now, now | 1 << slot, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break slot,
                Err(other) => now = other,
            }
        };
        // Relaxed: B2 is about one sender, whose numbers grow, and a drain reads them after it has
        // acquired the bits.
        let number = self.senders.0.next.fetch_add(1, Ordering::Relaxed);
        let place = &self.slots.0[slot as usize];
        // SAFETY: by B1 this sender owns the slot.
        place.number.with_mut(|cell| unsafe { *cell = number });
        // SAFETY: as above.
        place.message.with_mut(|cell| unsafe { *cell = MaybeUninit::new(message) });
        // Release: the drain that takes the bit sees the slot (B1).
        self.ready.0.fetch_or(1 << slot, Ordering::Release);
        Ok(())
    }

    /// Passes every ready message to `each`, in the order in which they were sent; returns their
    /// number. Of two concurrent drains each gets some.
    ///
    /// # Panics
    /// If `each` panics; the messages that it has not received go to the next drain.
    pub fn drain(&self, mut each: impl FnMut(T)) -> usize {
        // Relaxed: the exchange below decides.
        if self.ready.0.load(Ordering::Relaxed) & Self::ALL == 0 {
            return 0;
        }
        // Acquire: the senders have filled these slots (B1). Masked, since another process may have
        // written bits of nonexistent slots.
        let mut taken = Taken { inbox: self, bits: self.ready.0.swap(0, Ordering::Acquire) & Self::ALL };
        let count = taken.bits.count_ones() as usize;
        // Numbers wrap, and those that are ready are close to each other.
        let now = self.senders.0.next.load(Ordering::Relaxed);
        while let Some(slot) = taken.oldest(now) {
            // SAFETY: by B1 this drain owns the slot, which was filled. A message is `Copy`.
            let message = self.slots.0[slot].message.with(|cell| unsafe { (*cell).assume_init_read() });
            taken.bits &= !(1 << slot);
            // Release: the next sender writes after this read (B1).
            self.senders.0.used.fetch_and(!(1 << slot), Ordering::Release);
            each(message);
        }
        count
    }

    /// Returns `true` if no message is ready. A snapshot while others use the inbox.
    pub fn is_empty(&self) -> bool {
        // Acquire: see `Doorbell::sleep`.
        self.ready.0.load(Ordering::Acquire) & Self::ALL == 0
    }
}

/// The messages that a drain has taken but not passed on.
struct Taken<'a, T: Copy, const N: usize> {
    inbox: &'a Inbox<T, N>,
    bits: u64,
}

impl<T: Copy, const N: usize> Taken<'_, T, N> {
    fn oldest(&self, now: u32) -> Option<usize> {
        let slots = (0..N).filter(|slot| self.bits & 1 << slot != 0);
        slots.max_by_key(|&slot| {
            // SAFETY: by B1 this drain owns the slot.
            now.wrapping_sub(self.inbox.slots.0[slot].number.with(|cell| unsafe { *cell }))
        })
    }
}

impl<T: Copy, const N: usize> Drop for Taken<'_, T, N> {
    fn drop(&mut self) {
        if self.bits != 0 {
            // Release: the next drain sees the senders' writes, which this one has acquired.
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

// SAFETY: `repr(C)`, and no pointers, also in `T`. All zero is an empty inbox. For B1–B3,
// which rest on atomics alone, two processes are two threads; bits of slots that do not exist are
// masked.
#[cfg(not(loom))]
unsafe impl<T: super::Plain, const N: usize> super::Shareable for Inbox<T, N> {
    const KIND: u32 = 7;
    const CAPACITY: usize = N;
    type Element = T;
    type Init = ();

    unsafe fn write(_: *mut Self, (): ()) {
        let _ = Self::ALL;
    }
}

/// Records whether the receiver sleeps, so that a sender has to wake it, which enters the kernel or
/// interrupts a CPU, only then.
///
/// The receiver calls [`sleep`](Self::sleep), checks the inbox once more, and then either sleeps or
/// calls [`stay`](Self::stay). The sender sends, and then wakes the receiver if
/// [`is_to_ring`](Self::is_to_ring) returns `true`. Zeroed memory is the doorbell of an awake
/// receiver.
///
/// Real-time safety: wait-free; never enters the kernel.
#[derive(Debug)]
#[repr(C)]
pub struct Doorbell(AtomicU32);

impl Doorbell {
    const_new! {
        /// Creates the doorbell of an awake receiver.
        pub fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// Records that the receiver is about to sleep. It has to check the inbox once more after this.
    pub fn sleep(&self) {
        self.0.store(1, Ordering::Relaxed);
        // One of the two fences comes first. If it is this one, the sender reads the flag;
        // otherwise the receiver's check finds the message (B3).
        fence(Ordering::SeqCst);
    }

    /// Records that the receiver does not sleep after all.
    pub fn stay(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns `true` if a sender has to wake the receiver after it has sent. Of several
    /// concurrent senders, one gets `true`.
    #[must_use]
    pub fn is_to_ring(&self) -> bool {
        // See `sleep`.
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::Relaxed) != 0
    }
}

// SAFETY: `repr(C)` and an atomic; zero is a valid value.
#[cfg(not(loom))]
unsafe impl super::Shareable for Doorbell {
    const KIND: u32 = 9;
    type Element = ();
    type Init = ();

    unsafe fn write(_: *mut Self, (): ()) {}
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
    fn keeps_order_with_any_free_slots() {
        let inbox = Inbox::<u32, 3>::new();
        for round in 0..10 {
            assert_eq!(inbox.send(3 * round), Ok(()));
            inbox.drain(|_| {
                // The slot is free already, and messages sent now are for the next drain.
                assert_eq!(inbox.send(3 * round + 1), Ok(()));
                assert_eq!(inbox.send(3 * round + 2), Ok(()));
            });
            assert_eq!(drained(&inbox), [3 * round + 1, 3 * round + 2]);
            assert!(inbox.is_empty());
        }
    }

    #[test]
    fn keeps_order_across_wrap() {
        let inbox = Inbox::<u32, 64>::new();
        inbox.senders.0.next.store(u32::MAX - 2, Ordering::Relaxed);
        (0..64).for_each(|message| inbox.send(message).unwrap());
        assert_eq!(inbox.send(64), Err(64));
        assert_eq!(drained(&inbox), (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn stalled_sender_delays_no_other() {
        let inbox = Inbox::<u32, 2>::new();
        // A sender has claimed its slot, and stops there.
        inbox.senders.0.used.store(1, Ordering::Relaxed);
        for message in 0..5 {
            inbox.send(message).unwrap();
            assert_eq!(inbox.send(9), Err(9));
            assert_eq!(drained(&inbox), [message]);
        }
    }

    #[test]
    fn panic_loses_only_its_message() {
        let inbox = Inbox::<u32, 4>::new();
        (0..3).for_each(|message| inbox.send(message).unwrap());
        let panics = std::panic::AssertUnwindSafe(|| inbox.drain(|message| assert_ne!(message, 1)));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(drained(&inbox), [2]);
    }

    #[test]
    fn one_sender_rings_for_sleeping_receiver() {
        let bell = Doorbell::new();
        assert!(!bell.is_to_ring());
        bell.sleep();
        assert_eq!([bell.is_to_ring(), bell.is_to_ring()], [true, false]);
        bell.sleep();
        bell.stay();
        assert!(!bell.is_to_ring());
    }
}

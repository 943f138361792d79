//! Every message from many senders to one receiver, in order.
//!
//! ```
//! use punctual_sync::asynch::channel::TrySendError;
//! use punctual_sync::make_channel;
//!
//! let (mut sender, mut receiver) = make_channel!(u32, 2);
//! let mut another = sender.clone();
//! sender.try_send(1).unwrap();
//! another.try_send(2).unwrap();
//! assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
//!
//! # let work = async move {
//! assert_eq!(receiver.recv().await, Ok(1));
//! sender.send(3).await.unwrap();
//! assert_eq!(receiver.recv().await, Ok(2));
//! # };
//! # let mut context = core::task::Context::from_waker(core::task::Waker::noop());
//! # assert!(core::pin::pin!(work).poll(&mut context).is_ready());
//! ```
//!
//! The names and the behavior are those of `rtic_sync::channel`, with these differences: the number
//! of senders is limited, see the parent module; and messages to a receiver that is being dropped
//! may be dropped with the channel instead of being returned.
//!
//! A message is stored in a *node* from the free list. Sending pushes the node onto a stack, and
//! the receiver takes the whole stack at once and reverses it (R. K. Treiber, "Systems Programming:
//! Coping with Parallelism", IBM RJ 5118, 1986). A message is sent the moment it is visible, so a
//! sender that is preempted in the middle of sending hides no later message of another, as it would
//! in a ring with claimed but unpublished cells.
//!
//! Real-time safety: nothing allocates, blocks or enters the kernel, except what wakers do. Sending
//! and receiving are lock-free: an attempt is repeated only if another thread sent or received in
//! the meantime. Receiving visits once each message that arrived since the stack was last taken;
//! there are never more than `N`.
//!
//! # Invariants
//!
//! *C1* A node is in the free list, belongs to one sender that is writing it, is in the inbox, or
//! belongs to the receiver. Its owner changes with a release and an acquire of the word that leads
//! to it. *C2* There are at least as many nodes in the free list as permits that are free or held
//! by senders, until the receiver is dropped. So a sender with a permit finds a node. *C3* There is
//! one receiver: `split` creates it.

mod receiver;
mod sender;

pub use receiver::{ReceiveError, Receiver};
pub use sender::{NoReceiver, Sender, TrySendError};

use core::fmt;
use core::mem::MaybeUninit;

use super::Ends;
use super::permits::Permits;
use super::waiters::Waiters;
use crate::Taken;
use crate::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, UnsafeCell};

/// A channel for `N` messages, with slots for `W` tasks: the receiver and `W − 1` senders.
pub struct Channel<T, const N: usize, const W: usize = 16> {
    /// One permit for each free message slot.
    permits: Permits<W>,
    /// The free list: index + 1 of its first node in the lower 32 bits, 0 for none; in the upper 32
    /// bits a count of removals, so that a first node that left and returned is not mistaken for
    /// one that stayed.
    free: AtomicU64,
    /// The messages that the receiver has not seen, newest first.
    inbox: AtomicU32,
    /// The messages that it has seen, oldest first. Only the receiver changes it.
    ready: AtomicU32,
    /// The links of these lists.
    next: [AtomicU32; N],
    messages: [UnsafeCell<MaybeUninit<T>>; N],
    receiver: Waiters<W>,
    senders: Ends,
    is_split: AtomicBool,
    is_closed: AtomicBool,
}

// SAFETY: by C1 one thread at a time accesses each message. Messages move between threads: `T:
// Send`.
unsafe impl<T: Send, const N: usize, const W: usize> Sync for Channel<T, N, W> {}
// SAFETY: a channel owns its messages.
unsafe impl<T: Send, const N: usize, const W: usize> Send for Channel<T, N, W> {}

/// `Waiters` limits the number of slots from above.
const fn is_possible(messages: usize, slots: usize) -> bool {
    messages >= 1 && messages < u32::MAX as usize && slots >= 2
}

impl<T, const N: usize> Channel<T, N> {
    crate::atomic::const_new! {
        /// Creates an empty channel with 16 slots.
        pub fn new() -> Self {
            Self::with_slots()
        }
    }
}

impl<T, const N: usize, const W: usize> Channel<T, N, W> {
    const CHECK: () = assert!(is_possible(N, W), "N is at least 1, and W at least 2");

    /// Creates an empty channel with `W` slots, up to 32.
    #[cfg(not(loom))]
    pub const fn with_slots() -> Self {
        let () = Self::CHECK;
        let mut next = [const { AtomicU32::new(0) }; N];
        let mut node = 0;
        while node + 1 < N {
            next[node] = AtomicU32::new(node as u32 + 2);
            node += 1;
        }
        Self {
            permits: Permits::new(N as u32),
            free: AtomicU64::new(1),
            inbox: AtomicU32::new(0),
            ready: AtomicU32::new(0),
            next,
            messages: [const { UnsafeCell::new(MaybeUninit::uninit()) }; N],
            receiver: Waiters::new(),
            senders: Ends::new(),
            is_split: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Creates an empty channel with `W` slots, up to 32.
    #[cfg(loom)]
    pub fn with_slots() -> Self {
        let () = Self::CHECK;
        let next = |node| AtomicU32::new(if node + 1 < N { node as u32 + 2 } else { 0 });
        Self {
            permits: Permits::new(N as u32),
            free: AtomicU64::new(1),
            inbox: AtomicU32::new(0),
            ready: AtomicU32::new(0),
            next: core::array::from_fn(next),
            messages: core::array::from_fn(|_| UnsafeCell::new(MaybeUninit::uninit())),
            receiver: Waiters::new(),
            senders: Ends::new(),
            is_split: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Returns a sender and the receiver. Messages left from an earlier split are dropped.
    pub fn split(&mut self) -> (Sender<'_, T, N, W>, Receiver<'_, T, N, W>) {
        if self.is_split.load(Ordering::Relaxed) {
            // The borrow proves that no end exists. The nodes of leaked ends are free again, too.
            *self = Self::with_slots();
        }
        self.split_once().expect("the channel is new, or has not been split")
    }

    /// Returns a sender and the receiver of a channel that has not been split.
    ///
    /// # Errors
    /// [`Taken`] if the channel has been split.
    #[doc(hidden)]
    pub fn split_once(&self) -> Result<(Sender<'_, T, N, W>, Receiver<'_, T, N, W>), Taken> {
        // Relaxed: it only determines whether another thread was first.
        if self.is_split.swap(true, Ordering::Relaxed) {
            return Err(Taken);
        }
        Ok((Sender::new(self), Receiver::new(self)))
    }

    /// Takes a node from the free list. A sender with a permit finds one, unless the receiver was
    /// dropped (C2).
    fn take_node(&self) -> Option<u32> {
        // Acquire, here and on failure: the link of the first node, and that the receiver has read
        // its last message.
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let node = (head as u32).checked_sub(1)?;
            // May be stale, if another sender took the node in the meantime; then the count has
            // advanced.
            let next = self.next[node as usize].load(Ordering::Relaxed);
            let taken = (head & !u64::from(u32::MAX)).wrapping_add(1 << 32) | u64::from(next);
            // Relaxed: the count makes every word unique, so a successful exchange finds the
            // acquired value.
            match self.free.compare_exchange_weak(head, taken, Ordering::Relaxed, Ordering::Acquire) {
                Ok(_) => return Some(node),
                Err(now) => head = now,
            }
        }
    }

    /// Puts a node on the free list; the receiver only.
    fn free_node(&self, node: u32) {
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            self.next[node as usize].store(head as u32, Ordering::Relaxed);
            let put = head & !u64::from(u32::MAX) | u64::from(node + 1);
            // Release: the next sender writes the node after this receiver's read.
            match self.free.compare_exchange_weak(head, put, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Sends the message in `node`.
    fn put_node(&self, node: u32) {
        let mut last = self.inbox.load(Ordering::Relaxed);
        loop {
            self.next[node as usize].store(last, Ordering::Relaxed);
            // Release: the receiver sees the message and the link.
            match self.inbox.compare_exchange_weak(last, node + 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => last = now,
            }
        }
    }

    /// Takes the oldest message's node; the receiver only.
    fn next_node(&self) -> Option<u32> {
        let mut node = self.ready.load(Ordering::Relaxed);
        if node == 0 {
            // The relaxed load saves an atomic instruction; a message it misses is followed by a
            // wake.
            if self.inbox.load(Ordering::Relaxed) == 0 {
                return None;
            }
            // Acquire: the messages, and the links between them.
            let mut last = self.inbox.swap(0, Ordering::Acquire);
            while last != 0 {
                let next = self.next[last as usize - 1].load(Ordering::Relaxed);
                self.next[last as usize - 1].store(node, Ordering::Relaxed);
                node = last;
                last = next;
            }
        }
        let node = node.checked_sub(1)?;
        self.ready.store(self.next[node as usize].load(Ordering::Relaxed), Ordering::Relaxed);
        Some(node)
    }

    /// Takes the oldest message; the receiver only.
    fn next_message(&self) -> Option<T> {
        let node = self.next_node()?;
        // SAFETY: by C1 the receiver owns the node, which holds a message, and it is read once.
        let message = self.messages[node as usize].with(|message| unsafe { (*message).assume_init_read() });
        self.free_node(node);
        // After the node: see C2.
        self.permits.release();
        Some(message)
    }

    fn has_no_message(&self) -> bool {
        self.ready.load(Ordering::Relaxed) == 0 && self.inbox.load(Ordering::Relaxed) == 0
    }
}

impl<T, const N: usize> Default for Channel<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize, const W: usize> Drop for Channel<T, N, W> {
    fn drop(&mut self) {
        // No end is left, or none will be used: this thread stands for the receiver.
        while self.next_message().is_some() {}
    }
}

impl<T, const N: usize, const W: usize> fmt::Debug for Channel<T, N, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let room = self.permits.free();
        f.debug_struct("Channel").field("capacity", &N).field("room", &room).finish_non_exhaustive()
    }
}

/// Returns a sender and the receiver of a new channel with `'static` lifetime: `make_channel!(type,
/// messages)`, or `make_channel!(type, messages, slots)`.
///
/// # Panics
/// If the same invocation is reached twice.
#[macro_export]
macro_rules! make_channel {
    ($T:ty, $N:expr) => {{
        static CHANNEL: $crate::asynch::channel::Channel<$T, { $N }> =
            $crate::asynch::channel::Channel::with_slots();
        CHANNEL.split_once().expect("`make_channel!` must run once")
    }};
    ($T:ty, $N:expr, $W:expr) => {{
        static CHANNEL: $crate::asynch::channel::Channel<$T, { $N }, { $W }> =
            $crate::asynch::channel::Channel::with_slots();
        CHANNEL.split_once().expect("`make_channel!` must run once")
    }};
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rejects_zero_capacity_and_zero_ends() {
        let most = u32::MAX as usize - 1;
        let possible = [(0, 2), (1, 1), (1, 2), (most, 2), (most + 1, 2)].map(|(n, w)| is_possible(n, w));
        assert_eq!(possible, [false, false, true, true, false]);
    }
}

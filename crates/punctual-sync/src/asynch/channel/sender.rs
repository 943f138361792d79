//! The sending end of a channel. See the [parent module](super) for an example.

use core::fmt;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use super::Channel;
use crate::asynch::waiters::Waiting;
use crate::atomic::Ordering;

/// The receiver has been dropped. Holds the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NoReceiver<T>(pub T);

/// The reason [`Sender::try_send`] did not send. Holds the message.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrySendError<T> {
    /// The receiver has been dropped.
    NoReceiver(T),
    /// The channel is full, or others wait for room.
    Full(T),
}

/// The sending end of a [`Channel`]. It can be cloned.
pub struct Sender<'a, T, const N: usize, const W: usize = 16> {
    channel: &'a Channel<T, N, W>,
}

/// A wait for room, which ends when its future is dropped.
struct Room<'a, T, const N: usize, const W: usize> {
    channel: &'a Channel<T, N, W>,
    waiting: Option<Waiting>,
}

/// The channel has been closed.
struct Closed;

impl<'a, T, const N: usize, const W: usize> Sender<'a, T, N, W> {
    /// # Panics
    /// If the channel has no slot for another sender.
    pub(super) fn new(channel: &'a Channel<T, N, W>) -> Self {
        channel.senders.add(W - 1);
        Self { channel }
    }

    /// Sends a message if there is room and no sender waits for it.
    ///
    /// # Errors
    /// Returns the message if there is no room or no receiver.
    pub fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>> {
        if self.is_closed() {
            return Err(TrySendError::NoReceiver(message));
        }
        if !self.channel.permits.try_acquire() {
            return Err(TrySendError::Full(message));
        }
        self.put(message).map_err(|NoReceiver(message)| TrySendError::NoReceiver(message))
    }

    /// Sends a message, waiting for room if there is none. Senders get room in the order in which
    /// they began to wait.
    ///
    /// # Errors
    /// Returns the message if there is no receiver.
    pub async fn send(&mut self, message: T) -> Result<(), NoReceiver<T>> {
        let mut room = Room { channel: self.channel, waiting: None };
        match poll_fn(|cx| room.poll(cx.waker())).await {
            Ok(()) => self.put(message),
            Err(Closed) => Err(NoReceiver(message)),
        }
    }

    /// Returns `true` if no receiver is left.
    pub fn is_closed(&self) -> bool {
        self.channel.is_closed.load(Ordering::Relaxed)
    }

    /// Returns `true` if the channel is full. A snapshot while others use the channel.
    pub fn is_full(&self) -> bool {
        self.channel.permits.free() == 0
    }

    /// Returns `true` if there is no message. A snapshot while others use the channel.
    pub fn is_empty(&self) -> bool {
        self.channel.has_no_message()
    }

    /// Sends a message for which the caller has a permit.
    fn put(&self, message: T) -> Result<(), NoReceiver<T>> {
        // By C2 there is a node unless the receiver was dropped, which lets every waiting sender
        // proceed.
        let Some(node) = self.channel.take_node() else { return Err(NoReceiver(message)) };
        self.channel.messages[node as usize].with_mut(|cell| {
            // SAFETY: by C1 this thread owns the node that it took from the free list, which holds
            // no message.
            unsafe { (*cell).write(message) };
        });
        self.channel.put_node(node);
        self.channel.receiver.wake_all();
        Ok(())
    }
}

impl<T, const N: usize, const W: usize> Room<'_, T, N, W> {
    fn poll(&mut self, waker: &Waker) -> Poll<Result<(), Closed>> {
        let is_closed = || self.channel.is_closed.load(Ordering::Relaxed);
        if !is_closed() {
            let polled = self.channel.permits.poll_acquire(&mut self.waiting, waker);
            // Checked again: the receiver's drop wakes the waiting senders without giving them
            // permits. A sender that begins to wait and is not seen by the drop sees the close,
            // because both sides execute a fence in between.
            if !is_closed() {
                return polled.map(Ok);
            }
        }
        // A permit that this sender may have is worthless by now.
        Poll::Ready(Err(Closed))
    }
}

impl<T, const N: usize, const W: usize> Drop for Room<'_, T, N, W> {
    fn drop(&mut self) {
        self.channel.permits.withdraw(&mut self.waiting);
    }
}

impl<T, const N: usize, const W: usize> Clone for Sender<'_, T, N, W> {
    /// # Panics
    /// If there are `W − 1` senders already.
    fn clone(&self) -> Self {
        Self::new(self.channel)
    }
}

impl<T, const N: usize, const W: usize> Drop for Sender<'_, T, N, W> {
    fn drop(&mut self) {
        if self.channel.senders.remove() == 0 {
            // The receiver must not wait for messages that no sender will send.
            self.channel.receiver.wake_all();
        }
    }
}

impl<T, const N: usize, const W: usize> fmt::Debug for Sender<'_, T, N, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("channel", self.channel).finish()
    }
}

// `Debug` for the errors does not require `Debug` messages.
impl<T> fmt::Debug for NoReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoReceiver(..)")
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoReceiver(_) => "NoReceiver(..)",
            Self::Full(_) => "Full(..)",
        })
    }
}

impl<T> fmt::Display for NoReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the channel's receiver has been dropped")
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoReceiver(_) => "the channel's receiver has been dropped",
            Self::Full(_) => "the channel is full",
        })
    }
}

impl<T> core::error::Error for NoReceiver<T> {}
impl<T> core::error::Error for TrySendError<T> {}

//! The receiving end of a channel. See the [parent module](super) for an example.

use core::fmt;
use core::future::poll_fn;

use super::Channel;
use crate::asynch::waiters::Until;
use crate::atomic::Ordering;

/// The reason no message was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiveError {
    /// All senders have been dropped, and every message has been received.
    NoSender,
    /// The channel is empty.
    Empty,
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSender => "every sender has been dropped and every message received",
            Self::Empty => "the channel is empty",
        })
    }
}

impl core::error::Error for ReceiveError {}

/// The receiving end of a [`Channel`], the only one. Dropping it closes the channel.
pub struct Receiver<'a, T, const N: usize, const W: usize = 16> {
    channel: &'a Channel<T, N, W>,
}

impl<'a, T, const N: usize, const W: usize> Receiver<'a, T, N, W> {
    pub(super) fn new(channel: &'a Channel<T, N, W>) -> Self {
        Self { channel }
    }

    /// Receives a message if there is one.
    ///
    /// # Errors
    /// [`ReceiveError`], if there is none.
    pub fn try_recv(&mut self) -> Result<T, ReceiveError> {
        if let Some(message) = self.channel.next_message() {
            return Ok(message);
        }
        if !self.is_closed() {
            return Err(ReceiveError::Empty);
        }
        // The last sender may have sent between the two checks.
        self.channel.next_message().ok_or(ReceiveError::NoSender)
    }

    /// Receives a message, waiting for one if there is none.
    ///
    /// # Errors
    /// [`ReceiveError::NoSender`], if there is none and no sender is left.
    pub async fn recv(&mut self) -> Result<T, ReceiveError> {
        let mut until = Until::new(&self.channel.receiver);
        poll_fn(|cx| {
            until.poll(cx.waker(), || match self.try_recv() {
                Err(ReceiveError::Empty) => None,
                received => Some(received),
            })
        })
        .await
    }

    /// Returns `true` if no sender is left.
    pub fn is_closed(&self) -> bool {
        self.channel.senders.count() == 0
    }

    /// Returns `true` if the channel is full. A snapshot while others use the channel.
    pub fn is_full(&self) -> bool {
        self.channel.permits.free() == 0
    }

    /// Returns `true` if there is no message. A snapshot while others use the channel.
    pub fn is_empty(&self) -> bool {
        self.channel.has_no_message()
    }
}

impl<T, const N: usize, const W: usize> Drop for Receiver<'_, T, N, W> {
    fn drop(&mut self) {
        // Relaxed: it publishes nothing but itself. Waiting senders are woken after it, and
        // `wake_all` executes the fence that `Room::poll` relies on.
        self.channel.is_closed.store(true, Ordering::Relaxed);
        self.channel.permits.wake_all();
        while self.channel.next_message().is_some() {}
    }
}

impl<T, const N: usize, const W: usize> fmt::Debug for Receiver<'_, T, N, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("channel", self.channel).finish()
    }
}

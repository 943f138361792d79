//! Giving up on a future at a time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use punctual_core::{Instant, IntoDuration};

use super::delay::{Delay, delay, delay_until};

/// The time was up before the future completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeoutError;

impl std::fmt::Display for TimeoutError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the time was up before the future completed")
    }
}

impl std::error::Error for TimeoutError {}

/// Waits for `future`, but no longer than until `time`; then the future is dropped.
///
/// A future that completes in the very poll in which its time is up has completed. Real-time safety and panics are
/// those of [`delay_until`].
///
/// # Errors
/// [`TimeoutError`] if the time was up first.
pub fn timeout_at<F: Future>(time: Instant, future: F) -> Timeout<F> {
    Timeout { future: Some(future), delay: delay_until(time) }
}

/// Waits for `future`, but no longer than `duration` from the first poll; see [`timeout_at`].
///
/// # Errors
/// [`TimeoutError`] if the time was up first.
pub fn timeout_after<F: Future>(duration: impl IntoDuration, future: F) -> Timeout<F> {
    Timeout { future: Some(future), delay: delay(duration) }
}

/// A future with a time limit: from [`timeout_at`] or [`timeout_after`].
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct Timeout<F> {
    /// `None` once it has completed or been given up.
    future: Option<F>,
    delay: Delay,
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, TimeoutError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `future` is pinned with the whole; it is not moved out, only dropped in place. `delay` is `Unpin`.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above.
        let mut future = unsafe { Pin::new_unchecked(&mut this.future) };
        let pending = future.as_mut().as_pin_mut().expect("a future is not polled after it has completed");
        let result = match pending.poll(cx) {
            Poll::Ready(output) => Ok(output),
            Poll::Pending => match Pin::new(&mut this.delay).poll(cx) {
                Poll::Ready(()) => Err(TimeoutError),
                Poll::Pending => return Poll::Pending,
            },
        };
        future.set(None);
        Poll::Ready(result)
    }
}

//! Waits for a time, and time limits for futures.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use punctual_core::{Armed, Duration, Instant, IntoDuration, Port};

use super::timers::{self, AnyTimers};

/// Waits until `duration` after the first poll; see [`delay_until`].
///
/// For work at a steady rate use [`every`](super::every): delays add the duration of each round to
/// the period.
pub fn delay(duration: impl IntoDuration) -> Delay {
    Delay { due: Due::After(duration.into_duration()), timer: None }
}

/// Waits until `time` on the app's clock; ready at once if it has passed.
///
/// Real-time safety: does not allocate or block. The first poll takes one of the level's timer
/// slots and enters the kernel only from a thread other than the level's, to make that thread wake
/// earlier.
///
/// # Panics
/// Panics if polled outside an async task of a [`punctual::app`](macro@crate::app), or if the async
/// tasks of the level wait for more times at once than the sum of their `waits`.
pub fn delay_until(time: Instant) -> Delay {
    Delay { due: Due::At(time), timer: None }
}

/// A future that waits for a time: from [`delay`] or [`delay_until`].
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct Delay {
    due: Due,
    timer: Option<Timer>,
}

#[derive(Debug, Clone, Copy)]
enum Due {
    After(Duration),
    At(Instant),
}

/// An occupied slot, and the waker it wakes.
struct Timer {
    timers: &'static dyn AnyTimers,
    armed: Armed,
    waker: Waker,
}

impl Delay {
    /// Returns whether it ends at `time`.
    pub(super) fn ends_at(&self, time: Instant) -> bool {
        matches!(self.due, Due::At(due) if due == time)
    }
}

impl core::fmt::Debug for Timer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Timer").field("armed", &self.armed).finish_non_exhaustive()
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.timers.cancel(self.armed);
    }
}

impl Future for Delay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let timers = timers::current().expect("delays are for the async tasks of an app");
        let now = timers.partition().core.port().now();
        let time = match self.due {
            Due::At(time) => time,
            Due::After(duration) => {
                let time = Instant::from_ticks(now.as_ticks().saturating_add(duration.as_ticks()));
                self.due = Due::At(time);
                time
            }
        };
        if time <= now {
            self.timer = None;
            return Poll::Ready(());
        }
        // A future may be moved to another task between polls, and to another run, whose clock may
        // have restarted: then its timer is over although it is not time.
        let wakes = |timer: &Timer| timer.armed.is_waiting() && timer.waker.will_wake(cx.waker());
        if !self.timer.as_ref().is_some_and(wakes) {
            self.timer = None;
            let armed = timers.arm(cx.waker(), time);
            self.timer = armed.map(|armed| Timer { timers, armed, waker: cx.waker().clone() });
        }
        Poll::Pending
    }
}

/// The time limit was reached before the future completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeoutError;

impl core::fmt::Display for TimeoutError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the time was up before the future completed")
    }
}

impl core::error::Error for TimeoutError {}

/// Waits for `future` until `time` at most; then the future is dropped.
///
/// A future that completes in the same poll in which its time limit is reached has completed.
/// Real-time safety and panics are those of [`delay_until`].
///
/// # Errors
/// Returns [`TimeoutError`] if the time limit was reached first.
pub fn timeout_at<F: Future>(time: Instant, future: F) -> Timeout<F> {
    Timeout { future: Some(future), delay: delay_until(time) }
}

/// Waits for `future` for at most `duration` after the first poll; see [`timeout_at`].
///
/// # Errors
/// Returns [`TimeoutError`] if the time limit was reached first.
pub fn timeout_after<F: Future>(duration: impl IntoDuration, future: F) -> Timeout<F> {
    Timeout { future: Some(future), delay: delay(duration) }
}

/// A future with a time limit: from [`timeout_at`] or [`timeout_after`].
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct Timeout<F> {
    /// `None` once it has completed or been dropped.
    future: Option<F>,
    delay: Delay,
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, TimeoutError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `future` is pinned with the whole; it is not moved out, only dropped in place.
        // `delay` is `Unpin`.
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

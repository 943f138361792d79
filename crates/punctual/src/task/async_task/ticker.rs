//! Ticks on the grid of the periodic tasks, for async tasks.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use punctual_core::{Duration, Instant, IntoDuration, Port};

use super::delay::{Delay, delay_until};
use super::timers;

/// Interval at which a ticker checks whether the grids have started. Jobs of polling partitions may
/// run a little before that.
const UNTIL_LAID: Duration = Duration::from_micros(100);

/// Ticks every `period`, on the grid on which periodic tasks are released: the ticks are whole
/// periods after the start of the app. So a ticker does not drift, however long each round takes,
/// and it ticks together with periodic tasks of the same period and other tickers.
///
/// ```no_run
/// # use punctual::prelude::*;
/// # async fn work() {
/// let mut ticker = punctual::every(10.millis());
/// loop {
///     let tick = ticker.next().await;
///     // …
/// }
/// # }
/// ```
///
/// # Panics
/// If `period` is zero.
pub fn every(period: impl IntoDuration) -> Ticker {
    let period = period.into_duration();
    assert!(period.as_ticks() > 0, "the period of a ticker is not zero");
    Ticker { period, next: None, missed: 0 }
}

/// A clock that ticks periodically: from [`every`].
#[derive(Debug)]
pub struct Ticker {
    period: Duration,
    /// The next tick; `None` before the first wait.
    next: Option<Instant>,
    missed: u64,
}

impl Ticker {
    /// Waits for the next tick and returns its nominal time. The first wait is for the first tick
    /// after it begins.
    ///
    /// A tick that has passed since the last wait is returned at once. If several have, only the
    /// last one is, and [`missed`](Self::missed) counts the others. Dropping the future before it
    /// completes, as a `select` does, loses no tick.
    ///
    /// Real-time safety and panics are those of [`delay_until`]; each wait takes one of the `waits`
    /// of the task.
    #[expect(clippy::should_implement_trait, reason = "the name that tickers elsewhere have")]
    pub fn next(&mut self) -> Tick<'_> {
        Tick { ticker: self, delay: None }
    }

    /// Returns the number of ticks that passed between two waits, without those that
    /// [`next`](Self::next) returned late.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Returns the first tick after `now` on the grid from `origin`.
    fn first(&self, origin: Instant, now: Instant) -> Instant {
        let passed = now.as_ticks().saturating_sub(origin.as_ticks());
        let periods = passed / self.period.as_ticks() + 1;
        let since = periods.saturating_mul(self.period.as_ticks());
        Instant::from_ticks(origin.as_ticks().saturating_add(since))
    }

    /// Advances past `next`, which is not after `now`. Returns the last tick that has passed.
    fn pass(&mut self, next: Instant, now: Instant) -> Instant {
        let skipped = (now.as_ticks() - next.as_ticks()) / self.period.as_ticks();
        self.missed += skipped;
        let tick = next.as_ticks() + skipped * self.period.as_ticks();
        self.next = Some(Instant::from_ticks(tick.saturating_add(self.period.as_ticks())));
        Instant::from_ticks(tick)
    }
}

/// Awaiting a ticker, which has no end.
#[diagnostic::on_unimplemented(
    message = "a ticker is not a future: it ticks again and again",
    label = "write `.next().await` to wait for the next tick"
)]
pub trait AwaitsTicker {}

// Never satisfied: the error of `ticker.await` names the alternative.
#[doc(hidden)]
impl Future for Ticker
where
    for<'a> &'a (): AwaitsTicker,
{
    type Output = Instant;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Instant> {
        Poll::Pending
    }
}

/// A future that waits for a tick: from [`Ticker::next`].
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct Tick<'a> {
    ticker: &'a mut Ticker,
    delay: Option<Delay>,
}

impl Future for Tick<'_> {
    type Output = Instant;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        let timers = timers::current().expect("tickers are for the async tasks of an app");
        let partition = timers.partition();
        loop {
            let now = partition.core.port().now();
            let Self { ticker, delay } = &mut *self;
            if ticker.next.is_none() {
                ticker.next = partition.runtime.grid().map(|origin| ticker.first(origin, now));
            }
            let until = match ticker.next {
                Some(next) if next <= now => {
                    *delay = None;
                    return Poll::Ready(ticker.pass(next, now));
                }
                Some(next) => next,
                None => now + UNTIL_LAID,
            };
            let delay = match delay {
                Some(delay) if delay.ends_at(until) => delay,
                _ => delay.insert(delay_until(until)),
            };
            ready!(Pin::new(delay).poll(cx));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(ticks: u64) -> Instant {
        Instant::from_ticks(ticks)
    }

    #[test]
    fn first_tick_is_next_grid_point() {
        let ticker = every(Duration::from_ticks(10));
        let first = |origin, now| ticker.first(at(origin), at(now)).as_ticks();
        assert_eq!([first(3, 3), first(3, 12), first(3, 13), first(3, 99)], [13, 13, 23, 103]);
        assert_eq!(first(50, 3), 60, "the grid has yet to begin");
        assert_eq!(first(0, u64::MAX - 3), u64::MAX, "the clock ends before");
    }

    #[test]
    fn skips_and_counts_missed_ticks() {
        let mut ticker = every(Duration::from_ticks(10));
        let mut pass = |next, now| ticker.pass(at(next), at(now)).as_ticks();
        assert_eq!([pass(20, 20), pass(30, 39), pass(40, 50), pass(60, 95)], [20, 30, 50, 90]);
        assert_eq!((ticker.missed(), ticker.next), (1 + 3, Some(at(100))));
    }

    #[test]
    #[should_panic(expected = "not zero")]
    fn rejects_period_of_zero() {
        let _ = every(Duration::from_ticks(0));
    }
}

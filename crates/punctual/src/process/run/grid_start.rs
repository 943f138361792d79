//! Start of the periodic grids: shortly after all threads are ready, so that no first release is
//! late because of the start-up.
//!
//! A thread that manages the timers of a level is woken to notify it of its grid; it then sets its
//! timer and sleeps. A grid that began at the instant of the wake would release its first jobs
//! before that, late by the duration of all these wakes. So it begins after a *lead*, which is
//! measured rather than guessed: once all threads exist, and before `init`, each of these is woken
//! in the same way, and the time until all sleep again is measured. The lead is twice as long,
//! because caches are colder after `init`, but at least [`LEAST`] and at most [`MOST`]. Polling
//! threads need not be woken. They begin their loop first, and the origin is chosen when the last
//! of them has begun.
//!
//! Jobs that `init` has spawned do not wait for the grids: they are released when the app starts.

use std::thread::yield_now;

use punctual_core::{Duration, Instant};

/// The minimum lead: twice the timer slack of an ordinary thread, by which a worker without
/// real-time priority is late anyway.
const LEAST: Duration = Duration::from_micros(100);
/// The maximum. A thread that takes half as long was displaced, and may be displaced at any time.
const MOST: Duration = Duration::from_millis(10);
/// Time limit for polling threads. They have to make system calls first, on a CPU that others may
/// use.
const POLLING_LIMIT: Duration = Duration::from_millis(100);

/// Returns the lead of the grids, measured from `wake` of the timer threads until all are `asleep`.
pub(super) fn lead(now: &dyn Fn() -> Instant, wake: impl FnOnce(), asleep: impl Fn() -> bool) -> Duration {
    let begun = now();
    wake();
    wait_until(now, begun + MOST / 2, asleep);
    ((now() - begun) * 2).clamp(LEAST, MOST)
}

/// Waits, with a limit, until all polling threads are `ready`, and calls `lay` with a function that
/// chooses the origin.
pub(super) fn begin(
    now: &dyn Fn() -> Instant,
    ready: impl Fn() -> bool,
    lead: Duration,
    lay: impl FnOnce(&dyn Fn() -> Instant),
) {
    wait_until(now, now() + POLLING_LIMIT, ready);
    lay(&|| now() + lead);
}

fn wait_until(now: &dyn Fn() -> Instant, limit: Instant, reached: impl Fn() -> bool) {
    while !reached() && now() < limit {
        yield_now();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock that moves by 10 µs with each reading.
    struct Clock(Cell<u64>);

    impl Clock {
        const STEP: u64 = 10_000;

        fn new() -> Self {
            Self(Cell::new(0))
        }

        fn now(&self) -> Instant {
            self.0.set(self.0.get() + Self::STEP);
            Instant::from_ticks(self.0.get())
        }
    }

    /// Returns the lead if all sleep after this time.
    fn lead_if_asleep_after(after: Duration) -> Duration {
        let clock = Clock::new();
        let woken = Cell::new(None);
        let wake = || woken.set(Some(clock.now()));
        let asleep = || clock.now() >= woken.get().expect("all are woken before they are looked at") + after;
        lead(&|| clock.now(), wake, asleep)
    }

    #[test]
    fn early_wake_up_is_twice_wake_latency() {
        let took = Duration::from_micros(300);
        let lead = lead_if_asleep_after(took);
        assert!(lead >= took * 2 && lead < took * 3, "{lead:?}");
    }

    #[test]
    fn early_wake_up_is_bounded() {
        assert_eq!(lead_if_asleep_after(Duration::from_micros(0)), LEAST);
        assert_eq!(lead_if_asleep_after(Duration::from_hours(1)), MOST, "and the wait has an end");
    }

    #[test]
    fn origin_is_chosen_after_last_thread_is_ready() {
        let (clock, lead) = (Clock::new(), Duration::from_micros(500));
        let (left, ready_at, origin) = (Cell::new(3), Cell::new(None), Cell::new(None));
        let ready = || {
            // One more with each check.
            left.set(left.get() - 1);
            ready_at.set((left.get() == 0).then(|| clock.now()));
            ready_at.get().is_some()
        };
        let lay = |choose: &dyn Fn() -> Instant| {
            // Earlier steps, such as a change of priority, do not shorten the lead.
            let begun = clock.now();
            origin.set(Some(choose()));
            assert!(origin.get() >= Some(begun + lead));
        };
        begin(&|| clock.now(), ready, lead, lay);
        let ready_at = ready_at.get().expect("the last one is waited for");
        assert!(origin.get().expect("the grids are laid") > ready_at + lead);
    }

    #[test]
    fn busy_thread_does_not_stop_others_from_polling() {
        let (clock, laid) = (Clock::new(), Cell::new(false));
        begin(&|| clock.now(), || false, LEAST, |_| laid.set(true));
        assert!(laid.get());
    }
}

//! Where the grids of periodic tasks begin: a little after everybody is ready, so that no first release is late by start-up.
//!
//! A thread that keeps the time of a level learns of its grid by being woken; it then sets its timer and sleeps. A grid that
//! began at the instant of the wake would release its first jobs before that, as late as all these wakes take. So it begins
//! after a *lead*, and that is measured rather than guessed: once all threads are there, and before `init`, each of these is woken
//! as it will be then, and the time is taken until all sleep again. The lead is twice as long, since caches are colder after
//! `init`, but at least [`LEAST`] and at most [`MOST`]. Threads that poll need not be woken. They begin their loop first, and
//! the origin is chosen when the last of them is there.
//!
//! Jobs that `init` has spawned do not wait for the grids: they are released when the app starts.

use std::thread::yield_now;

use punctual_core::{Duration, Instant};

/// The least lead: twice the slack of an ordinary thread's timer, by which a worker without real-time priority is late anyway.
const LEAST: Duration = Duration::from_micros(100);
/// The greatest. Who takes half as long has been displaced, and may be so any time.
const MOST: Duration = Duration::from_millis(10);
/// How long threads that poll are waited for. They have system calls to make before, on a CPU that others may use.
const POLLING_LIMIT: Duration = Duration::from_millis(100);

/// How long before the grids begin they are laid: by what it takes to `wake` those who keep the time until all are `asleep`.
pub(super) fn lead(now: &dyn Fn() -> Instant, wake: impl FnOnce(), asleep: impl Fn() -> bool) -> Duration {
    let begun = now();
    wake();
    wait_until(now, begun + MOST / 2, asleep);
    ((now() - begun) * 2).clamp(LEAST, MOST)
}

/// Waits until all who poll are `ready`, but not for ever, and has `lay` choose the origin by the function that it is given.
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

    /// The lead if all sleep `after` so long.
    fn lead_if_asleep_after(after: Duration) -> Duration {
        let clock = Clock::new();
        let woken = Cell::new(None);
        let wake = || woken.set(Some(clock.now()));
        let asleep = || clock.now() >= woken.get().expect("all are woken before they are looked at") + after;
        lead(&|| clock.now(), wake, asleep)
    }

    #[test]
    fn the_lead_is_twice_what_waking_takes() {
        let took = Duration::from_micros(300);
        let lead = lead_if_asleep_after(took);
        assert!(lead >= took * 2 && lead < took * 3, "{lead:?}");
    }

    #[test]
    fn the_lead_has_bounds() {
        assert_eq!(lead_if_asleep_after(Duration::from_micros(0)), LEAST);
        assert_eq!(lead_if_asleep_after(Duration::from_hours(1)), MOST, "and the wait has an end");
    }

    #[test]
    fn the_origin_is_chosen_after_the_last_is_ready() {
        let (clock, lead) = (Clock::new(), Duration::from_micros(500));
        let (left, ready_at, origin) = (Cell::new(3), Cell::new(None), Cell::new(None));
        let ready = || {
            // One more with each look.
            left.set(left.get() - 1);
            ready_at.set((left.get() == 0).then(|| clock.now()));
            ready_at.get().is_some()
        };
        let lay = |choose: &dyn Fn() -> Instant| {
            // What comes before, such as a change of priority, is not at the expense of the lead.
            let begun = clock.now();
            origin.set(Some(choose()));
            assert!(origin.get() >= Some(begun + lead));
        };
        begin(&|| clock.now(), ready, lead, lay);
        let ready_at = ready_at.get().expect("the last one is waited for");
        assert!(origin.get().expect("the grids are laid") > ready_at + lead);
    }

    #[test]
    fn a_thread_that_never_polls_does_not_keep_the_others_from_it() {
        let (clock, laid) = (Clock::new(), Cell::new(false));
        begin(&|| clock.now(), || false, LEAST, |_| laid.set(true));
        assert!(laid.get());
    }
}

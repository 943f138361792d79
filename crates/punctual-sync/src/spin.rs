//! Time limits for spinning.

use crate::{Duration, Instant, now};

/// The number of checks of the condition between two readings of the clock.
const CHECKS_PER_CLOCK_READ: u32 = 32;

/// Returns a closure that returns `true` while less than `limit` has passed since its first reading
/// of the clock. It is called before each check.
pub(crate) fn within(limit: Duration) -> impl FnMut() -> bool {
    within_by(now, limit)
}

fn within_by(mut clock: impl FnMut() -> Instant, limit: Duration) -> impl FnMut() -> bool {
    let (mut polls, mut end) = (0_u32, None);
    move || {
        if limit.is_zero() {
            return false;
        }
        polls = polls.wrapping_add(1);
        if polls % CHECKS_PER_CLOCK_READ != 0 {
            return true;
        }
        let now = clock().as_ticks();
        now < *end.get_or_insert(now.saturating_add(limit.as_ticks()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn spins_until_the_deadline() {
        let limit = Duration::from_micros(200);
        let begin = now();
        let mut go_on = within(limit);
        while go_on() {}
        assert!(now() - begin >= limit);
    }

    #[test]
    fn reads_clock_every_32nd_check_and_stops_at_limit() {
        let mut time = 100;
        let mut go_on = within_by(
            || {
                time += 10;
                Instant::from_ticks(time)
            },
            Duration::from_ticks(20),
        );
        let mut polls = 0;
        while go_on() {
            polls += 1;
        }
        assert_eq!(polls, 3 * CHECKS_PER_CLOCK_READ - 1, "three readings of the clock");
    }

    #[test]
    fn does_not_begin_without_time() {
        assert!(!within(Duration::from_ticks(0))());
    }

    #[test]
    fn spins_without_limit_if_the_deadline_overflows() {
        let mut go_on = within(Duration::from_ticks(u64::MAX));
        assert!((0..10 * CHECKS_PER_CLOCK_READ).all(|_| go_on()));
    }
}

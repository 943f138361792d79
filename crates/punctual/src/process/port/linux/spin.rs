//! Spinning before a worker sleeps.
//!
//! A wake during the spin costs a cache-line transfer instead of a system call, an interrupt on the
//! other CPU and a context switch. The benefit is determined adaptively: after several unsuccessful
//! spins, only one wait in sixteen begins with one, until a spin succeeds.

use std::cell::Cell;

use punctual_core::Instant;

use super::counter;

/// Number of consecutive unsuccessful spins after which most waits skip the spin.
const IN_VAIN: u32 = 8;
/// One wait in this many then tries again.
const TRY_EACH: u32 = 16;

thread_local! {
    static HABIT: Habit = const { Habit::new() };
}

/// Spin statistics of a thread.
#[derive(Debug)]
struct Habit {
    in_vain: Cell<u32>,
    waits: Cell<u32>,
}

impl Habit {
    const fn new() -> Self {
        Self { in_vain: Cell::new(0), waits: Cell::new(0) }
    }

    /// Returns whether the next wait should begin with a spin.
    fn is_worthwhile(&self) -> bool {
        self.waits.set(self.waits.get().wrapping_add(1));
        self.in_vain.get() < IN_VAIN || self.waits.get().is_multiple_of(TRY_EACH)
    }

    fn ended(&self, in_vain: bool) {
        self.in_vain.set(if in_vain { self.in_vain.get().saturating_add(1) } else { 0 });
    }
}

/// Spins until `is_over`, for at most `limit_ns` and until `until`, if recent spins of this thread
/// have been successful.
///
/// Real-time safety: bounded; enters the kernel only if the clock does.
pub(crate) fn spin(limit_ns: u32, until: Option<Instant>, is_over: impl Fn() -> bool) {
    let worthwhile = HABIT.with(Habit::is_worthwhile);
    if !worthwhile {
        return;
    }
    let limit = counter::now().as_ticks().saturating_add(limit_ns.into());
    let until = until.map_or(u64::MAX, |until| until.as_ticks());
    let in_vain = loop {
        if is_over() {
            break false;
        }
        let now = counter::now().as_ticks();
        if now >= until {
            // A due release is not a failure: the thread is awake for it.
            break false;
        }
        if now >= limit {
            break true;
        }
        std::hint::spin_loop();
    };
    HABIT.with(|habit| habit.ended(in_vain));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandons_failed_attempt_and_retries() {
        let habit = Habit::new();
        let spins = |waits: u32| (0..waits).filter(|_| habit.is_worthwhile()).count() as u32;
        assert_eq!(spins(IN_VAIN), IN_VAIN);
        (0..IN_VAIN).for_each(|_| habit.ended(true));
        assert_eq!(spins(10 * TRY_EACH), 10);
        habit.ended(false);
        assert_eq!(spins(5), 5);
    }

    #[test]
    fn ends_at_earliest_event() {
        let seen = Cell::new(0);
        let count = || seen.replace(seen.get() + 1) == 3;
        // The limit is seconds, and the release an hour away: the condition ends the spin.
        let after = |ns: u64| Instant::from_ticks(counter::now().as_ticks() + ns);
        spin(u32::MAX, Some(after(3_600_000_000_000)), count);
        assert_eq!(seen.get(), 4);
        // An immediate release, and a limit of zero.
        spin(u32::MAX, Some(counter::now()), || false);
        spin(0, None, || false);
    }
}

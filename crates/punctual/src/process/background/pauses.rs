//! The sleeps of a thread that polls for work, because to wake it would be a system call.

use std::thread::park_timeout;
use std::time::Duration;

/// Longest sleep: fewer than 100 system calls per second without work.
const LONGEST: Duration = Duration::from_millis(15);
/// A sleep is this part of the time without work, which bounds the delay of work in the same way.
const PART: u32 = 4;

/// Sleeps that grow with the time since the last work.
#[derive(Debug)]
pub(crate) struct Pauses {
    shortest: Duration,
    /// Sum of the sleeps since the last work. A reading of the clock can be a system call.
    quiet: Duration,
}

impl Pauses {
    /// Starts with sleeps of this length.
    pub(crate) const fn new(shortest: Duration) -> Self {
        Self { shortest, quiet: Duration::ZERO }
    }

    /// Makes the next sleep a short one: there was work.
    pub(crate) fn reset(&mut self) {
        self.quiet = Duration::ZERO;
    }

    /// Sleeps, or returns early if the thread is unparked.
    pub(crate) fn sleep(&mut self) {
        park_timeout(self.next());
    }

    fn next(&mut self) -> Duration {
        let pause = (self.quiet / PART).clamp(self.shortest, LONGEST);
        self.quiet = self.quiet.saturating_add(pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORTEST: Duration = Duration::from_micros(30);

    #[test]
    fn makes_fewer_than_100_calls_per_second_without_work() {
        let mut pauses = Pauses::new(SHORTEST);
        let mut slept = Duration::ZERO;
        let mut calls = 0;
        while slept < Duration::from_secs(1) {
            slept += pauses.next();
            calls += 1;
        }
        // The first second includes the growth of the sleeps.
        assert!(calls < 100, "{calls}");
        assert_eq!([pauses.next(), pauses.next()], [LONGEST; 2]);
    }

    #[test]
    fn delays_work_by_a_quarter_of_the_time_since_the_last() {
        let mut pauses = Pauses::new(SHORTEST);
        let mut quiet = Duration::ZERO;
        for _ in 0..1_000 {
            let pause = pauses.next();
            assert!(pause <= SHORTEST.max(quiet / 4) && pause <= LONGEST, "{pause:?} after {quiet:?}");
            quiet += pause;
        }
        pauses.reset();
        assert_eq!(pauses.next(), SHORTEST);
    }
}

//! Restart policies, and pauses that grow with consecutive failures.

use std::time::Duration;

/// The condition for restarting a program that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// Never.
    #[default]
    Never,
    /// If it has failed: by a signal, or with a nonzero exit code.
    OnFailure,
    /// After any end, except if it was asked to stop.
    Always,
}

/// The delays between an end and the next start: exponential backoff by a factor of 2.
#[derive(Debug, Clone)]
pub struct BackOff {
    restart: Restart,
    first: Duration,
    longest: Duration,
    attempts: u32,
    failed: u32,
}

impl BackOff {
    /// Restarts under this condition after a pause of `first`, then twice as long, at most
    /// `longest` and `attempts` times in a row.
    #[must_use]
    pub const fn new(restart: Restart, first: Duration, longest: Duration, attempts: u32) -> Self {
        Self { restart, first, longest, attempts, failed: 0 }
    }

    /// Returns the delay before the next start of a program that ran for `ran`; `None` if it is not
    /// restarted.
    pub fn pause(&mut self, success: bool, ran: Duration) -> Option<Duration> {
        match (self.restart, success) {
            (Restart::Never, _) | (Restart::OnFailure, true) => return None,
            (Restart::OnFailure, false) | (Restart::Always, _) => {}
        }
        // A program that ran for longer than the longest delay has recovered.
        if ran > self.longest {
            self.failed = 0;
        }
        if self.failed >= self.attempts {
            return None;
        }
        let pause = self.first.saturating_mul(1 << self.failed.min(20)).min(self.longest);
        self.failed += 1;
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pauses(restart: Restart, ends: &[(bool, u64)]) -> Vec<Option<u64>> {
        let mut back_off = BackOff::new(restart, SECOND, 5 * SECOND, 4);
        let pause = |&(success, ran)| back_off.pause(success, Duration::from_secs(ran));
        ends.iter().map(pause).map(|pause| pause.map(|pause| pause.as_secs())).collect()
    }

    #[test]
    fn restart_pauses_double_up_to_limit() {
        let expected = [Some(1), Some(2), Some(4), Some(5), None];
        assert_eq!(pauses(Restart::OnFailure, &[(false, 0); 5]), expected);
    }

    #[test]
    fn long_run_resets_restart_pause() {
        let ends = [(false, 0), (false, 0), (false, 6), (false, 5)];
        assert_eq!(pauses(Restart::OnFailure, &ends), [Some(1), Some(2), Some(1), Some(2)]);
    }

    #[test]
    fn success_is_repeated_only_always() {
        assert_eq!(pauses(Restart::OnFailure, &[(true, 0)]), [None]);
        assert_eq!(pauses(Restart::Always, &[(true, 0)]), [Some(1)]);
        assert_eq!(pauses(Restart::Never, &[(false, 0)]), [None]);
    }
}

//! A count by which a program shows another one that it runs.
//!
//! A task of the lowest level calls [`Heartbeat::beat`], so that a job that never ends stops the
//! count. A task of the other program asks a [`HeartbeatMonitor`], and brings its program to the
//! safe state once the heartbeat is silent. To detect a stall within `D`, beat every `D / 4`, ask
//! every `D / 4`, and set the limit to `D / 2`: up to a quarter passes between the last beat and
//! the look that sees it, and up to another quarter until the look that finds it too old.
//!
//! ```
//! use punctual_sync::Instant;
//! use punctual_sync::shared::{Heartbeat, HeartbeatMonitor};
//!
//! static HEARTBEAT: Heartbeat = Heartbeat::new();
//!
//! let at_ms = |ms: u64| Instant::from_ticks(ms * 1_000_000);
//! let mut monitor = HeartbeatMonitor::new(punctual_sync::Duration::from_millis(500));
//! HEARTBEAT.beat();
//! assert!(!monitor.is_silent(&HEARTBEAT, at_ms(1_000)));
//! assert!(!monitor.is_silent(&HEARTBEAT, at_ms(1_499)));
//! assert!(monitor.is_silent(&HEARTBEAT, at_ms(1_500)));
//! ```

use crate::atomic::{AtomicU32, Ordering, const_new};
use crate::{Duration, Instant};

/// Number of beats of its owner. Zeroed memory is a heartbeat that has not begun.
#[derive(Debug)]
#[repr(C)]
pub struct Heartbeat(AtomicU32);

impl Heartbeat {
    const_new! {
        /// A heartbeat that has not begun.
        pub fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// Shows that the owner runs.
    ///
    /// Real-time safety: one atomic instruction.
    pub fn beat(&self) {
        // 0 stands for an owner that has not begun.
        if self.0.fetch_add(1, Ordering::Relaxed) == u32::MAX {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: `repr(C)` and an atomic; zero is a valid value.
#[cfg(not(loom))]
unsafe impl super::Shareable for Heartbeat {
    const KIND: u32 = 8;
    type Element = ();
    type Init = ();

    unsafe fn write(_: *mut Self, (): ()) {}
}

/// Watches the heartbeat of another program.
#[derive(Debug, Clone)]
pub struct HeartbeatMonitor {
    limit: Duration,
    seen: u32,
    since: Option<Instant>,
}

impl HeartbeatMonitor {
    /// Time that a program has until its first beat.
    pub const START_TIMEOUT: Duration = Duration::from_secs(10);

    /// A monitor of a heartbeat that has to change within `limit`, and to begin within
    /// [`START_TIMEOUT`](Self::START_TIMEOUT), or within `limit` if that is longer.
    pub const fn new(limit: Duration) -> Self {
        Self { limit, seen: 0, since: None }
    }

    /// Returns whether the heartbeat has not changed for the limit.
    ///
    /// Real-time safety: a load and some comparisons.
    pub fn is_silent(&mut self, heartbeat: &Heartbeat, now: Instant) -> bool {
        let count = heartbeat.0.load(Ordering::Relaxed);
        let since = *self.since.get_or_insert(now);
        if count != self.seen {
            (self.seen, self.since) = (count, Some(now));
            return false;
        }
        let limit = if count == 0 { self.limit.max(Self::START_TIMEOUT) } else { self.limit };
        now.checked_duration_since(since).is_some_and(|silent| silent >= limit)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_ticks(ms * 1_000_000)
    }

    #[test]
    fn is_silent_at_limit_after_last_change() {
        let (heartbeat, mut monitor) = (Heartbeat::new(), HeartbeatMonitor::new(Duration::from_millis(50)));
        heartbeat.beat();
        assert!(!monitor.is_silent(&heartbeat, at(100)));
        assert!(!monitor.is_silent(&heartbeat, at(149)));
        heartbeat.beat();
        assert!(!monitor.is_silent(&heartbeat, at(160)));
        assert!(!monitor.is_silent(&heartbeat, at(209)));
        assert!(monitor.is_silent(&heartbeat, at(210)));
        heartbeat.beat();
        assert!(!monitor.is_silent(&heartbeat, at(211)), "the program runs again");
    }

    #[test]
    fn waits_longer_for_first_beat() {
        let (heartbeat, mut monitor) = (Heartbeat::new(), HeartbeatMonitor::new(Duration::from_millis(50)));
        assert!(!monitor.is_silent(&heartbeat, at(100)));
        assert!(!monitor.is_silent(&heartbeat, at(10_099)));
        assert!(monitor.is_silent(&heartbeat, at(10_100)));
        let mut patient = HeartbeatMonitor::new(Duration::from_secs(60));
        assert!(!patient.is_silent(&heartbeat, at(0)));
        assert!(!patient.is_silent(&heartbeat, at(59_999)) && patient.is_silent(&heartbeat, at(60_000)));
    }

    #[test]
    fn never_returns_to_initial_state() {
        let heartbeat = Heartbeat(AtomicU32::new(u32::MAX));
        heartbeat.beat();
        assert_eq!(heartbeat.0.load(Ordering::Relaxed), 1);
    }
}

//! The measurements of a task in a run, and pointers to the data of its observers.
//!
//! [`Cells`] are part of a task's static. A job leaves its times there; observers find the data of
//! the task that they have placed there before the run.

pub(crate) mod measured;

use punctual_core::Instant;

pub(crate) use crate::platform::cells::*;
use crate::port::Suspensions;

/// The times of one job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) release: Instant,
    pub(crate) start: Instant,
    /// Start to end, in ns.
    pub(crate) gross: u64,
    /// Execution time of jobs that preempted this one, in ns.
    pub(crate) preempted: u64,
    pub(crate) suspensions: Suspensions,
}

impl Job {
    /// Returns the release jitter J, in ns.
    #[inline]
    pub(crate) fn jitter(&self) -> u64 {
        since(self.start, self.release)
    }

    /// Returns the response time R, in ns.
    #[inline]
    pub(crate) fn response(&self) -> u64 {
        self.jitter().saturating_add(self.gross)
    }

    /// Returns the execution time C, in ns.
    #[inline]
    pub(crate) fn execution(&self) -> u64 {
        let off_cpu = self.preempted.saturating_add(self.suspensions.time);
        self.gross.saturating_sub(off_cpu)
    }
}

/// Returns the time between two instants, in ns.
#[inline]
pub(crate) fn since(later: Instant, earlier: Instant) -> u64 {
    later.as_ticks().saturating_sub(earlier.as_ticks())
}

/// Observers of jobs and spawns in addition to their measurement: marks, profile, guard and
/// supervisor. A platform without them uses the default methods.
pub(crate) trait Observe {
    /// Returns whether jobs of the task are observed.
    #[inline(always)]
    fn is_on(&self) -> bool {
        false
    }

    /// Called before a spawn of the task; returns the time for [`spawned`](Self::spawned).
    #[inline(always)]
    fn before_spawn(&self) -> Option<u64> {
        None
    }

    /// Called after a spawn.
    #[inline(always)]
    fn spawned(&self, _when: Option<u64>) {}

    /// Called after a timed spawn.
    #[inline(always)]
    fn spawned_in_time(&self) {}
}

//! Reservation of a SCHED_DEADLINE thread.

/// Runtime that a SCHED_DEADLINE thread gets in each period, and its relative deadline, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// Runtime after which it is throttled until its next period.
    pub runtime: u64,
    /// Deadline of a job, relative to its release.
    pub deadline: u64,
    /// Period.
    pub period: u64,
}

//! What a thread under SCHED_DEADLINE has reserved.

/// The runtime that a SCHED_DEADLINE thread is given in each period, and by when, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// It may run for so long, and is throttled then until its next period.
    pub runtime: u64,
    /// Within so long of its release a job has to end.
    pub deadline: u64,
    /// How often.
    pub period: u64,
}

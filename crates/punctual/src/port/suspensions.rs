//! Suspensions of a job.

/// The suspensions of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Suspensions {
    /// Number of voluntary switches.
    pub(crate) count: u64,
    /// Time off the CPU, in ns; 0 without a suspension.
    pub(crate) time: u64,
}

impl Suspensions {
    pub(crate) const NONE: Self = Self { count: 0, time: 0 };
}

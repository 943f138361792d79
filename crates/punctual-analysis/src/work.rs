//! Limit on the work of a whole analysis.
//!
//! Each bound has a separate limit, but an analysis computes a bound for every task, in every
//! round, and for every value that a margin tries. The work is counted, so that the result does not
//! depend on the speed of the machine. The count is per thread, because every function of this
//! crate does work, down to the loops over sources.

use std::cell::Cell;

/// Limit for all results of a task set: minutes of CPU time. The margins of 200 random tasks of a
/// partition take a tenth of it.
pub const MAX_WORK: u64 = 10_000_000_000;

thread_local! {
    /// Remaining work of the analysis on this thread. A unit is the visit of a source of
    /// interference.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// The analysis exceeds its limit on work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuchWork {
    /// The limit, in visits of a source of interference.
    pub limit: u64,
}

impl std::fmt::Display for TooMuchWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cannot finish the analysis in {} steps: busy windows have too many jobs, or tasks spawn each other on too \
             many paths; shorten jitters and deadlines of many periods, lower the utilization, spawn each task from \
             fewer tasks, or analyze partitions separately",
            self.limit
        )
    }
}

impl std::error::Error for TooMuchWork {}

/// Runs an analysis with a limit on its work. [`MAX_WORK`] suffices for ordinary task sets.
///
/// ```
/// use punctual_analysis::{analyze, schema, work};
///
/// let system = schema::read("arm.toml", r#"
///     schema = "punctual-taskset/1"
///     [[task]]
///     name = "sample"
///     level = 1
///     period = "1ms"
///     execution = "200us"
/// "#)?;
/// let analysis = work::limited(work::MAX_WORK, || analyze(&system)).unwrap();
/// assert!(analysis.is_schedulable(&system));
/// assert!(work::limited(0, || analyze(&system)).is_err());
/// # Ok::<(), schema::InputError>(())
/// ```
///
/// # Errors
/// [`TooMuchWork`] at the limit. Its result would be incomplete.
pub fn limited<T>(limit: u64, analysis: impl FnOnce() -> T) -> Result<T, TooMuchWork> {
    let before = LEFT.replace(limit);
    let result = analysis();
    let is_exceeded = is_exceeded();
    LEFT.set(before.saturating_sub(limit - LEFT.get()));
    if is_exceeded { Err(TooMuchWork { limit }) } else { Ok(result) }
}

/// Counts work. The caller stops soon if the limit [is exceeded](is_exceeded).
pub(crate) fn count(work: usize) {
    LEFT.set(LEFT.get().saturating_sub(work as u64));
}

/// Returns the remaining work.
pub(crate) fn left() -> u64 {
    LEFT.get()
}

/// Returns whether the result no longer matters, because the limit is exceeded.
pub(crate) fn is_exceeded() -> bool {
    LEFT.get() == 0
}

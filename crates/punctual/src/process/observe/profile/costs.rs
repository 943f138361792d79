//! Overhead of the executor and the kernel, as written to a profile. Only tasks can measure it.

/// Overhead of the executor and the kernel, in ns; `None` if not applicable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    /// A timed release: finding the due timer, queueing its job and marking its level as ready.
    pub(crate) release: Option<u64>,
    /// A job without the user's function: occupying its level, measuring it, vacating the level.
    pub(crate) dispatch: Option<u64>,
    /// Raising the level to a ceiling and lowering it again.
    pub(crate) lock: Option<u64>,
    /// The kernel's timer, and its switches to a thread of a higher priority and back.
    pub(crate) preemption: Option<u64>,
    /// Overhead of profiling per job, and the part of it before the job's end, which its response
    /// includes.
    pub(crate) profiling: Option<u64>,
    pub(crate) profiling_before: Option<u64>,
    /// Overhead of measuring a critical section.
    pub(crate) profiling_lock: Option<u64>,
}

impl Costs {
    /// Returns the costs in virtual time, where only declared execution takes time.
    pub(super) fn of_virtual_time() -> Self {
        let none = Some(0);
        Self {
            release: none,
            dispatch: none,
            lock: none,
            preemption: none,
            profiling: none,
            profiling_before: none,
            profiling_lock: none,
        }
    }
}

//! Without the feature `guard`, jobs are not watched.

use crate::app::runtime::Runtime;
use crate::app::stop::StopReason;
use crate::config::Guard;
use crate::report::TaskReport;

/// Findings about a task; empty.
#[derive(Debug)]
pub(crate) struct GuardSlot;

impl GuardSlot {
    pub(crate) const fn empty() -> Self {
        Self
    }
}

/// The guard of one run, which is off.
#[derive(Debug)]
pub(crate) struct Guarded;

impl Guarded {
    pub(crate) fn begin(_: &'static Runtime, _: Guard) -> Self {
        Self
    }

    /// Returns the notes for the report.
    pub(crate) fn notes(&self) -> &[String] {
        &[]
    }

    /// # Safety
    /// No requirements.
    pub(crate) unsafe fn tell(&self, _: &mut [TaskReport]) -> Vec<String> {
        Vec::new()
    }
}

/// A thread that runs watched jobs; never exists here.
#[derive(Debug)]
pub(crate) struct WatchedThread;

impl WatchedThread {
    pub(crate) fn begin(_: &'static Runtime) -> Option<Self> {
        None
    }
}

/// Runs a job.
#[inline]
pub(crate) fn job<R>(
    _: &GuardSlot,
    _: &'static Runtime,
    _: &'static StopReason,
    run: impl FnOnce() -> R,
) -> R {
    run()
}

/// Runs the user's function of a job.
#[inline]
pub(crate) fn users_code<R>(f: impl FnOnce() -> R) -> R {
    f()
}

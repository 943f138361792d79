//! The measurements of every job: release jitter J, response time R, execution time C.
//!
//! Enabled unless the app or the features of this crate disable them, in bounded memory that is
//! allocated before the app starts. They cost at most two readings of the processor's counter per
//! job (of the clock, if the kernel's clock does not use that counter): one at its end, and one at
//! its start if it runs as a call or at its spawn if it is queued. A queued job starts when the
//! previous job on its thread ends, and that time has been read; only a thread that was asleep
//! reads the clock once more when it wakes. In addition a job costs some 40 instructions, or 100 if
//! its start was late or it was preempted or suspended: otherwise J is 0 and R is C, and a single
//! quantity and histogram count the job.
//!
//! * J = start - release. The release of a periodic or timed job is its nominal time, so J includes
//!   the lateness of the kernel's timer; that of a spawned job is the spawn.
//! * R = end - release.
//! * C = end - start, less the time that jobs of higher levels ran in between and, for a job that
//!   suspended itself, the time for which it was off its CPU. C includes time that the kernel took
//!   from other jobs, for itself or for other threads; separating it requires a profile or a trace.

use super::body::{Body, Declared};
use super::spawn_error::FullTask;
use crate::cells::Cells;
use crate::report::TaskReport;
use crate::state::runtime::TaskInfo;
use crate::stop::StopReason;

/// A task without its types: its declaration, its measurements and its observers.
#[derive(Debug)]
pub(crate) struct Monitor {
    pub(crate) declared: Declared,
    pub(crate) cells: Cells,
}

impl Monitor {
    /// Creates the monitor of the task `B`; see [`Declared::of`].
    pub(crate) const fn new<B: Body>(full: &'static FullTask) -> Self {
        let cells = Cells::empty(const { &StopReason::Guard(B::NAME) });
        Self { declared: Declared::of::<B>(full), cells }
    }

    /// Describes the task to the rest of the app.
    pub(crate) fn info(&'static self) -> TaskInfo {
        let Declared { name, level, partition, is_measured, .. } = self.declared;
        TaskInfo { name, level, partition: partition(), is_measured, cells: &self.cells }
    }

    /// Begins a run.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn begin(&self) {
        if let Some(interval) = (self.declared.interval)() {
            interval.reset();
        }
        if self.declared.is_measured {
            // SAFETY: by this function's contract.
            unsafe { self.cells.begin() };
        }
    }

    /// Returns the measurements so far.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(crate) unsafe fn report(&self) -> TaskReport {
        let Declared { name, level, partition, .. } = self.declared;
        let partition = partition().public_name();
        let mut report = TaskReport { name, level, partition, ..TaskReport::default() };
        // SAFETY: by this function's contract.
        unsafe { self.cells.fill(&mut report) };
        if let Some(interval) = (self.declared.interval)() {
            interval.fill(&mut report);
        }
        report
    }
}

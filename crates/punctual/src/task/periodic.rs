//! Periodic tasks: jobs released by the clock, without arguments and without slots.

use punctual_core::{
    Arguments, CurrentWorker, Duration, Instant, Level, PackedStamp, Periodic, Popped, Port, Stamp,
};

#[cfg(feature = "std")]
use crate::external_clock::Discipline;
use crate::report::TaskReport;
use crate::state::runtime::{Counters, Registered, TaskInfo};
use crate::state::{Host, Platform};
use crate::stop::StopReason;
use crate::task::body::{Body, Release};
use crate::task::job::{execute_flagged, execute_plain, is_instrumented};
use crate::task::monitor::Monitor;
use crate::task::spawn_error::FullTask;

/// A task with a period.
pub struct PeriodicTask<B: Body<Args = ()>> {
    monitor: Monitor,
    level: &'static Level,
    periodic: &'static Periodic,
    period: Duration,
    #[cfg(feature = "std")]
    discipline: Option<&'static Discipline>,
    body: core::marker::PhantomData<fn(B)>,
}

impl<B: Body<Args = ()>> PeriodicTask<B> {
    /// Creates a task released by `periodic`, which `level` contains.
    pub const fn new(level: &'static Level, periodic: &'static Periodic, period: Duration) -> Self {
        assert!(level.number() == B::LEVEL, "a task is in the level of its priority");
        // The clock releases it, so no spawn finds it full.
        let monitor = Monitor::new::<B>(const { &FullTask::new(B::NAME, None) });
        Self {
            monitor,
            level,
            periodic,
            period,
            #[cfg(feature = "std")]
            discipline: None,
            body: core::marker::PhantomData,
        }
    }

    /// Sets the external clock that the grid follows.
    #[cfg(feature = "std")]
    #[must_use]
    pub const fn follows(mut self, discipline: &'static Discipline) -> Self {
        self.discipline = Some(discipline);
        self
    }

    /// Returns the end of a job, which is now unless it is known.
    #[inline(always)]
    pub fn end_of_job(&self, end: Stamp) -> Instant {
        end.unwrap_or_else(|| B::partition().core.port().stamp())
    }

    /// Runs `job`.
    ///
    /// # Safety
    /// `job` was popped from the level's queue by the calling thread, which occupies the level, and
    /// is one of this task's.
    #[inline]
    pub unsafe fn run(&'static self, me: CurrentWorker, job: Popped, now: PackedStamp) -> PackedStamp {
        let release = Release::At(self.level.released(job));
        let args = Arguments::none();
        // SAFETY: this thread occupies the task's level and has popped this job, by this function's
        // contract.
        let end = unsafe {
            if Host::CHECKS_QUEUED_JOBS && is_instrumented::<B>() {
                execute_flagged(&self.monitor, me, args, release, now.into())
            } else {
                execute_plain::<B>(&self.monitor, me, args, release, now, false)
            }
        };
        // SAFETY: this thread occupies the task's level, by this function's contract.
        unsafe { self.monitor.cells.show_overruns(|| self.periodic.overruns()) };
        end.into()
    }
}

impl<B: Body<Args = ()>> Registered for PeriodicTask<B> {
    unsafe fn begin(&self) {
        // SAFETY: no job of the task can run, by this function's contract.
        unsafe { self.monitor.begin() };
        #[cfg(feature = "std")]
        self.discipline.iter().for_each(|discipline| discipline.begin());
    }

    unsafe fn end(&self) -> u32 {
        0
    }

    unsafe fn report(&self) -> Option<TaskReport> {
        // SAFETY: no job of the task can run, by this function's contract.
        let mut report = unsafe { self.monitor.report() };
        report.period = Some(self.period);
        report.deadline = B::DEADLINE;
        report.overruns = self.periodic.overruns();
        #[cfg(feature = "std")]
        {
            report.clock = self.discipline.map(Discipline::report);
        }
        Some(report)
    }

    fn info(&'static self) -> Option<TaskInfo> {
        Some(self.monitor.info())
    }

    fn counters(&self) -> Counters {
        Counters { overruns: self.periodic.overruns(), ..Counters::default() }
    }
}

/// The overrun hook of `on_overrun = stop`.
#[cold]
pub fn stop_on_overrun<B: Body>() {
    B::runtime().stop(const { &StopReason::Overrun(B::NAME) });
}

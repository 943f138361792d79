//! The state of an app.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::{Instant, Level, MAX_LEVEL, Port};

use super::bound::Source;
use super::monitor::Monitor;
use super::partition::PartitionState;
use super::stop::{FirstStopReason, StopReason};
use crate::model::Model;
use crate::report::{Rows, TaskReport, Tasks};
use crate::start_error::StartError;

/// Thread options of the app, which a bare board does not use.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Kernel priority of the lowest level.
    pub priority_base: Option<u8>,
    /// Stack size of each thread in bytes.
    pub stack: Option<usize>,
    /// Assumed time of the kernel to wake a thread.
    pub wake_latency: Option<punctual_core::Duration>,
    /// If true, refuses to run without real-time settings, which are never missing here.
    pub strict: bool,
    /// If true, marks jobs in the kernel's trace.
    pub trace: bool,
    /// If true, locks and spawns are measured while the app is profiled.
    pub profile: bool,
    /// Condition for printing a report: `never`, `always`, or by default a problem.
    pub report: Option<&'static str>,
}

/// Waits for descriptors: none on boards.
#[derive(Debug)]
pub enum Reactor {}

/// The locks of the global executor: none on boards.
#[derive(Debug)]
pub enum Ceilings {}

/// A task from the view of its app's run.
pub trait Registered: Sync {
    /// Prepares the task for a run.
    ///
    /// # Safety
    /// No job of the task can run.
    unsafe fn begin(&self);

    /// Drops jobs that were never run and returns their number with the measurements.
    ///
    /// # Safety
    /// No job of the task can run and none can be spawned.
    unsafe fn end(&self) -> (Option<TaskReport>, u32);

    /// Drops the task's data of the local level `level`, if that is its level.
    ///
    /// # Safety
    /// No job of the level can run from now on.
    unsafe fn retire(&self, level: &'static Level) {
        let _ = level;
    }

    /// Returns the measurements after the run has ended.
    ///
    /// # Safety
    /// As for [`end`](Self::end).
    unsafe fn report(&self) -> Option<TaskReport> {
        // SAFETY: no job of the task can run and none can be spawned, by this function's contract.
        unsafe { self.end() }.0
    }

    /// Describes the task, if it has jobs.
    fn info(&'static self) -> Option<TaskInfo>;

    /// Returns the interrupt of the task, if it is bound to one.
    fn source(&'static self) -> Option<&'static dyn Source> {
        None
    }
}

/// Description of a task.
#[derive(Debug)]
#[expect(dead_code, reason = "asked for where there is a kernel's trace")]
pub struct TaskInfo {
    pub(crate) name: &'static str,
    pub(crate) level: u8,
    pub(crate) partition: &'static PartitionState,
    pub(crate) measured: bool,
    pub(crate) monitor: &'static Monitor,
}

/// The state of one app. A static of the generated code; one run at a time.
pub struct Runtime {
    pub(crate) name: &'static str,
    pub(crate) options: Options,
    /// Each on the core with its index.
    pub(crate) partitions: &'static [&'static PartitionState],
    /// The first, which contains `idle`.
    pub(crate) home: &'static PartitionState,
    pub(crate) tasks: &'static [&'static dyn Registered],
    runs: AtomicBool,
    /// True once no further job can run.
    ending: AtomicBool,
    /// Number of jobs released and never run.
    dropped: AtomicU64,
    started: AtomicU64,
    stop_reason: FirstStopReason,
    rows: Rows,
}

impl core::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Runtime").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The right to access a run from outside.
pub(crate) struct Pass;

impl Runtime {
    /// Creates the state of an app that is not running.
    pub const fn new(
        model: &'static Model,
        options: Options,
        partitions: &'static [&'static PartitionState],
        home: &'static PartitionState,
        tasks: &'static [&'static dyn Registered],
        _: Option<&'static Reactor>,
        _: Option<&'static Ceilings>,
    ) -> Self {
        Self {
            name: model.app,
            options,
            partitions,
            home,
            tasks,
            runs: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            started: AtomicU64::new(0),
            stop_reason: FirstStopReason::none(),
            rows: Rows::new(),
        }
    }

    /// Claims the app for a run.
    pub(crate) fn take(&'static self) -> Result<(), StartError> {
        if super::current::partition().is_some() || self.runs.swap(true, Ordering::Acquire) {
            return Err(StartError::AlreadyRunning(self.name));
        }
        // SAFETY: the last run, if there was one, has ended with all of its jobs.
        unsafe {
            self.partitions.iter().for_each(|partition| partition.reset());
            self.tasks.iter().for_each(|task| task.begin());
        }
        self.ending.store(false, Ordering::Relaxed);
        self.dropped.store(0, Ordering::Relaxed);
        self.started.store(0, Ordering::Relaxed);
        self.stop_reason.reset();
        Ok(())
    }

    /// Releases the app after a run.
    pub(crate) fn give_back(&self) {
        self.runs.store(false, Ordering::Release);
    }

    /// Records the start of the app, which is the origin of the periodic grids.
    pub(crate) fn set_started(&self, start: Instant) {
        self.started.store(start.as_ticks(), Ordering::Relaxed);
    }

    /// Returns the origin of the periodic grids.
    #[cfg_attr(not(feature = "async"), allow(dead_code, reason = "there are no tickers"))]
    pub(crate) fn grid(&self) -> Option<Instant> {
        Some(Instant::from_ticks(self.started()))
    }

    /// Returns the start of the app, in ns; 0 before.
    #[inline]
    pub(crate) fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    pub(crate) fn elapsed(&self) -> u64 {
        self.home.core.port().now().as_ticks().saturating_sub(self.started())
    }

    /// Returns whether the app is stopping: no more jobs are released, and those released are
    /// finished.
    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.home.core.is_stopping()
    }

    /// Returns the partitions other than the first.
    pub(crate) fn others(&self) -> impl Iterator<Item = &'static PartitionState> + use<> {
        let home = self.home;
        self.partitions.iter().copied().filter(move |partition| !core::ptr::eq(*partition, home))
    }

    /// Returns whether jobs are dropped instead of run because one has panicked; here the program
    /// has ended then.
    #[cfg(feature = "async")]
    pub(crate) const fn aborts(&self) -> bool {
        false
    }

    /// Records that no further job can run.
    pub(crate) fn set_ending(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Returns whether no further job can run in this run.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Begins to stop. Reports the first reason.
    pub(crate) fn stop(&self, reason: &'static StopReason) {
        self.stop_reason.record(reason);
        self.partitions.iter().for_each(|partition| partition.core.stop());
    }

    pub(crate) fn stop_reason(&self) -> &FirstStopReason {
        &self.stop_reason
    }

    /// Returns the number of jobs that were spawned while the app was stopping.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Counts a dropped job.
    pub(crate) fn drop_job(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets timed jobs be armed and cancelled while there is a run.
    pub(crate) fn pass_gate(&self) -> Option<Pass> {
        self.runs.load(Ordering::Relaxed).then_some(Pass)
    }

    /// Returns the measurements of every task, highest level first.
    ///
    /// # Safety
    /// No job can run and none can be spawned.
    pub(crate) unsafe fn reports(&'static self) -> Tasks {
        let tasks = (1..=MAX_LEVEL).rev().flat_map(|level| {
            let of_level =
                self.tasks.iter().filter(move |task| task.info().is_some_and(|info| info.level == level));
            // SAFETY: by this function's contract.
            of_level.filter_map(|task| unsafe { task.report() })
        });
        self.rows.fill(self.tasks.len(), tasks)
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = &'static dyn Source> {
        self.tasks.iter().filter_map(|task| task.source())
    }
}

//! The state of an app.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::{Instant, Level, Port};

use super::bound::Source;
use super::halves::{self, Shown};
use super::model::Model;
use super::partition::PartitionState;
use super::report::TaskReport;
use super::start_error::StartError;
use super::stop::{FirstStopReason, StopReason};

/// What the app declares of its threads, of which a bare board has no use.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The kernel's priority of the lowest level.
    pub priority_base: Option<u8>,
    /// The stack of each thread in bytes.
    pub stack: Option<usize>,
    /// How long the kernel may take to wake a thread.
    pub wake_latency: Option<punctual_core::Duration>,
    /// Whether to refuse to run without real-time settings, which cannot be missing here.
    pub strict: bool,
    /// Whether to mark jobs in the kernel's trace.
    pub trace: bool,
    /// Whether locks and spawns are measured while the app is profiled.
    pub profile: bool,
    /// When to print a report: `never`, `always`, or otherwise if something went wrong.
    pub report: Option<&'static str>,
}

/// What waits for descriptors, of which there are none here.
#[derive(Debug)]
pub enum Reactor {}

/// The locks of the global executor, which there is none of here.
#[derive(Debug)]
pub enum Ceilings {}

/// A task as the run of its app sees it.
pub trait Registered: Sync {
    /// Makes the task ready for a run.
    ///
    /// # Safety
    /// No job of the task can run.
    unsafe fn begin(&self);

    /// Drops jobs that were never run and returns their number with the measurements.
    ///
    /// # Safety
    /// No job of the task can run and none can be spawned.
    unsafe fn end(&self) -> (Option<TaskReport>, u32);

    /// Drops what the task has of the local level `level`, if that is its level.
    ///
    /// # Safety
    /// No job of the level can run any more.
    unsafe fn retire(&self, level: &'static Level) {
        let _ = level;
    }

    /// The measurements alone, when the run has ended.
    ///
    /// # Safety
    /// As for [`end`](Self::end).
    unsafe fn report(&self) -> Option<TaskReport> {
        // SAFETY: no job of the task can run and none can be spawned, by this function's contract.
        unsafe { self.end() }.0
    }

    /// The task, if it has jobs.
    fn info(&'static self) -> Option<TaskInfo>;

    /// The interrupt of the task, if it is bound to one.
    fn source(&'static self) -> Option<&'static dyn Source> {
        None
    }
}

/// What a task is.
#[derive(Debug)]
#[expect(dead_code, reason = "asked for where there is a kernel's trace")]
pub struct TaskInfo {
    pub(crate) name: &'static str,
    pub(crate) level: u8,
    pub(crate) partition: &'static PartitionState,
    pub(crate) measured: bool,
    pub(crate) shown: Option<&'static Shown>,
}

/// The state of one app. A static of the generated code; one run at a time.
pub struct Runtime {
    pub(crate) name: &'static str,
    pub(crate) options: Options,
    /// Each on the core of its place here.
    pub(crate) partitions: &'static [&'static PartitionState],
    /// The first, which is that of `idle`.
    pub(crate) home: &'static PartitionState,
    pub(crate) tasks: &'static [&'static dyn Registered],
    runs: AtomicBool,
    /// Whether no job can run any more.
    ending: AtomicBool,
    /// The number of jobs released and never run.
    dropped: AtomicU64,
    started: AtomicU64,
    stop_reason: FirstStopReason,
}

impl core::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Runtime").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The right to reach into a run from outside of it.
pub(crate) struct Pass;

impl Runtime {
    /// The state of an app that is not running.
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

    /// Gives the app back after a run.
    pub(crate) fn give_back(&self) {
        self.runs.store(false, Ordering::Release);
    }

    /// Records when the app started, which is the origin of the periodic grids.
    pub(crate) fn set_started(&self, start: Instant) {
        self.started.store(start.as_ticks(), Ordering::Relaxed);
    }

    /// Where the grids of periodic tasks begin.
    #[cfg_attr(not(feature = "async"), allow(dead_code, reason = "there are no tickers"))]
    pub(crate) fn grid(&self) -> Option<Instant> {
        Some(Instant::from_ticks(self.started()))
    }

    /// When the app started, in ns; 0 before.
    #[inline]
    pub(crate) fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    pub(crate) fn elapsed(&self) -> u64 {
        self.home.core.port().now().as_ticks().saturating_sub(self.started())
    }

    /// Whether the app is stopping: no more jobs are released, and those released are finished.
    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.home.core.is_stopping()
    }

    /// The partitions besides the first.
    pub(crate) fn others(&self) -> impl Iterator<Item = &'static PartitionState> + use<> {
        let home = self.home;
        self.partitions.iter().copied().filter(move |partition| !core::ptr::eq(*partition, home))
    }

    /// Whether jobs are dropped instead of run, because one has panicked: then the program has ended.
    #[cfg(feature = "async")]
    pub(crate) const fn aborts(&self) -> bool {
        false
    }

    /// Notes that no job can run any more.
    pub(crate) fn set_ending(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Whether no job can run any more in this run.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Begins to stop. Reports the first reason.
    pub(crate) fn stop(&self, reason: &'static StopReason) {
        self.stop_reason.record(reason);
        halves::stops();
        self.partitions.iter().for_each(|partition| partition.core.stop());
    }

    pub(crate) fn stop_reason(&self) -> &FirstStopReason {
        &self.stop_reason
    }

    /// How many jobs were spawned when the app was stopping.
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

    pub(crate) fn sources(&self) -> impl Iterator<Item = &'static dyn Source> {
        self.tasks.iter().filter_map(|task| task.source())
    }
}

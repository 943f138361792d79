//! The static state of an app.

use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use punctual_core::{Duration, Instant, Level, Port};

use super::{Ceilings, HostApp, Reactor, Source};
use crate::cells::Cells;
use crate::model::Model;
use crate::report::TaskReport;
use crate::state::partition::PartitionState;
use crate::stop::FirstStopReason;

/// The settings in the `#[app]` attribute.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The kernel priority of level 0, if one is given.
    pub priority_base: Option<u8>,
    /// The stack of each thread in bytes, if it is given.
    pub stack: Option<usize>,
    /// The bound on the wake-up latency of CPUs, if any.
    pub wake_latency: Option<Duration>,
    /// If true, refuses to run without all real-time settings.
    pub strict: bool,
    /// If true, jobs are marked in the kernel's trace.
    pub trace: bool,
    /// If true, locks and spawns are measured while the app is profiled.
    pub profile: bool,
    /// Destination of the report, spelled as in `PUNCTUAL_REPORT`.
    pub report: Option<&'static str>,
}

/// Description of a task, with its measurements.
pub struct TaskInfo {
    pub(crate) name: &'static str,
    pub(crate) level: u8,
    #[cfg_attr(not(feature = "std"), allow(dead_code, reason = "the level suffices to list tasks"))]
    pub(crate) partition: &'static PartitionState,
    #[cfg_attr(not(feature = "std"), allow(dead_code, reason = "a board detects no suspensions"))]
    pub(crate) is_measured: bool,
    pub(crate) cells: &'static Cells,
}

/// Counts of a task that are not its jobs' measurements. They may be read while the app runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub(crate) overruns: u64,
    pub(crate) early: u64,
    pub(crate) idle_releases: u64,
}

/// A task from the view of starting, stopping and reporting.
pub trait Registered: Sync {
    /// Prepares the task, and memory for its measurements, for a run.
    ///
    /// # Safety
    /// No job of the task can run.
    unsafe fn begin(&self);

    /// Drops jobs that were never run and returns their number. A panic in doing so is a fault of
    /// the app, and does not prevent further drops.
    ///
    /// # Safety
    /// No job of the task can run and none can be spawned.
    unsafe fn end(&self) -> u32;

    /// Returns the measurements so far, if the task has jobs.
    ///
    /// # Safety
    /// No job of the task can run.
    unsafe fn report(&self) -> Option<TaskReport>;

    /// Drops the task's values on the thread that runs the local level `level`, if that is its
    /// level.
    ///
    /// # Safety
    /// The calling thread is the only one that runs jobs of `level` in this run, if it is local,
    /// and runs none now.
    unsafe fn retire(&self, level: &'static Level) {
        let _ = level;
    }

    /// Describes the task, if it has jobs.
    fn info(&'static self) -> Option<TaskInfo>;

    /// Returns the counts other than jobs.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// Returns the task's event source, if it is bound to one.
    fn source(&'static self) -> Option<&'static dyn Source> {
        None
    }
}

/// The state of one app. A static of the generated code; one run at a time.
pub struct Runtime {
    pub(crate) name: &'static str,
    pub(crate) options: Options,
    /// On a board, each on the core with its index.
    pub(crate) partitions: &'static [&'static PartitionState],
    /// The partition of `idle`; on a board the first.
    pub(crate) home: &'static PartitionState,
    pub(crate) tasks: &'static [&'static dyn Registered],
    /// The number of jobs released and never run.
    dropped: AtomicU64,
    started: AtomicU64,
    pub(crate) stop_reason: FirstStopReason,
    /// The part that the platform adds.
    pub(crate) host: HostApp,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Runtime {
    /// Creates the state of an app that is not running.
    pub const fn new(
        model: &'static Model,
        options: Options,
        partitions: &'static [&'static PartitionState],
        home: &'static PartitionState,
        tasks: &'static [&'static dyn Registered],
        reactor: Option<&'static Reactor>,
        ceilings: Option<&'static Ceilings>,
    ) -> Self {
        Self {
            name: model.app,
            options,
            partitions,
            home,
            tasks,
            dropped: AtomicU64::new(0),
            started: AtomicU64::new(0),
            stop_reason: FirstStopReason::none(),
            host: HostApp::new(model, reactor, ceilings),
        }
    }

    /// Clears the state of the previous run.
    ///
    /// # Safety
    /// No thread takes part in the app or spawns into it, and every job has been dropped.
    pub(crate) unsafe fn reset(&'static self, virtual_time: bool) {
        // SAFETY: by this function's contract.
        unsafe {
            self.partitions.iter().for_each(|partition| partition.reset(virtual_time));
            self.tasks.iter().for_each(|task| task.begin());
        }
        self.dropped.store(0, Ordering::Relaxed);
        self.started.store(0, Ordering::Relaxed);
        self.stop_reason.reset();
    }

    /// Returns every partition except that of `idle`.
    pub(crate) fn away(&self) -> impl Iterator<Item = &'static PartitionState> + use<> {
        let home = self.home;
        self.partitions.iter().copied().filter(move |partition| !ptr::eq(*partition, home))
    }

    /// Records the start of the app: the release of jobs that `init` has spawned. The periodic
    /// grids begin then, or in a process a little later.
    pub(crate) fn set_started(&self, start: Instant) {
        self.started.store(start.as_ticks(), Ordering::Relaxed);
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

    /// Returns the number of jobs that were not run in their turn, or were spawned while the app
    /// was stopping.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Counts a dropped job.
    pub(crate) fn drop_job(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = &'static dyn Source> {
        self.tasks.iter().filter_map(|task| task.source())
    }
}

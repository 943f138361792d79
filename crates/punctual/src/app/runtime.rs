//! The static state of an app.

mod claim;

use std::os::fd::{BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use punctual_core::{Duration, Instant, Level, Port};
use punctual_sync::PcpGroup;
use punctual_sync::futex::selector::unwatched;

use crate::app::event_source::Source;
use crate::app::figures::FiguresCell;
use crate::app::guard::GuardSlot;
use crate::app::heartbeat::BeatSlot;
use crate::app::partition::PartitionState;
use crate::app::profile::ProfileSlot;
use crate::app::reactor::Reactor;
use crate::app::spawn_gate::{GatePass, SpawnGate};
use crate::app::stage::Stage;
use crate::app::stop::Fault;
use crate::app::stop::{FirstStopReason, StopReason};
use crate::model::Model;
use crate::port::linux::futex;
use crate::port::linux::trace_marker::Mark;
use crate::port::virtual_time::{Claims, Turns};
use crate::report::{Outcome, TaskReport};

use self::claim::Claim;
pub(crate) use self::claim::{RunGuard, each_running};

/// No grid of a periodic task has started.
const NOT_LAID: u64 = u64::MAX;

/// Set by a panic: queued jobs are dropped instead of run.
const ABORTS: u8 = 1;
/// Jobs write marks into the kernel's trace.
const MARKS: u8 = 2;
/// This is the copy of a running app in the child of a `fork`.
const COPY: u8 = 4;
/// Jobs are profiled.
const PROFILES: u8 = 8;
/// Jobs are reported to a supervisor in another process.
const SUPERVISED: u8 = 16;

/// Jobs are watched by the guard.
const GUARDED: u8 = 32;
/// The app is stopping.
const STOPS: u8 = 64;

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

impl Options {
    /// Options of an attribute without arguments: the default, for constants.
    pub(crate) const NONE: Self = Self {
        priority_base: None,
        stack: None,
        wake_latency: None,
        strict: false,
        trace: false,
        profile: false,
        report: None,
    };
}

/// Description of a task for marks, profiles and messages.
pub struct TaskInfo {
    pub(crate) name: &'static str,
    pub(crate) level: u8,
    pub(crate) partition: &'static PartitionState,
    pub(crate) mark: &'static Mark,
    pub(crate) profile: &'static ProfileSlot,
    pub(crate) beat: &'static BeatSlot,
    pub(crate) figures: &'static FiguresCell,
    #[cfg_attr(not(feature = "guard"), allow(dead_code, reason = "there is no guard"))]
    pub(crate) guard: &'static GuardSlot,
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
    /// Allocates memory for a run's measurements.
    ///
    /// # Safety
    /// No job of the task can run.
    unsafe fn begin(&self);

    /// Drops jobs that were never run and returns their number with the measurements, if any are
    /// taken. A panic in doing so is a fault of the app, and does not prevent further drops.
    ///
    /// # Safety
    /// No job of the task can run and none can be spawned.
    unsafe fn end(&self) -> (Option<TaskReport>, u32);

    /// Drops the task's values on the thread that runs the local level `level`, if that is its
    /// level.
    ///
    /// # Safety
    /// The calling thread is the only one that runs jobs of `level` in this run, if it is local,
    /// and runs none now.
    unsafe fn retire(&self, level: &'static Level) {
        let _ = level;
    }

    /// Describes the task for marks in the kernel's trace, if it has jobs.
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
    pub(crate) model: &'static Model,
    pub(crate) options: Options,
    pub(crate) partitions: &'static [&'static PartitionState],
    /// The partition of `idle`.
    pub(crate) home: &'static PartitionState,
    pub(crate) tasks: &'static [&'static dyn Registered],
    reactor: Option<&'static Reactor>,
    /// The group of all locks, under the global executor.
    pub(crate) ceilings: Option<&'static PcpGroup>,
    claim: Claim,
    gate: SpawnGate,
    /// [`ABORTS`], [`MARKS`], [`COPY`], [`PROFILES`], [`SUPERVISED`], [`GUARDED`] and [`STOPS`]: in
    /// one byte, so that a spawn or a job checks all of them at once.
    job_flags: AtomicU8,
    /// The number of jobs released and never run.
    dropped: AtomicU64,
    started: AtomicU64,
    /// The origin of the grids in ns, or [`NOT_LAID`].
    grid: AtomicU64,
    stop_reason: FirstStopReason,
    fault: Mutex<Option<Fault>>,
    /// True if a supervisor writes the deferred messages of the app's threads.
    watched: AtomicBool,
    /// True if a panic on a thread of the app goes to the panic hook of the program.
    keeps_panic_hook: AtomicBool,
    /// A [`Stage`].
    stage: AtomicU8,
    /// 0 while running, 1 once it is to stop; a futex.
    stop_requested: AtomicU32,
    /// The descriptor that wakes the supervisor, -1 if none exists.
    supervisor_fd: AtomicI32,
    first_mark: OnceLock<u16>,
    /// The profile of `idle`, which is not a task.
    pub(crate) idle_profile: ProfileSlot,
    pub(crate) process: Process,
    /// Turns of the partitions in virtual time.
    pub(crate) turns: Turns,
    /// The locks that partitions hold in virtual time.
    pub(crate) claims: Claims,
}

/// The process in which an app runs; see [`forked`](crate::app::forked).
pub(crate) struct Process {
    /// Number of forks between the first process and the one in which the app began to run.
    pub(crate) generation: AtomicU32,
    /// Whether it is in the list of all apps that have ever run, and the next entry.
    pub(crate) listed: AtomicBool,
    pub(crate) next: AtomicPtr<Runtime>,
}

impl Process {
    const fn new() -> Self {
        Self {
            generation: AtomicU32::new(0),
            listed: AtomicBool::new(false),
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
        ceilings: Option<&'static PcpGroup>,
    ) -> Self {
        Self {
            name: model.app,
            model,
            options,
            partitions,
            home,
            tasks,
            reactor,
            ceilings,
            claim: Claim::free(),
            gate: SpawnGate::closed(),
            job_flags: AtomicU8::new(0),
            dropped: AtomicU64::new(0),
            started: AtomicU64::new(0),
            grid: AtomicU64::new(NOT_LAID),
            stop_reason: FirstStopReason::none(),
            fault: Mutex::new(None),
            watched: AtomicBool::new(false),
            keeps_panic_hook: AtomicBool::new(false),
            stage: AtomicU8::new(Stage::Tasks as u8),
            stop_requested: AtomicU32::new(0),
            supervisor_fd: AtomicI32::new(-1),
            first_mark: OnceLock::new(),
            idle_profile: ProfileSlot::empty(),
            process: Process::new(),
            turns: Turns::new(),
            claims: Claims::new(),
        }
    }

    /// Returns the number of its first task in the trace, the same in every run; `numbers`
    /// allocates that many numbers.
    pub(crate) fn first_mark(&self, numbers: impl FnOnce(u16) -> u16) -> u16 {
        *self.first_mark.get_or_init(|| numbers(self.tasks.len().min(usize::from(u16::MAX)) as u16))
    }

    /// Returns every partition except that of `idle`.
    pub(crate) fn away(&self) -> impl Iterator<Item = &'static PartitionState> + use<> {
        self.partitions.iter().copied().filter(|partition| !partition.is_home())
    }

    /// Records the start of the app: the release of jobs that `init` has spawned. The periodic
    /// grids begin then, or a little later.
    pub(crate) fn set_started(&self, start: Instant) {
        self.started.store(start.as_ticks(), Ordering::Relaxed);
    }

    /// Returns the start of the app, in ns; 0 before.
    #[inline]
    pub(crate) fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// Records the origin of the periodic grids, before they start.
    pub(crate) fn set_grid(&self, origin: Instant) {
        self.grid.store(origin.as_ticks(), Ordering::Relaxed);
    }

    /// Returns the origin of the periodic grids; `None` before they have started.
    #[cfg_attr(not(feature = "async"), allow(dead_code, reason = "there are no tickers"))]
    pub(crate) fn grid(&self) -> Option<Instant> {
        let origin = self.grid.load(Ordering::Relaxed);
        (origin != NOT_LAID).then(|| Instant::from_ticks(origin))
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

    /// Begins to stop. Reports the first reason, unless there is a fault. Neither allocates nor takes a lock.
    pub(crate) fn stop(&self, reason: &'static StopReason) {
        // Before the stop: afterwards the run may end and read the reason.
        self.stop_reason.record(reason);
        self.begin_to_stop();
    }

    /// Begins to stop because of a fault: queued jobs are dropped. Neither allocates nor takes a
    /// lock.
    ///
    /// A job that starts as a result of a later action of the calling thread is dropped.
    pub(crate) fn abort(&self) {
        self.job_flags.fetch_or(ABORTS, Ordering::Relaxed);
        self.begin_to_stop();
    }

    fn begin_to_stop(&self) {
        self.job_flags.fetch_or(STOPS, Ordering::Relaxed);
        self.partitions.iter().for_each(|partition| partition.core.stop());
        self.stop_requested.store(1, Ordering::Release);
        futex::wake_all(&self.stop_requested);
        self.interrupt();
    }

    /// Records a fault, for which the app has been [aborted](Self::abort). It takes precedence over
    /// any other reason for the stop. The first fault counts: later ones may be its consequences.
    pub(crate) fn record(&self, fault: Fault) {
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let another = match *first {
            None => first.replace(fault),
            Some(_) => Some(fault),
        };
        // Dropping its payload runs user code, which must not unwind into the executor.
        drop(first);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(another))) {
            // Its destructor might panic, too.
            std::mem::forget(payload);
        }
    }

    /// Drops the fault's payload, which is a user type.
    pub(crate) fn forget_fault(&self) {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(fault);
    }

    /// Notifies the supervisor. For threads of the app.
    pub(crate) fn notify_supervisor(&self) {
        notify(self.supervisor_fd.load(Ordering::Acquire));
    }

    /// Records the next stage of the run's thread.
    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// Returns the stage of the run's thread.
    pub(crate) fn stage(&self) -> Stage {
        Stage::from_number(self.stage.load(Ordering::Relaxed))
    }

    /// Sets whether a panic on a thread of the app goes to the panic hook of the program, before
    /// there are threads.
    pub(crate) fn keep_panic_hook(&self, keeps: bool) {
        self.keeps_panic_hook.store(keeps, Ordering::Relaxed);
    }

    pub(crate) fn keeps_panic_hook(&self) -> bool {
        self.keeps_panic_hook.load(Ordering::Relaxed)
    }

    /// Returns whether a supervisor writes the deferred messages of the app's threads.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Ends a run before it has begun. Jobs spawned by foreign threads are dropped: there are no resources for them.
    pub(crate) fn give_up(&self) {
        self.job_flags.fetch_or(ABORTS, Ordering::Relaxed);
        self.partitions.iter().for_each(|partition| partition.core.stop());
    }

    /// Sets the descriptor to write to when the app begins to stop. It stays open until this is set to -1,
    /// after every thread of the app has ended.
    pub(crate) fn set_supervisor_fd(&self, supervisor_fd: RawFd) {
        self.supervisor_fd.store(supervisor_fd, Ordering::Release);
        self.watched.store(supervisor_fd >= 0, Ordering::Relaxed);
    }

    /// Returns whether `init` has ended.
    pub(crate) fn has_started(&self) -> bool {
        self.started() != 0
    }

    /// Sleeps until the app is to stop.
    pub(crate) fn wait_for_stop(&self) {
        while self.stop_requested.load(Ordering::Acquire) == 0 {
            futex::wait_while(&self.stop_requested, 0);
        }
    }

    /// Returns the reason for the stop.
    pub(crate) fn outcome(&self) -> Outcome {
        if let Some(fault) = &*self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            return Outcome::Panicked {
                task: fault.culprit.to_string().into(),
                message: fault.text().to_owned().into(),
            };
        }
        self.stop_reason.get().map_or(Outcome::Shutdown, Outcome::from)
    }

    /// Returns whether jobs have to be dropped, marked, watched or checked, or spawns be rejected.
    #[inline]
    pub(crate) fn needs_care(&self) -> bool {
        self.job_flags.load(Ordering::Relaxed) != 0
    }

    /// Stops the copy of a running app in the child of a `fork`. Async-signal-safe.
    pub(crate) fn stop_copy(&self) {
        if self.claim.is_taken() {
            self.job_flags.fetch_or(COPY, Ordering::Relaxed);
            self.partitions.iter().for_each(|partition| partition.core.stop());
        }
    }

    /// Sets whether there are tasks that mark their jobs, while none can run.
    pub(crate) fn set_marks(&self, marks: bool) {
        match marks {
            true => self.job_flags.fetch_or(MARKS, Ordering::Relaxed),
            false => self.job_flags.fetch_and(!MARKS, Ordering::Relaxed),
        };
    }

    /// Sets whether jobs are profiled, while none can run.
    pub(crate) fn set_profiles(&self, profiles: bool) {
        match profiles {
            true => self.job_flags.fetch_or(PROFILES, Ordering::Relaxed),
            false => self.job_flags.fetch_and(!PROFILES, Ordering::Relaxed),
        };
    }

    /// Sets whether jobs are reported to a supervisor, while none can run.
    pub(crate) fn set_supervised(&self, supervised: bool) {
        match supervised {
            true => self.job_flags.fetch_or(SUPERVISED, Ordering::Relaxed),
            false => self.job_flags.fetch_and(!SUPERVISED, Ordering::Relaxed),
        };
    }

    /// Sets whether the guard watches jobs, while none can run.
    #[cfg_attr(not(feature = "guard"), allow(dead_code, reason = "there is no guard"))]
    pub(crate) fn set_guarded(&self, guarded: bool) {
        match guarded {
            true => self.job_flags.fetch_or(GUARDED, Ordering::Relaxed),
            false => self.job_flags.fetch_and(!GUARDED, Ordering::Relaxed),
        };
    }

    /// Returns whether the guard watches jobs.
    #[cfg_attr(not(feature = "guard"), allow(dead_code, reason = "there is no guard"))]
    pub(crate) fn is_guarded(&self) -> bool {
        self.job_flags.load(Ordering::Relaxed) & GUARDED != 0
    }

    /// Returns whether jobs are profiled.
    pub(crate) fn profiles(&self) -> bool {
        self.job_flags.load(Ordering::Relaxed) & PROFILES != 0
    }

    /// Returns whether there was a fault.
    #[inline]
    pub(crate) fn aborts(&self) -> bool {
        self.job_flags.load(Ordering::Relaxed) & ABORTS != 0
    }

    /// Returns whether this is the copy of a running app in the child of a `fork`.
    pub(crate) fn is_copy(&self) -> bool {
        self.job_flags.load(Ordering::Relaxed) & COPY != 0
    }

    /// Returns whether there was a fault, so that the current queued job is dropped instead of run.
    #[inline]
    pub(crate) fn drops_jobs(&self) -> bool {
        let drops = self.aborts();
        if drops {
            self.drop_job();
        }
        drops
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

    /// Lets a foreign thread spawn: the run does not end while the pass exists.
    pub(crate) fn pass_gate(&self) -> Option<GatePass<'_>> {
        self.gate.enter()
    }

    /// Returns whether foreign threads may spawn. Exact for the thread that closes the gate.
    #[inline(always)]
    pub(crate) fn has_open_gate(&self) -> bool {
        self.gate.is_open()
    }

    /// Rejects spawns of foreign threads from now on, and waits for those in progress.
    pub(crate) fn close_gate(&self) {
        self.gate.close();
    }

    /// Returns the reactor of the async tasks, if there are any.
    #[inline]
    pub(crate) fn reactor(&self) -> Option<&'static Reactor> {
        self.reactor
    }

    /// Makes the supervisor, and the threads that wait for descriptors, check whether the app is
    /// stopping.
    pub(crate) fn interrupt(&self) {
        // If the gate is closed, those threads have ended and their descriptors are being closed.
        // Then the supervisor checks by itself.
        let Some(_pass) = self.gate.enter() else { return };
        self.notify_supervisor();
        self.sources().for_each(|source| source.interrupt());
        if let Some(reactor) = self.reactor {
            reactor.interrupt();
        }
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = &'static dyn Source> {
        self.tasks.iter().filter_map(|task| task.source())
    }
}

/// Notifies the thread that polls the eventfd or socket `fd`; does nothing if it is -1.
pub(crate) fn notify(fd: RawFd) {
    if fd >= 0 {
        // SAFETY: the code that published the descriptor keeps it open until every thread of the
        // app has ended.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        // If it is full, the thread has already been notified.
        let _ = unwatched(|| rustix::io::write(fd, &1_u64.to_ne_bytes()));
    }
}

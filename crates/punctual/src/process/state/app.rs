//! The part of an app's state that a process adds.

use std::fmt;
use std::os::fd::{BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use punctual_core::Instant;
use punctual_sync::futex::selector::unwatched;

use super::Ceilings;
use super::claim::Claim;
use super::fault::{Fault, FaultOrder};
use super::foreign_spawns::{ForeignSpawn, ForeignSpawns};
use super::reactor::Reactor;
use crate::cells::{Observe, Slot};
use crate::model::Model;
use crate::port::linux::{futex, word};
use crate::port::virtual_time::{Claims, Turns};
use crate::report::Outcome;
use crate::state::runtime::{Options, Runtime};
use crate::stop::StopReason;

/// No grid of a periodic task has started.
pub(super) const NOT_LAID: u64 = u64::MAX;

/// Set by a panic: queued jobs are dropped instead of run.
const ABORTS: u32 = 1;
/// Jobs write marks into the kernel's trace.
const MARKS: u32 = 2;
/// This is the copy of a running app in the child of a `fork`.
const COPY: u32 = 4;
/// Jobs are profiled.
const PROFILES: u32 = 8;
/// Jobs are reported to a supervisor in another process.
const SUPERVISED: u32 = 16;

/// Jobs are watched by the guard.
const GUARDED: u32 = 32;
/// The app is stopping.
const STOPS: u32 = 64;

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

/// The current activity of a run's thread, or the activity whose end it awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// `#[init]`.
    Init,
    /// Tasks, `idle`, and the end of their threads.
    Tasks,
    /// Dropping the arguments of jobs that have not run.
    Arguments,
    /// `#[shutdown]`.
    Hook,
    /// Dropping the resources.
    Resources,
}

impl Stage {
    /// Returns the stage with this number.
    pub(crate) fn from_number(number: u8) -> Self {
        let all = [Self::Init, Self::Arguments, Self::Hook, Self::Resources];
        all.into_iter().find(|stage| *stage as u8 == number).unwrap_or(Self::Tasks)
    }
}

/// Describes what does not end, if nothing else is left.
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Init => "`init`",
            Self::Tasks => {
                "a thread of the app, in a thread-local destructor or a call given to `background::submit`,"
            }
            Self::Arguments => "the destructor of an argument of a job that has not run",
            Self::Hook => "`shutdown`",
            Self::Resources => "the destructor of a resource",
        })
    }
}

/// The part of an app's state that a process adds.
pub(crate) struct HostApp {
    pub(crate) model: &'static Model,
    reactor: Option<&'static Reactor>,
    /// The group of all locks, under the global executor.
    pub(crate) ceilings: Option<&'static Ceilings>,
    pub(super) claim: Claim,
    pub(super) foreign_spawns: ForeignSpawns,
    /// [`ABORTS`], [`MARKS`], [`COPY`], [`PROFILES`], [`SUPERVISED`], [`GUARDED`] and [`STOPS`]: in
    /// one word, so that a spawn or a job checks all of them at once. If it is not 0, the cells of
    /// the partitions' words are flagged.
    pub(super) job_flags: AtomicU32,
    /// The origin of the grids in ns, or [`NOT_LAID`].
    pub(super) grid: AtomicU64,
    fault: Mutex<Option<Fault>>,
    /// True if a supervisor writes the deferred messages of the app's threads.
    watched: AtomicBool,
    /// True if a panic on a thread of the app goes to the panic hook of the program.
    keeps_panic_hook: AtomicBool,
    /// A [`Stage`].
    stage: AtomicU8,
    /// 0 while running, 1 once it is to stop; a futex.
    pub(super) stop_requested: AtomicU32,
    /// The descriptor that wakes the supervisor, -1 if none exists.
    supervisor_fd: AtomicI32,
    first_mark: OnceLock<u16>,
    /// The profile of `idle`, which is not a task.
    pub(crate) idle_profile: Slot,
    pub(crate) forks: Forks,
    /// Turns of the partitions in virtual time.
    pub(crate) turns: Turns,
    /// The locks that partitions hold in virtual time.
    pub(crate) claims: Claims,
}

impl HostApp {
    pub(crate) const fn new(
        model: &'static Model,
        reactor: Option<&'static Reactor>,
        ceilings: Option<&'static Ceilings>,
    ) -> Self {
        Self {
            model,
            reactor,
            ceilings,
            claim: Claim::free(),
            foreign_spawns: ForeignSpawns::closed(),
            job_flags: AtomicU32::new(0),
            grid: AtomicU64::new(NOT_LAID),
            fault: Mutex::new(None),
            watched: AtomicBool::new(false),
            keeps_panic_hook: AtomicBool::new(false),
            stage: AtomicU8::new(Stage::Tasks as u8),
            stop_requested: AtomicU32::new(0),
            supervisor_fd: AtomicI32::new(-1),
            first_mark: OnceLock::new(),
            idle_profile: Slot::empty(),
            forks: Forks::new(),
            turns: Turns::new(),
            claims: Claims::new(),
        }
    }
}

/// The process in which an app runs; see [`forked`](super::forked).
pub(crate) struct Forks {
    /// Number of forks between the first process and the one in which the app began to run.
    pub(crate) generation: AtomicU32,
    /// Whether it is in the list of all apps that have ever run, and the next entry.
    pub(crate) listed: AtomicBool,
    pub(crate) next: AtomicPtr<Runtime>,
}

impl Forks {
    const fn new() -> Self {
        Self {
            generation: AtomicU32::new(0),
            listed: AtomicBool::new(false),
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }
}

impl Runtime {
    /// Returns the number of its first task in the trace, the same in every run; `numbers`
    /// allocates that many numbers.
    pub(crate) fn first_mark(&self, numbers: impl FnOnce(u16) -> u16) -> u16 {
        *self.host.first_mark.get_or_init(|| numbers(self.tasks.len().min(usize::from(u16::MAX)) as u16))
    }

    /// Records the origin of the periodic grids, before they start.
    pub(crate) fn set_grid(&self, origin: Instant) {
        self.host.grid.store(origin.as_ticks(), Ordering::Relaxed);
    }

    /// Returns the origin of the periodic grids; `None` before they have started.
    #[cfg_attr(not(feature = "async"), allow(dead_code, reason = "there are no tickers"))]
    pub(crate) fn grid(&self) -> Option<Instant> {
        let origin = self.host.grid.load(Ordering::Relaxed);
        (origin != NOT_LAID).then(|| Instant::from_ticks(origin))
    }

    /// Begins to stop. Reports the first reason, unless there is a fault. Neither allocates nor
    /// takes a lock.
    pub(crate) fn stop(&self, reason: &'static StopReason) {
        // Before the stop: afterwards the run may end and read the reason.
        self.stop_reason.record(reason);
        self.start_stopping();
    }

    /// Begins to stop because of a fault: queued jobs are dropped. Neither allocates nor takes a
    /// lock. Returns the order of the fault.
    ///
    /// A job that starts as a result of a later action of the calling thread is dropped.
    pub(crate) fn abort(&self) -> FaultOrder {
        let before = self.set_job_flags(ABORTS);
        self.start_stopping();
        if before & ABORTS == 0 { FaultOrder::First } else { FaultOrder::Later }
    }

    fn start_stopping(&self) {
        self.set_job_flags(STOPS);
        self.partitions.iter().for_each(|partition| partition.core.stop());
        self.host.stop_requested.store(1, Ordering::Release);
        futex::wake_all(&self.host.stop_requested);
        self.interrupt();
    }

    /// Records a fault, for which the app has been [aborted](Self::abort). It takes precedence over
    /// any other reason for the stop. The first fault counts, even if another one, which may be its
    /// consequence, is recorded before: a destructor of a dropped message may panic on another
    /// thread while the first panic unwinds.
    pub(crate) fn record(&self, fault: Fault) {
        let mut recorded = self.host.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let yields = recorded.is_some() && fault.order == FaultOrder::Later;
        let another = if yields { Some(fault) } else { recorded.replace(fault) };
        // Dropping its payload runs user code, which must not unwind into the executor.
        drop(recorded);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(another))) {
            // Its destructor might panic, too.
            std::mem::forget(payload);
        }
    }

    /// Drops the fault's payload, which is a user type.
    pub(crate) fn forget_fault(&self) {
        let fault = self.host.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(fault);
    }

    /// Notifies the supervisor. For threads of the app.
    pub(crate) fn notify_supervisor(&self) {
        notify(self.host.supervisor_fd.load(Ordering::Acquire));
    }

    /// Records the next stage of the run's thread.
    pub(crate) fn enter(&self, stage: Stage) {
        self.host.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// Returns the stage of the run's thread.
    pub(crate) fn stage(&self) -> Stage {
        Stage::from_number(self.host.stage.load(Ordering::Relaxed))
    }

    /// Sets whether a panic on a thread of the app goes to the panic hook of the program, before
    /// there are threads.
    pub(crate) fn keep_panic_hook(&self, keeps: bool) {
        self.host.keeps_panic_hook.store(keeps, Ordering::Relaxed);
    }

    pub(crate) fn keeps_panic_hook(&self) -> bool {
        self.host.keeps_panic_hook.load(Ordering::Relaxed)
    }

    /// Returns whether a supervisor writes the deferred messages of the app's threads.
    pub(crate) fn is_watched(&self) -> bool {
        self.host.watched.load(Ordering::Relaxed)
    }

    /// Ends a run before it has begun. Jobs spawned by foreign threads are dropped: there are no
    /// resources for them.
    pub(crate) fn give_up(&self) {
        self.set_job_flags(ABORTS);
        self.partitions.iter().for_each(|partition| partition.core.stop());
    }

    /// Sets the descriptor to write to when the app begins to stop. It stays open until this is set
    /// to -1, after every thread of the app has ended.
    pub(crate) fn set_supervisor_fd(&self, supervisor_fd: RawFd) {
        self.host.supervisor_fd.store(supervisor_fd, Ordering::Release);
        self.host.watched.store(supervisor_fd >= 0, Ordering::Relaxed);
    }

    /// Returns whether `init` has ended.
    pub(crate) fn has_started(&self) -> bool {
        self.started() != 0
    }

    /// Sleeps until the app is to stop.
    pub(crate) fn wait_for_stop(&self) {
        while self.host.stop_requested.load(Ordering::Acquire) == 0 {
            futex::wait_while(&self.host.stop_requested, 0);
        }
    }

    /// Returns the reason for the stop.
    pub(crate) fn outcome(&self) -> Outcome {
        if let Some(fault) = &*self.host.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            return Outcome::Panicked {
                task: fault.culprit.to_string().into(),
                message: fault.text().to_owned().into(),
            };
        }
        self.stop_reason.get().map_or(Outcome::Shutdown, Outcome::from)
    }

    /// Returns whether jobs of the app are checked for suspensions: those that are measured, and
    /// those with observers. Constant while the threads of a run exist.
    pub(crate) fn checks_suspensions(&self) -> bool {
        self.tasks.iter().filter_map(|task| task.info()).any(|task| task.is_measured || task.cells.is_on())
    }

    /// Sets flags of [`job_flags`](HostApp::job_flags), and returns the previous ones.
    /// Async-signal-safe.
    fn set_job_flags(&self, flags: u32) -> u32 {
        let before = self.host.job_flags.fetch_or(flags, Ordering::Relaxed);
        // The word's last, so a thread that finds it finds the others.
        self.partitions.iter().for_each(|partition| word::set_flagged(partition.core.word_cell()));
        before
    }

    /// Clears flags of [`job_flags`](HostApp::job_flags), while no job can run.
    pub(super) fn clear_job_flags(&self, flags: u32) {
        self.host.job_flags.fetch_and(!flags, Ordering::Relaxed);
        let cells = || self.partitions.iter().map(|partition| partition.core.word_cell());
        cells().for_each(word::clear_flagged);
        // Another thread may have set a flag in the meantime.
        if self.is_instrumented() {
            cells().for_each(word::set_flagged);
        }
    }

    /// Sets or clears flags of [`job_flags`](HostApp::job_flags), while no job can run.
    fn switch_job_flags(&self, flags: u32, on: bool) {
        if on {
            self.set_job_flags(flags);
        } else {
            self.clear_job_flags(flags);
        }
    }

    /// Returns whether jobs have to be dropped, marked, watched or checked, or spawns be rejected.
    #[inline]
    pub(crate) fn is_instrumented(&self) -> bool {
        self.host.job_flags.load(Ordering::Relaxed) != 0
    }

    /// Stops the copy of a running app in the child of a `fork`. Async-signal-safe.
    pub(crate) fn stop_copy(&self) {
        if self.host.claim.is_taken() {
            self.set_job_flags(COPY);
            self.partitions.iter().for_each(|partition| partition.core.stop());
        }
    }

    /// Sets whether there are tasks that mark their jobs, while none can run.
    pub(crate) fn set_marks(&self, marks: bool) {
        self.switch_job_flags(MARKS, marks);
    }

    /// Sets whether jobs are profiled, while none can run.
    pub(crate) fn set_profiles(&self, profiles: bool) {
        self.switch_job_flags(PROFILES, profiles);
    }

    /// Sets whether jobs are reported to a supervisor, while none can run.
    pub(crate) fn set_supervised(&self, supervised: bool) {
        self.switch_job_flags(SUPERVISED, supervised);
    }

    /// Sets whether the guard watches jobs, while none can run.
    #[cfg_attr(not(feature = "guard"), allow(dead_code, reason = "there is no guard"))]
    pub(crate) fn set_guarded(&self, guarded: bool) {
        self.switch_job_flags(GUARDED, guarded);
    }

    /// Returns whether the guard watches jobs.
    #[cfg_attr(not(feature = "guard"), allow(dead_code, reason = "there is no guard"))]
    pub(crate) fn is_guarded(&self) -> bool {
        self.host.job_flags.load(Ordering::Relaxed) & GUARDED != 0
    }

    /// Returns whether jobs are profiled.
    pub(crate) fn profiles(&self) -> bool {
        self.host.job_flags.load(Ordering::Relaxed) & PROFILES != 0
    }

    /// Returns whether there was a fault.
    #[inline]
    pub(crate) fn aborts(&self) -> bool {
        self.host.job_flags.load(Ordering::Relaxed) & ABORTS != 0
    }

    /// Returns whether the app stops because of a fault. Giving up a start is none, though jobs are
    /// dropped then, too.
    pub(crate) fn has_failed(&self) -> bool {
        self.host.job_flags.load(Ordering::Relaxed) & (ABORTS | STOPS) == ABORTS | STOPS
    }

    /// Returns whether this is the copy of a running app in the child of a `fork`.
    pub(crate) fn is_copy(&self) -> bool {
        self.host.job_flags.load(Ordering::Relaxed) & COPY != 0
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

    /// Lets a foreign thread spawn: the run does not end while the returned value exists.
    pub(crate) fn begin_foreign_spawn(&self) -> Option<ForeignSpawn<'_>> {
        self.host.foreign_spawns.begin()
    }

    /// Returns whether foreign threads may spawn. Exact for the thread that closes them.
    #[inline(always)]
    pub(crate) fn accepts_foreign_spawns(&self) -> bool {
        self.host.foreign_spawns.is_open()
    }

    /// Rejects spawns of foreign threads from now on, and waits for those in progress.
    pub(crate) fn close_foreign_spawns(&self) {
        self.host.foreign_spawns.close();
    }

    /// Returns the reactor of the async tasks, if there are any.
    #[inline]
    pub(crate) fn reactor(&self) -> Option<&'static Reactor> {
        self.host.reactor
    }

    /// Makes the supervisor, and the threads that wait for descriptors, check whether the app is
    /// stopping.
    pub(crate) fn interrupt(&self) {
        // If foreign spawns are closed, those threads have ended and their descriptors are being
        // closed. Then the supervisor checks by itself.
        let Some(_spawn) = self.host.foreign_spawns.begin() else { return };
        self.notify_supervisor();
        self.sources().for_each(|source| source.interrupt());
        if let Some(reactor) = self.host.reactor {
            reactor.interrupt();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_their_stages() {
        for stage in [Stage::Init, Stage::Tasks, Stage::Arguments, Stage::Hook, Stage::Resources] {
            assert_eq!(Stage::from_number(stage as u8), stage);
        }
    }
}

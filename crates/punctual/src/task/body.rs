//! The generated code's declaration of a task, and values derived from it.

use core::marker::PhantomData;

use punctual_core::{Arguments, ConstLevel, CurrentWorker, Duration, Instant, Level, Port, Stamp};

use crate::cells::Observe;
use crate::model::OnEarly;
use crate::state::partition::PartitionState;
use crate::state::runtime::Runtime;
use crate::task::interval::Interval;
use crate::task::monitor::Monitor;
use crate::task::spawn_error::FullTask;

/// A task, as the generated code declares it.
pub trait Body: 'static {
    /// The arguments beyond the context: none, one, or a tuple.
    type Args: Send + 'static;
    /// The task's name.
    const NAME: &'static str;
    /// The task's level.
    const LEVEL: u8;
    /// Whether jobs are measured.
    const MONITOR: bool;
    /// Whether spawns are counted while the app is profiled.
    const PROFILE: bool;
    /// Relative deadline.
    const DEADLINE: Option<Duration>;
    /// Execution time in virtual time.
    const EXECUTION: Duration;

    /// Returns its minimum inter-arrival time, if it declares one. Known at compile time, so that a
    /// task without one has no cost.
    #[inline(always)]
    fn interval() -> Option<&'static Interval> {
        None
    }

    /// Returns the app.
    fn runtime() -> &'static Runtime;

    /// Returns the task's partition.
    fn partition() -> &'static PartitionState;

    /// Returns the task's level and the first of its nodes there, where they are constants.
    fn place() -> (&'static Level, u32);

    /// Takes the arguments and runs the user's function.
    ///
    /// # Safety
    /// The calling thread runs this job at the task's level. It owns the arguments, which are
    /// [`Args`](Self::Args).
    unsafe fn call(worker: CurrentWorker, release: Instant, args: Arguments);

    /// Frees the slot of the arguments, if they are in one.
    ///
    /// # Safety
    /// The caller owns the arguments, which are those of a job of this task, and has moved them out
    /// or dropped them.
    #[inline(always)]
    unsafe fn free(args: Arguments) {
        let _ = args;
    }

    /// Called after each job, at the task's level, with the job's end if that is known; returns the
    /// end, if it is known then.
    ///
    /// # Safety
    /// As for [`call`](Self::call), which has returned.
    #[inline]
    unsafe fn after(end: Stamp) -> Stamp {
        end
    }
}

/// The level of a task.
pub(crate) struct LevelOf<B>(PhantomData<B>);

impl<B: Body> ConstLevel for LevelOf<B> {
    const NUMBER: u8 = B::LEVEL;
}

/// A [`Body`] as data, for code that exists once for all tasks.
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    pub(crate) level: u8,
    pub(crate) full: &'static FullTask,
    pub(crate) is_measured: bool,
    pub(crate) is_profiled: bool,
    pub(crate) deadline: Option<Duration>,
    /// The longest response time in ns that meets the deadline.
    pub(crate) max_response: u64,
    pub(crate) execution: Duration,
    // Functions, because a constant cannot refer to mutable statics.
    pub(crate) partition: fn() -> &'static PartitionState,
    pub(crate) interval: fn() -> Option<&'static Interval>,
    pub(crate) place: fn() -> (&'static Level, u32),
    /// [`Body::call`].
    pub(crate) call: unsafe fn(CurrentWorker, Instant, Arguments),
    /// [`Body::free`].
    pub(crate) free: unsafe fn(Arguments),
    /// [`Body::after`].
    pub(crate) after: unsafe fn(Stamp) -> Stamp,
    /// Drops the arguments at a pointer.
    pub(crate) drop: unsafe fn(*mut ()),
}

impl Declared {
    /// Returns the declaration of `B`, which `full` describes if it has no room for a job.
    pub(crate) const fn of<B: Body>(full: &'static FullTask) -> Self {
        Self {
            name: B::NAME,
            level: B::LEVEL,
            full,
            is_measured: measures::<B>(),
            is_profiled: B::PROFILE,
            deadline: B::DEADLINE,
            max_response: match B::DEADLINE {
                Some(deadline) => deadline.as_ticks(),
                None => u64::MAX,
            },
            execution: B::EXECUTION,
            partition: B::partition,
            interval: B::interval,
            place: B::place,
            call: B::call,
            free: B::free,
            after: B::after,
            drop: drop_arguments::<B::Args>,
        }
    }

    /// Returns the app.
    pub(crate) fn runtime(&self) -> &'static Runtime {
        (self.partition)().runtime
    }

    /// Returns [`counted`] of the task.
    pub(crate) fn counted(&self) -> Option<&'static Interval> {
        (self.interval)().filter(|interval| interval.on_early() == OnEarly::Count)
    }
}

impl core::fmt::Debug for Declared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Declared").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Moves out the part of the arguments at `part`, and frees their slot.
///
/// # Safety
/// The caller owns the arguments, which are those of a job of `B`, and has moved all parts out but
/// the one at `part`.
#[inline(always)]
pub unsafe fn take_last<B: Body, T>(args: Arguments, part: *const T) -> T {
    /// Frees the slot when dropped: a variable for the part would be another copy of it in a debug
    /// build.
    struct Taken<B: Body>(Arguments, PhantomData<B>);

    impl<B: Body> Drop for Taken<B> {
        #[inline(always)]
        fn drop(&mut self) {
            // SAFETY: by the contract of `take_last`, which has moved the last part out.
            unsafe { B::free(self.0) }
        }
    }

    let _taken = Taken::<B>(args, PhantomData);
    // SAFETY: by this function's contract; the slot is free after that.
    unsafe { part.read() }
}

/// Drops the arguments at `place`.
///
/// # Safety
/// There are arguments of this type at `place`, which the caller owns.
pub(crate) unsafe fn drop_arguments<A>(place: *mut ()) {
    // SAFETY: by this function's contract.
    unsafe { place.cast::<A>().drop_in_place() }
}

/// Release of a job.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Release {
    /// The job's start: it runs as a call.
    AtStart,
    /// A time in ns.
    At(u64),
}

impl Release {
    /// Returns the time, which is 0 for a job that runs as a call: only periodic tasks use the
    /// release of a job that is not measured, and their jobs are queued.
    #[inline(always)]
    pub(crate) fn unmeasured(self) -> Instant {
        match self {
            Self::AtStart => Instant::from_ticks(0),
            Self::At(release) => Instant::from_ticks(release),
        }
    }
}

/// Returns the release of a job of `runtime` that starts at `start`.
#[inline(always)]
pub(crate) fn released(runtime: &Runtime, release: Release, start: impl FnOnce() -> Instant) -> Instant {
    match release {
        Release::AtStart => start(),
        // Jobs spawned by `init` are released when the app starts.
        Release::At(release) => Instant::from_ticks(release.max(runtime.started())),
    }
}

/// Returns whether jobs are measured, as determined by the app and the features of this crate.
pub(crate) const fn measures<B: Body>() -> bool {
    cfg!(feature = "monitoring") && B::MONITOR
}

/// Returns the minimum inter-arrival time, if early releases are executed and counted.
#[inline(always)]
pub(crate) fn counted<B: Body>() -> Option<&'static Interval> {
    B::interval().filter(|interval| interval.on_early() == OnEarly::Count)
}

/// Returns the release of a job that is queued now, in ns; 0, without reading the clock, if it is
/// not needed. The task's jobs are not marked.
#[inline]
pub(crate) fn stamp<B: Body>() -> u64 {
    if const { measures::<B>() } || B::interval().is_some() {
        B::partition().core.port().stamp().as_ticks()
    } else {
        0
    }
}

/// Like [`stamp`], for any task, whose jobs may be marked.
pub(crate) fn stamp_any(monitor: &Monitor) -> u64 {
    let task = &monitor.declared;
    if task.is_measured || (task.interval)().is_some() || monitor.cells.is_on() {
        (task.partition)().core.port().stamp().as_ticks()
    } else {
        0
    }
}

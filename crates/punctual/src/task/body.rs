//! What the generated code declares of a task, and what follows from it.

use punctual_core::{CurrentWorker, Duration, Instant, Level, Port, Stamp};

use crate::app::halves::Shown;
use crate::app::partition::PartitionState;
use crate::app::runtime::Runtime;
use crate::model::OnEarly;
use crate::task::interval::Interval;
use crate::task::monitor::Monitor;

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

    /// Its minimum inter-arrival time, if it declares one. Known at compile time, so that a task without one pays nothing.
    #[inline(always)]
    fn interval() -> Option<&'static Interval> {
        None
    }

    /// Where its jobs are shown to the app's half on Linux, if there is one and this one is without Linux. Known at compile time,
    /// but for whether the halves have met.
    #[inline(always)]
    fn shown() -> Option<&'static Shown> {
        None
    }

    /// The app.
    fn runtime() -> &'static Runtime;

    /// The task's partition.
    fn partition() -> &'static PartitionState;

    /// The task's level and the first of its nodes there, where they are constants.
    fn place() -> (&'static Level, u32);

    /// Runs the user's function.
    ///
    /// # Safety
    /// The calling thread runs a job of this task's level, of which this is the one.
    unsafe fn call(worker: CurrentWorker, release: Instant, args: Self::Args);

    /// Called after each job, at the task's level, with the job's end if that is known.
    ///
    /// # Safety
    /// As for [`call`](Self::call), which has returned.
    #[inline]
    unsafe fn after(end: Stamp) {
        let _ = end;
    }
}

/// The release of a job that runs as a call, meaning its start. Not 0, at which virtual time begins.
pub(crate) const AT_ITS_START: u64 = u64::MAX;

/// When a job was released that starts at `start`.
#[inline(always)]
pub(crate) fn released<B: Body>(release: u64, start: impl FnOnce() -> Instant) -> Instant {
    match release {
        AT_ITS_START => start(),
        // Jobs spawned by `init` are released when the app starts.
        release => Instant::from_ticks(release.max(B::runtime().started())),
    }
}

/// Whether jobs are measured: the app and the features of this crate say so.
pub(crate) const fn measures<B: Body>() -> bool {
    cfg!(feature = "monitoring") && B::MONITOR
}

/// The minimum inter-arrival time, if early releases take place and are counted.
#[inline(always)]
pub(crate) fn counted<B: Body>() -> Option<&'static Interval> {
    B::interval().filter(|interval| interval.on_early() == OnEarly::Count)
}

/// The release of a job that is queued now, in ns; 0, without reading the clock, if nobody needs it.
#[inline]
pub(crate) fn stamp<B: Body>(monitor: &Monitor) -> u64 {
    stamp_with_care::<B>(monitor, true)
}

/// [`stamp`]; `care` is what [`needs_care`](super::job::needs_care) says, without which no jobs are marked.
#[inline]
pub(crate) fn stamp_with_care<B: Body>(monitor: &Monitor, care: bool) -> u64 {
    if measures::<B>() || B::interval().is_some() || care && monitor.mark.is_on() {
        B::partition().core.port().stamp().as_ticks()
    } else {
        0
    }
}

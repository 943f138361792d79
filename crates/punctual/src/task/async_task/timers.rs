//! The timers of a level's async tasks: slots that hold a waker and a time.
//!
//! A timer works like a timed spawn: a job of its level waits for its time in a slot, and then
//! wakes the task. The order of timers, cancellation from any thread, and the race between the two
//! are thus those of [`Slots`].

use core::task::Waker;

use punctual_core::{Armed, Instant, Level, Popped, Slots};

use super::due;
use crate::port::per_thread;
use crate::report::TaskReport;
use crate::state::partition::PartitionState;
use crate::state::runtime::{Registered, TaskInfo};
use crate::state::{Host, Platform};
use crate::stop::Culprit;

/// The timers of one level, for `N / 2` waits; `W` is `N.div_ceil(64)`.
///
/// There are two slots for each wait. A timer that has expired keeps its slot until its job has
/// run. A poll of its task that is ahead of this job in the level's queue sees that the time has
/// come, and may wait for the next one; the poll after that is behind the job.
pub struct Timers<const N: usize, const W: usize> {
    slots: Slots<Waker, N, W>,
    partition: &'static PartitionState,
}

/// [`Timers`] of any number.
pub(crate) trait AnyTimers: Sync {
    /// Returns the partition of their tasks.
    fn partition(&self) -> &'static PartitionState;

    /// Sets a timer; returns `None` if the app is ending, in which case no wake-up is needed.
    ///
    /// # Panics
    /// Panics if there are as many waits as possible already.
    fn arm(&self, waker: &Waker, time: Instant) -> Option<Armed>;

    /// Cancels a timer, unless it has expired.
    fn cancel(&self, armed: Armed);
}

/// The timers of an async task. A reference to them is a single word.
pub(super) type TimersOfTask = &'static (dyn AnyTimers + Sync);

per_thread! {
    /// The timers for futures that are being polled on this thread.
    static CURRENT: Option<&'static TimersOfTask> = None;
}

/// Runs `f`, in which futures find `timers`.
// Always: otherwise each poll saves the registers of the caller once more.
#[inline(always)]
pub(super) fn with<R>(timers: &'static TimersOfTask, f: impl FnOnce() -> R) -> R {
    let _outer = Outer(CURRENT.replace(Some(timers)));
    f()
}

/// Returns the timers for the future being polled.
pub(super) fn current() -> Option<&'static dyn AnyTimers> {
    CURRENT.get().map(|timers| *timers as &dyn AnyTimers)
}

/// Restores the thread's timers on exit, including by a panic.
struct Outer(Option<&'static TimersOfTask>);

impl Drop for Outer {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

impl<const N: usize, const W: usize> Timers<N, W> {
    /// The number of times for which the tasks of the level may wait at once.
    const WAITS: usize = N / 2;

    /// Creates timers whose nodes start at `base` in `level`.
    ///
    /// # Safety
    /// As for [`Slots::new`]; `level` is one of `partition`.
    pub const unsafe fn new(partition: &'static PartitionState, level: &'static Level, base: u32) -> Self {
        // SAFETY: only these slots use the nodes, by this function's contract.
        Self { slots: unsafe { Slots::new(level, base) }, partition }
    }

    /// Returns whether there are not too many waits with that of `armed`; otherwise ends it.
    #[inline]
    fn is_allowed(&self, armed: Armed) -> bool {
        let is_allowed = self.slots.has_at_most(Self::WAITS);
        if !is_allowed {
            drop(self.slots.cancel(armed));
        }
        is_allowed
    }

    /// Wakes the task that waits for the timer of `job`.
    ///
    /// # Safety
    /// `job` was popped from the level's queue by the calling thread, which occupies the level, and
    /// its node is one of these.
    pub unsafe fn run(&'static self, job: Popped) {
        // SAFETY: the job was popped by this thread and is one of these slots', by this function's
        // contract.
        let (waker, time) = unsafe { self.slots.take(job) };
        due::during(self.slots.level().number(), time, || {
            // The waker may be the user's.
            Host::contained(self.partition.runtime, Culprit::Waker, || waker.wake());
        });
    }
}

impl<const N: usize, const W: usize> AnyTimers for Timers<N, W> {
    fn partition(&self) -> &'static PartitionState {
        self.partition
    }

    fn arm(&self, waker: &Waker, time: Instant) -> Option<Armed> {
        let _visit = Host::visit(self.partition)?;
        if self.partition.core.is_stopping() {
            return None;
        }
        let level = self.slots.level();
        let armed = self.slots.arm(waker.clone(), time).ok().filter(|&armed| self.is_allowed(armed));
        let Some(armed) = armed else {
            panic!(
                "the async tasks of level {} wait for more than {} times at once; raise `waits` of one of them",
                level.number(),
                Self::WAITS
            )
        };
        self.partition.core.armed(level, time);
        Some(armed)
    }

    fn cancel(&self, armed: Armed) {
        if let Some(_visit) = Host::visit(self.partition) {
            drop(self.slots.cancel(armed));
        }
    }
}

impl<const N: usize, const W: usize> Registered for Timers<N, W> {
    unsafe fn begin(&self) {}

    unsafe fn end(&self) -> u32 {
        let drop = |waker: *mut Waker| {
            // SAFETY: it is the waker of a job that has been removed, and is not used again.
            Host::contained(self.partition.runtime, Culprit::Waker, || unsafe { waker.drop_in_place() });
        };
        // SAFETY: no job of the level can run, and no timer can be armed, by this function's
        // contract.
        unsafe { self.slots.clear(drop) };
        // A waker is not a job.
        0
    }

    unsafe fn report(&self) -> Option<TaskReport> {
        None
    }

    fn info(&'static self) -> Option<TaskInfo> {
        None
    }
}

//! Message tasks: spawn now, spawn at a time, cancel, reschedule.

use punctual_core::{Armed, CurrentWorker, Duration, Instant, IntoDuration, Level, Port, Slots, Stamp};

use crate::app::current;
use crate::app::fault;
#[cfg(feature = "std")]
use crate::app::partition::PartitionState;
use crate::app::profile;
use crate::app::report::TaskReport;
#[cfg(feature = "std")]
use crate::app::runtime::Counters;
use crate::app::runtime::{Registered, TaskInfo};
use crate::app::stop::Culprit;
use crate::model::OnEarly;
use crate::task::body::{AT_ITS_START, Body, measures, stamp, stamp_with_care};
use crate::task::interval::{Claim, Interval};
use crate::task::job::{execute, execute_plain, execute_queued, needs_care, needs_release};
use crate::task::monitor::Monitor;
use crate::task::spawn_error::{SpawnError, TooLate, not_released};

/// A task with `N` job slots; `W` is `N.div_ceil(64)`.
pub struct Task<B: Body, const N: usize, const W: usize> {
    slots: Slots<B::Args, N, W>,
    pub(crate) monitor: Monitor,
}

impl<B: Body, const N: usize, const W: usize> Task<B, N, W> {
    /// A task whose nodes start at `base` in `level`.
    ///
    /// # Safety
    /// As for [`Slots::new`]; `level` and `base` are the [`Body::place`], and the level is one of [`Body::partition`].
    pub const unsafe fn new(level: &'static Level, base: u32) -> Self {
        assert!(level.number() == B::LEVEL, "a task is in the level of its priority");
        // SAFETY: the nodes are used by these slots alone, by this function's contract.
        Self { slots: unsafe { Slots::new(level, base) }, monitor: Monitor::new() }
    }

    /// Runs the job of `node`.
    ///
    /// # Safety
    /// `node` was popped from the level's queue by the calling thread, which occupies the level, and is one of this
    /// task's.
    #[inline]
    pub unsafe fn run(&'static self, me: CurrentWorker, node: u32, now: Stamp) -> Stamp {
        // SAFETY: the node was popped by this thread and is one of these slots', by this function's contract.
        let (args, release) = unsafe {
            match needs_release::<B>() {
                true => self.slots().take(node),
                false => (self.slots().take_arguments(node), 0),
            }
        };
        // SAFETY: this thread occupies the task's level, by this function's contract, and the arguments are those of this job.
        unsafe { execute_queued::<B>(&self.monitor, me, args, release, now) }
    }

    /// The slots, with what they say of their level as constants.
    #[inline(always)]
    fn slots(&self) -> &Slots<B::Args, N, W> {
        let (level, base) = B::place();
        // SAFETY: they are, by `new`'s contract.
        unsafe { core::hint::assert_unchecked(self.slots.are_at(level, base)) };
        &self.slots
    }

    /// Spawns a job. If the level is above the partition's, the job has run when this returns.
    ///
    /// # Errors
    /// See [`SpawnError`].
    #[inline(always)]
    pub fn spawn(&'static self, args: B::Args) -> Result<(), SpawnError<B::Args>> {
        self.release(args, B::interval().map(Interval::on_early), |args| not_released(B::runtime(), args))
    }

    /// [`spawn`](Self::spawn), with the handling of early releases, and of the arguments if the app is stopping.
    #[inline(always)]
    pub(crate) fn release(
        &'static self,
        args: B::Args,
        on_early: Option<OnEarly>,
        stopped: impl FnOnce(B::Args) -> Result<(), SpawnError<B::Args>>,
    ) -> Result<(), SpawnError<B::Args>> {
        let when = if B::PROFILE { profile::before_spawn(&self.monitor.profile) } else { None };
        let released = match (B::interval(), on_early) {
            (Some(interval), Some(on_early @ (OnEarly::Delay | OnEarly::Reject))) => {
                self.release_in_time(interval, on_early, args, stopped)
            }
            _ => self.release_now(args, stopped),
        };
        if B::PROFILE && released.is_ok() {
            profile::spawned(&self.monitor.profile, when);
        }
        released
    }

    /// [`release`](Self::release) of a task whose early releases wait or are refused.
    #[inline(never)]
    fn release_in_time(
        &'static self,
        interval: &'static Interval,
        on_early: OnEarly,
        args: B::Args,
        stopped: impl FnOnce(B::Args) -> Result<(), SpawnError<B::Args>>,
    ) -> Result<(), SpawnError<B::Args>> {
        let (now, claim) = {
            // The releases noted are those of this run.
            let Some(_entry) = current::enter(B::runtime()) else { return stopped(args) };
            let now = B::partition().core.port().now();
            (now, interval.claim(now, on_early))
        };
        let Claim::At(time, noted) = claim else {
            interval.count();
            return Err(SpawnError::TooEarly(args));
        };
        let released = match time > now {
            true if B::runtime().is_stopping() => stopped(args),
            true => self.spawn_at(time, args).map(|_| interval.count()),
            false => self.release_now(args, stopped),
        };
        if released.is_err() {
            interval.withdraw(noted);
        }
        released
    }

    #[inline(always)]
    fn release_now(
        &'static self,
        args: B::Args,
        stopped: impl FnOnce(B::Args) -> Result<(), SpawnError<B::Args>>,
    ) -> Result<(), SpawnError<B::Args>> {
        let partition = B::partition();
        let Some(me) = current::worker_of(partition) else { return self.release_from_outside(args, stopped) };
        // A job of its own level never is a call.
        if me.running() == B::LEVEL {
            // SAFETY: the job that this thread runs is of this level.
            return unsafe { self.release_own(args, stopped) };
        }
        self.release_beyond(me, args, stopped)
    }

    /// [`release_now`](Self::release_now) from a thread of the partition that does not run a job of the level.
    #[inline]
    fn release_beyond(
        &'static self,
        me: CurrentWorker,
        args: B::Args,
        stopped: impl FnOnce(B::Args) -> Result<(), SpawnError<B::Args>>,
    ) -> Result<(), SpawnError<B::Args>> {
        let (core, level) = (B::partition().core(), B::place().0);
        // SAFETY: the level is the partition's, by `new`'s contract; the job is over when this preemption is finished.
        if let Some(preemption) = unsafe { core.preempt(me, level) } {
            // Not earlier: only now is a fault seen that let this thread occupy the level.
            if needs_care::<B>() {
                // SAFETY: `preempt` made this thread occupy the level to run this job.
                return unsafe { self.call_with_care(me, args, preemption.suspend(), stopped) };
            }
            // SAFETY: as above.
            let end = unsafe { execute_plain::<B>(&self.monitor, me, args, AT_ITS_START, None) };
            preemption.finish(end);
            return Ok(());
        }
        if core.is_stopping() {
            return stopped(args);
        }
        let node = self.slots().put(args, stamp::<B>(&self.monitor)).map_err(SpawnError::Full)?;
        // SAFETY: the level is the partition's, by `new`'s contract, and the node was just given out.
        unsafe { core.spawn(me, level, node) };
        #[cfg(feature = "std")]
        if me.running() == 0 {
            boost_for_queued(B::partition());
        }
        Ok(())
    }

    /// [`release_now`](Self::release_now) from a job of the task's level.
    ///
    /// # Safety
    /// The calling thread's innermost job is of the level.
    #[inline(always)]
    unsafe fn release_own(
        &'static self,
        args: B::Args,
        stopped: impl FnOnce(B::Args) -> Result<(), SpawnError<B::Args>>,
    ) -> Result<(), SpawnError<B::Args>> {
        let (core, level) = (B::partition().core(), B::place().0);
        if needs_care::<B>() || level.has_inbox() {
            // SAFETY: by this function's contract.
            return unsafe { self.release_own_with_care(args, stopped) };
        }
        let release = needs_release::<B>().then(|| stamp_with_care::<B>(&self.monitor, false));
        let node = self.slots().put_here(args, release).map_err(SpawnError::Full)?;
        // SAFETY: the level is the partition's, by `new`'s contract, the node was just given out, and this thread runs a job of
        // the level, by this function's contract.
        unsafe { core.append_own(level, node) };
        Ok(())
    }

    /// [`release_own`](Self::release_own) in an app that is stopping, or whose jobs are marked, or behind jobs from elsewhere.
    ///
    /// # Safety
    /// As for [`release_own`](Self::release_own).
    #[inline(never)]
    unsafe fn release_own_with_care(
        &'static self,
        args: B::Args,
        stopped: impl FnOnce(B::Args) -> Result<(), SpawnError<B::Args>>,
    ) -> Result<(), SpawnError<B::Args>> {
        let (core, level) = (B::partition().core(), B::place().0);
        if core.is_stopping() {
            return stopped(args);
        }
        let node = self.slots().put_here(args, Some(stamp::<B>(&self.monitor))).map_err(SpawnError::Full)?;
        // SAFETY: as in `release_own`.
        unsafe { core.spawn_own(level, node) };
        Ok(())
    }

    /// Runs the job of a spawn as a call in an app that is stopping, or whose jobs are marked, watched or measured further.
    ///
    /// # Safety
    /// A preemption made this thread occupy the level to run this job, and was suspended.
    #[cold]
    #[inline(never)]
    unsafe fn call_with_care(
        &'static self,
        me: CurrentWorker,
        args: B::Args,
        outer: u8,
        stopped: impl FnOnce(B::Args) -> Result<(), SpawnError<B::Args>>,
    ) -> Result<(), SpawnError<B::Args>> {
        let core = B::partition().core();
        // SAFETY: by this function's contract.
        let preemption = unsafe { core.resume(me, B::place().0, outer) };
        if core.is_stopping() {
            preemption.finish(None);
            return stopped(args);
        }
        // SAFETY: this thread occupies the level to run this job, by this function's contract.
        let end = unsafe { execute::<B>(&self.monitor, me, args, AT_ITS_START, None) };
        preemption.finish(end);
        Ok(())
    }

    /// [`release_now`](Self::release_now) from a thread that is none of the partition's: always through the queue.
    #[inline(never)]
    fn release_from_outside(
        &'static self,
        args: B::Args,
        stopped: impl FnOnce(B::Args) -> Result<(), SpawnError<B::Args>>,
    ) -> Result<(), SpawnError<B::Args>> {
        let Some(_entry) = current::enter(B::runtime()) else { return stopped(args) };
        let node = self.slots.put(args, stamp::<B>(&self.monitor)).map_err(SpawnError::Full)?;
        // SAFETY: as in `spawn`.
        unsafe { B::partition().core.spawn_from_outside(self.slots.level(), node) };
        #[cfg(feature = "std")]
        B::partition().core.boost_for_queued();
        Ok(())
    }

    /// Arms a job for `time`.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub fn spawn_at(
        &'static self,
        time: Instant,
        args: B::Args,
    ) -> Result<SpawnHandle<B::Args>, SpawnError<B::Args>> {
        let core = B::partition().core();
        // Even a thread of the app may delay the end of the run, which cannot be waiting for this thread. It does not while it
        // drops the arguments, since that runs code of the user's.
        let Some(_visit) = B::runtime().pass_gate().filter(|_| !core.is_stopping()) else {
            return not_released(B::runtime(), args).map(|()| SpawnHandle { task: self, armed: None });
        };
        let armed = self.slots.arm(args, time).map_err(SpawnError::Full)?;
        if B::PROFILE {
            profile::spawned_in_time(&self.monitor.profile);
        }
        core.armed(self.slots.level(), time);
        Ok(SpawnHandle { task: self, armed: Some(armed) })
    }

    /// Arms a job for `after` from now.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub fn spawn_after(
        &'static self,
        after: impl IntoDuration,
        args: B::Args,
    ) -> Result<SpawnHandle<B::Args>, SpawnError<B::Args>> {
        self.spawn_at(self.after(after.into_duration()), args)
    }
}

/// For `idle`, which the job that it has queued may wait for.
#[cfg(feature = "std")]
#[cold]
#[inline(never)]
fn boost_for_queued(partition: &PartitionState) {
    partition.core.boost_for_queued();
}

/// The operations of a handle on its task, for any task with these arguments.
trait Timed<A>: Sync {
    /// The task's name.
    fn name(&self) -> &'static str;

    /// `duration` from now, by the app's clock.
    fn after(&self, duration: Duration) -> Instant;

    /// Takes an armed job back; `None` if it has been released, cancelled or lost with its run.
    fn cancel(&self, armed: Armed) -> Option<A>;

    /// Moves an armed job; `false` if it has been released, cancelled or lost with its run.
    fn reschedule(&self, armed: Armed, time: Instant) -> bool;
}

impl<B: Body, const N: usize, const W: usize> Timed<B::Args> for Task<B, N, W> {
    fn name(&self) -> &'static str {
        B::NAME
    }

    fn after(&self, duration: Duration) -> Instant {
        let now = B::partition().core.port().now().as_ticks();
        Instant::from_ticks(now.saturating_add(duration.as_ticks()))
    }

    fn cancel(&self, armed: Armed) -> Option<B::Args> {
        let _pass = B::runtime().pass_gate()?;
        self.slots.cancel(armed)
    }

    fn reschedule(&self, armed: Armed, time: Instant) -> bool {
        let Some(_pass) = B::runtime().pass_gate() else { return false };
        let moved = self.slots.reschedule(armed, time);
        if moved {
            B::partition().core.armed(self.slots.level(), time);
        }
        moved
    }
}

/// A job that is going to be released, from `spawn_after` or `spawn_at`; `A` are its arguments.
///
/// Dropping it changes nothing; the job is released all the same.
pub struct SpawnHandle<A: 'static> {
    task: &'static dyn Timed<A>,
    /// `None` if the app was stopping.
    armed: Option<Armed>,
}

impl<A> SpawnHandle<A> {
    /// Takes the job back.
    ///
    /// Real-time safety: does not allocate, block or enter the kernel.
    ///
    /// # Errors
    /// [`TooLate`] if it has been released already or its run has ended.
    pub fn cancel(self) -> Result<A, TooLate> {
        self.armed.and_then(|armed| self.task.cancel(armed)).ok_or(TooLate)
    }

    /// Moves the job to `after` from now.
    ///
    /// # Errors
    /// [`TooLate`] if it has been released already or its run has ended.
    pub fn reschedule_after(self, after: impl IntoDuration) -> Result<Self, TooLate> {
        let time = self.task.after(after.into_duration());
        self.reschedule_at(time)
    }

    /// Moves the job to another time.
    ///
    /// Real-time safety: enters the kernel if the level's thread has to wake earlier for it.
    ///
    /// # Errors
    /// [`TooLate`] if it has been released already or its run has ended.
    pub fn reschedule_at(self, time: Instant) -> Result<Self, TooLate> {
        if self.armed.is_some_and(|armed| self.task.reschedule(armed, time)) {
            Ok(self)
        } else {
            Err(TooLate)
        }
    }
}

impl<A> core::fmt::Debug for SpawnHandle<A> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SpawnHandle").field("task", &self.task.name()).finish_non_exhaustive()
    }
}

impl<B: Body, const N: usize, const W: usize> Registered for Task<B, N, W> {
    fn info(&'static self) -> Option<TaskInfo> {
        Some(self.monitor.info::<B>())
    }

    #[cfg(feature = "std")]
    fn counters(&self) -> Counters {
        Counters { early: B::interval().map_or(0, Interval::early), ..Counters::default() }
    }

    unsafe fn begin(&self) {
        if let Some(interval) = B::interval() {
            interval.reset();
        }
        if measures::<B>() {
            // SAFETY: no job of the task can run, by this function's contract.
            unsafe { self.monitor.start() };
        }
    }

    unsafe fn end(&self) -> (Option<TaskReport>, u32) {
        let drop = |args| {
            fault::contained(B::runtime(), Culprit::Argument(B::NAME), || drop(args));
        };
        // SAFETY: no job of the task can run or be spawned, by this function's contract.
        let (mut report, dropped) = unsafe { (self.monitor.report::<B>(), self.slots.clear(drop)) };
        if let Some(interval) = B::interval() {
            interval.fill(&mut report);
        }
        (Some(report), dropped)
    }
}

//! Message tasks: spawn now, spawn at a time, cancel, reschedule.
//!
//! A spawn passes a pointer to the message, from which the job reads it, or the [slow
//! paths](super::release) move it into a slot. So the stack has one copy of a message in addition
//! to the variables of the caller and of the job: the one in the result of the spawn.

use core::mem::MaybeUninit;

use punctual_core::{
    Arguments, Armed, CurrentWorker, Duration, Instant, IntoDuration, Level, PackedStamp, Popped, Port, Slots,
};

use crate::cells::Observe;
use crate::model::OnEarly;
use crate::report::TaskReport;
use crate::state::partition::PartitionState;
use crate::state::runtime::{Counters, Registered, TaskInfo};
use crate::state::{Host, Platform};
use crate::task::body::{Body, LevelOf, Release, stamp};
use crate::task::interval::Interval;
use crate::task::job::{
    WORD_CHECKS_JOBS, end_slow, execute_flagged, execute_plain, is_instrumented, is_started_instrumented,
    needs_release,
};
use crate::task::monitor::Monitor;
use crate::task::release::{self, AbortOnUnwind, AnyTask, Caller, Passed, Refusal, Room, spilled};
use crate::task::spawn_error::{FullTask, SpawnError, TooLate};

/// A task with `N` job slots; `W` is `N.div_ceil(64)`.
#[repr(C)]
pub struct Task<B: Body, const N: usize, const W: usize> {
    slots: Slots<B::Args, N, W>,
    pub(crate) monitor: Monitor,
}

impl<B: Body, const N: usize, const W: usize> Task<B, N, W> {
    /// Creates a task whose nodes start at `base` in `level`.
    ///
    /// # Safety
    /// As for [`Slots::new`]; `level` and `base` are the [`Body::place`], and the level is one of
    /// [`Body::partition`].
    pub const unsafe fn new(level: &'static Level, base: u32) -> Self {
        assert!(level.number() == B::LEVEL, "a task is in the level of its priority");
        // SAFETY: only these slots use the nodes, by this function's contract.
        let slots = unsafe { Slots::new(level, base) };
        let full = const { &FullTask::new(B::NAME, Some(N)) };
        Self { slots, monitor: Monitor::new::<B>(full) }
    }

    /// Runs `job`.
    ///
    /// # Safety
    /// `job` was popped from the level's queue by the calling thread, which occupies the level, and
    /// is one of this task's.
    #[inline]
    pub unsafe fn run(&'static self, me: CurrentWorker, job: Popped, now: PackedStamp) -> PackedStamp {
        // SAFETY: the job was popped by this thread and is one of these slots', by this function's
        // contract; so this thread occupies the task's level, and the arguments are those of this
        // job.
        unsafe {
            if Host::CHECKS_QUEUED_JOBS && is_instrumented::<B>() {
                return Self::run_flagged(me, job, now, self);
            }
            let args = self.slots().arguments(job);
            let release = if needs_release::<B>() { self.slots().released(job) } else { 0 };
            execute_plain::<B>(&self.monitor, me, args, Release::At(release), now, false).into()
        }
    }

    /// [`run`](Self::run) of a job that requires further checks.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    // The arguments are in the registers of `run`, which therefore moves none.
    #[cold]
    #[inline(never)]
    unsafe fn run_flagged(
        me: CurrentWorker,
        job: Popped,
        now: PackedStamp,
        task: &'static Self,
    ) -> PackedStamp {
        // SAFETY: as in `run`.
        unsafe {
            let (args, release) = (task.slots().arguments(job), task.slots().released(job));
            execute_flagged(&task.monitor, me, args, Release::At(release), now.into()).into()
        }
    }

    /// Returns the slots, with their level and first node as constants.
    #[inline(always)]
    fn slots(&self) -> &Slots<B::Args, N, W> {
        let (level, base) = B::place();
        // SAFETY: they are, by `new`'s contract.
        unsafe { core::hint::assert_unchecked(self.slots.are_at(level, base)) };
        &self.slots
    }

    /// Returns the task without its types.
    fn any(&'static self) -> AnyTask {
        AnyTask { monitor: &self.monitor, slots: &self.slots }
    }

    /// Frees the slot of the arguments, if they are in one.
    ///
    /// # Safety
    /// As for [`Body::free`]; the calling thread occupies the level.
    #[inline(always)]
    pub unsafe fn free(&self, args: Arguments) {
        // SAFETY: by this function's contract.
        unsafe { self.slots().free(args) }
    }

    /// Spawns a job. If the level is above the partition's, the job has run when this returns.
    ///
    /// Does not unwind.
    ///
    /// # Errors
    /// See [`SpawnError`].
    ///
    /// # Safety
    /// `args` points to arguments, which this always moves out.
    #[inline(always)]
    pub unsafe fn spawn(&'static self, args: *mut B::Args) -> Result<(), SpawnError<B::Args>> {
        let unwinding = AbortOnUnwind;
        // SAFETY: the arguments are used again only if this fails.
        let released = unsafe { self.try_spawn(args, B::interval().map(Interval::on_early)) };
        core::mem::forget(unwinding);
        match released {
            Ok(()) => Ok(()),
            // SAFETY: the arguments are still there.
            Err(refusal) => unsafe { refusal.answer(&self.monitor, args, ()) },
        }
    }

    /// [`spawn`](Self::spawn) of the arguments at `args`, with the handling of early releases.
    ///
    /// # Errors
    /// See [`Refusal`].
    ///
    /// # Safety
    /// `args` points to arguments, which are not used again if this succeeds.
    #[inline(always)]
    pub(crate) unsafe fn try_spawn(
        &'static self,
        args: *mut B::Args,
        on_early: Option<OnEarly>,
    ) -> Result<(), Refusal> {
        let mut room = Room::uninit();
        let when = if B::PROFILE { self.monitor.cells.before_spawn() } else { None };
        let released = match (B::interval(), on_early) {
            (Some(interval), Some(on_early @ (OnEarly::Delay | OnEarly::Reject))) => {
                // SAFETY: by this function's contract.
                unsafe { self.any().release_in_time(interval, on_early, spilled(args, &mut room)) }
            }
            // SAFETY: by this function's contract.
            _ => unsafe {
                let partition = Host::in_register(B::partition());
                self.release(Caller::of(partition, B::LEVEL), partition, args)
            },
        };
        if B::PROFILE && released.is_ok() {
            self.monitor.cells.spawned(when);
        }
        released
    }

    /// Releases a job. The job of a level above the caller's has run when this returns; a spawn at
    /// the running level never preempts.
    ///
    /// # Safety
    /// As for [`try_spawn`](Self::try_spawn), and `caller` is the calling code.
    #[inline(always)]
    unsafe fn release(
        &'static self,
        caller: Caller,
        partition: &'static PartitionState,
        args: *mut B::Args,
    ) -> Result<(), Refusal> {
        let (core, level) = (partition.core(), B::place().0);
        let mut room = Room::uninit();
        // The cell of the word checks only who takes a spare.
        let needs_checks = || if N > 1 { is_started_instrumented::<B>() } else { is_instrumented::<B>() };
        // SAFETY: by this function's contract, in each case. The thread of the first two has joined
        // as `me`, which is its current worker; the level is the partition's, by `new`'s contract,
        // and the node was just handed out.
        unsafe {
            match caller {
                Caller::SameLevel(me) if !(needs_checks() | level.has_inbox()) => {
                    let release = needs_release::<B>().then_some(stamp::<B>);
                    if let Some(node) = self.slots().put_in_spare(args, release, core.word_cell(), me) {
                        core.append_own(level, node);
                        return Ok(());
                    }
                    self.append_slow(me, spilled(args, &mut room).cast())
                }
                Caller::OtherLevel(me) => self.call(me, partition, Passed::of(args)),
                Caller::SameLevel(_) | Caller::Foreign => {
                    self.any().release_slow(caller, spilled(args, &mut room))
                }
            }
        }
    }

    /// [`release`](Self::release) from a job of the level that could not take a spare slot.
    ///
    /// # Safety
    /// As for [`release`](Self::release).
    // Separate from the common case, which then joins no other path.
    #[inline(never)]
    unsafe fn append_slow(&'static self, me: CurrentWorker, args: *mut B::Args) -> Result<(), Refusal> {
        let release = needs_release::<B>().then(stamp::<B>);
        // SAFETY: by this function's contract; the level is the partition's, by `new`'s contract,
        // and the node was just handed out.
        unsafe {
            if !is_instrumented::<B>()
                && let Some(node) = self.slots().put_here(args, release)
            {
                B::partition().core().append_own(B::place().0, node);
                return Ok(());
            }
            // There may be a spare that this thread could not take at once.
            self.any().release_slow(Caller::SameLevel(me), args.cast())
        }
    }

    /// [`release`](Self::release) from a thread of the partition that does not run a job of the
    /// level: runs the job as a call, if the level is above the partition's.
    ///
    /// # Safety
    /// As for [`release`](Self::release).
    #[inline]
    unsafe fn call(
        &'static self,
        me: CurrentWorker,
        partition: &'static PartitionState,
        mut args: Passed<B::Args>,
    ) -> Result<(), Refusal> {
        let (core, level, args) = (partition.core(), B::place().0, args.place());
        let mut room = Room::uninit();
        // SAFETY: the level is the partition's, by `new`'s contract; the job is over when this
        // preemption is finished. This thread has joined as `me`, which is its current worker.
        let Some(preemption) = (unsafe { core.preempt_at::<LevelOf<B>>(me, level) }) else {
            // SAFETY: by this function's contract.
            return unsafe { self.queue_slow(me, spilled(args, &mut room).cast()) };
        };
        // Must follow `preempt`: a fault that vacated the level is visible only after it.
        if is_started_instrumented::<B>() {
            let outer = preemption.suspend();
            // SAFETY: `preempt` made this thread occupy the level to run this job; the rest is this
            // function's contract.
            return unsafe { self.any().call_slow(me, spilled(args, &mut room), outer) };
        }
        // SAFETY: as above.
        let end = unsafe {
            execute_plain::<B>(
                &self.monitor,
                me,
                Arguments::at(args.cast()),
                Release::AtStart,
                PackedStamp::UNKNOWN,
                WORD_CHECKS_JOBS,
            )
        };
        if !preemption.finish_at::<LevelOf<B>>(end) {
            // SAFETY: the preemption is of this task's level, and could not be finished.
            unsafe { end_slow(&self.monitor.declared, me, end.into()) };
        }
        Ok(())
    }

    /// [`call`](Self::call) if the job cannot run at once: mostly that of a lower level, which runs
    /// after the calling job.
    ///
    /// # Safety
    /// As for [`release`](Self::release), and the calling thread has joined as `me`.
    #[inline(never)]
    unsafe fn queue_slow(&'static self, me: CurrentWorker, args: *mut B::Args) -> Result<(), Refusal> {
        // SAFETY: by this function's contract; the level is the partition's, by `new`'s contract,
        // and the node was just handed out.
        unsafe {
            if me.running() > B::LEVEL
                && !is_instrumented::<B>()
                && let Some(node) = self.slots().put_from(args, stamp::<B>())
            {
                B::partition().core().spawn(me, B::place().0, node);
                return Ok(());
            }
            self.any().release_slow(Caller::OtherLevel(me), args.cast())
        }
    }

    /// Arms a job for `time`.
    ///
    /// Does not unwind.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    ///
    /// # Safety
    /// As for [`spawn`](Self::spawn).
    #[inline]
    pub unsafe fn spawn_at(
        &'static self,
        time: Instant,
        args: *mut B::Args,
    ) -> Result<SpawnHandle<B::Args>, SpawnError<B::Args>> {
        let unwinding = AbortOnUnwind;
        // SAFETY: the arguments are used again only if this fails.
        let armed = unsafe {
            match self.arm_here(time, args) {
                Some(armed) => Ok(armed),
                None => self.any().arm(time, args.cast_const().cast()),
            }
        };
        if B::PROFILE && armed.is_ok() {
            self.monitor.cells.spawned_in_time();
        }
        core::mem::forget(unwinding);
        match armed {
            Ok(armed) => Ok(SpawnHandle { task: self, armed: Some(armed) }),
            // SAFETY: the arguments are still there.
            Err(refusal) => unsafe {
                refusal.answer(&self.monitor, args, SpawnHandle { task: self, armed: None })
            },
        }
    }

    /// Arms a job for `time`, on a thread of the partition while the app runs; `None` if it has to
    /// be armed in another way, or not at all.
    ///
    /// # Safety
    /// As for [`try_spawn`](Self::try_spawn).
    // Never: the code of a caller with several spawns has more registers.
    #[inline(never)]
    unsafe fn arm_here(&'static self, time: Instant, args: *mut B::Args) -> Option<Armed> {
        let core = B::partition().core();
        // A run that this thread ends is stopping, too.
        if !Host::is_in(B::partition()) || core.is_stopping() {
            return None;
        }
        // SAFETY: by this function's contract.
        let (armed, first) = unsafe { self.slots().arm_unnoted(args, time) }?;
        // One call for both reasons, so that the common case needs no stack.
        let rare = first || core.announce_timer(B::place().0, time);
        Some(if rare { self.note_and_wake(armed, time, first) } else { armed })
    }

    /// Completes an arming: [notes](Slots::note) the job if this is the first change, and wakes the
    /// timekeeper if necessary; returns the job, which the caller then need not save.
    #[inline(never)]
    fn note_and_wake(&'static self, armed: Armed, time: Instant, first: bool) -> Armed {
        if first {
            self.slots().note(armed);
        }
        B::partition().core().armed(B::place().0, time);
        armed
    }

    /// Cancels an armed job on a thread of another partition or app, or on a foreign thread.
    ///
    /// # Safety
    /// As for [`Timed::cancel`].
    #[cold]
    #[inline(never)]
    unsafe fn cancel_foreign(&self, armed: Armed, args: *mut B::Args) -> bool {
        let Some(_visit) = Host::visit(B::partition()) else { return false };
        // SAFETY: by this function's contract, and jobs of this task are armed in its slots.
        unsafe { self.slots().cancel_into(armed, args) }
    }

    /// Arms a job for `after` from now.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    ///
    /// # Safety
    /// As for [`spawn`](Self::spawn).
    #[inline]
    pub unsafe fn spawn_after(
        &'static self,
        after: impl IntoDuration,
        args: *mut B::Args,
    ) -> Result<SpawnHandle<B::Args>, SpawnError<B::Args>> {
        // SAFETY: by this function's contract.
        unsafe { self.spawn_at(self.after(after.into_duration()), args) }
    }
}

/// The operations of a handle on its task, for any task with these arguments.
trait Timed<A>: Sync {
    /// Returns the task's name.
    fn name(&self) -> &'static str;

    /// Returns `duration` from now, by the app's clock.
    fn after(&self, duration: Duration) -> Instant;

    /// Cancels an armed job, and moves its arguments to `args`; returns `false` if it has been
    /// released or cancelled, or was lost with its run.
    ///
    /// # Safety
    /// The job is one of this task, and `args` is valid for writes.
    unsafe fn cancel(&self, armed: Armed, args: *mut A) -> bool;

    /// Moves an armed job; returns `false` if it has been released or cancelled, or was lost with
    /// its run.
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

    unsafe fn cancel(&self, armed: Armed, args: *mut B::Args) -> bool {
        if !Host::is_in(B::partition()) {
            // SAFETY: by this function's contract.
            return unsafe { self.cancel_foreign(armed, args) };
        }
        // SAFETY: by this function's contract, and jobs of this task are armed in its slots. If
        // this thread ends the run, each job is disarmed before its arguments are dropped.
        unsafe { self.slots().cancel_into(armed, args) }
    }

    fn reschedule(&self, armed: Armed, time: Instant) -> bool {
        let Some(_visit) = Host::visit(B::partition()) else { return false };
        let moved = self.slots().reschedule(armed, time);
        if moved {
            B::partition().core.armed(B::place().0, time);
        }
        moved
    }
}

/// A job that will be released, from `spawn_after` or `spawn_at`; `A` are its arguments.
///
/// Dropping the handle has no effect on the job.
pub struct SpawnHandle<A: 'static> {
    task: &'static dyn Timed<A>,
    /// `None` if the app was stopping.
    armed: Option<Armed>,
}

impl<A> SpawnHandle<A> {
    /// Cancels the job.
    ///
    /// Real-time safety: does not allocate, block or enter the kernel.
    ///
    /// # Errors
    /// Returns [`TooLate`] if it has already been released or its run has ended.
    #[inline]
    pub fn cancel(self) -> Result<A, TooLate> {
        let Some(armed) = self.armed else { return Err(TooLate) };
        let mut args = MaybeUninit::<A>::uninit();
        // SAFETY: the task has armed the job, and there is room for the arguments.
        if unsafe { self.task.cancel(armed, args.as_mut_ptr()) } {
            // SAFETY: the arguments have been moved there.
            Ok(unsafe { args.assume_init() })
        } else {
            Err(TooLate)
        }
    }

    /// Moves the job to `after` from now.
    ///
    /// # Errors
    /// Returns [`TooLate`] if it has already been released or its run has ended.
    pub fn reschedule_after(self, after: impl IntoDuration) -> Result<Self, TooLate> {
        let time = self.task.after(after.into_duration());
        self.reschedule_at(time)
    }

    /// Moves the job to another time.
    ///
    /// Real-time safety: enters the kernel if the level's thread must wake earlier for it.
    ///
    /// # Errors
    /// Returns [`TooLate`] if it has already been released or its run has ended.
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
        Some(self.monitor.info())
    }

    fn counters(&self) -> Counters {
        Counters { early: B::interval().map_or(0, Interval::early), ..Counters::default() }
    }

    unsafe fn begin(&self) {
        // SAFETY: no job of the task can run, by this function's contract.
        unsafe { self.monitor.begin() };
    }

    unsafe fn end(&self) -> u32 {
        // SAFETY: no job of the task can run or be spawned, by this function's contract.
        unsafe { release::clear(&self.monitor, &self.slots) }
    }

    unsafe fn report(&self) -> Option<TaskReport> {
        // SAFETY: no job of the task can run, by this function's contract.
        Some(unsafe { self.monitor.report() })
    }
}

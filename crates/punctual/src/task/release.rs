//! Releasing jobs of message tasks, without their types: all but the two paths that a spawn takes
//! most.
//!
//! A message stays where the caller of the spawn has it until it is moved into a slot or read by
//! the job, so this code passes pointers to it. It exists once for all tasks.

use core::mem::{ManuallyDrop, MaybeUninit};

use punctual_core::{Arguments, Armed, CurrentWorker, Instant, Port, Slots};

use crate::cells::Observe;
use crate::model::OnEarly;
use crate::state::partition::PartitionState;
use crate::state::{Host, Platform};
use crate::stop::Culprit;
use crate::task::body::{Release, drop_arguments, stamp_any};
use crate::task::interval::{Claim, Interval};
use crate::task::job::execute_any;
use crate::task::monitor::Monitor;
use crate::task::spawn_error::SpawnError;

/// Why a job is not released. Its arguments are where they were.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    /// Every slot of the task is taken.
    Full,
    /// The app is stopping or not running.
    Stopping,
    /// The task has had as many releases as its `min_interval` allows.
    TooEarly,
}

impl Refusal {
    /// The result of a spawn of the task with this monitor, with the arguments at `args`, or
    /// `dropped` if these have been dropped.
    ///
    /// Does not unwind.
    ///
    /// # Safety
    /// `args` points to arguments of the task, which this moves out or drops.
    #[inline(always)]
    pub(crate) unsafe fn answer<T, A>(
        self,
        monitor: &'static Monitor,
        args: *mut A,
        dropped: T,
    ) -> Result<T, SpawnError<A>> {
        // Large arguments are not passed by value: the result would be another copy of them on the
        // stack.
        // SAFETY: by this function's contract.
        unsafe {
            if const { is_small::<A>() } {
                self.answer_by_value(monitor, args.read()).map(|()| dropped)
            } else if matches!(self, Self::Stopping) && drop_unreleased::<A>(monitor, args) {
                Ok(dropped)
            } else {
                self.error(monitor, args)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn answer_by_value<A>(self, monitor: &'static Monitor, args: A) -> Result<(), SpawnError<A>> {
        let mut args = ManuallyDrop::new(args);
        // SAFETY: the arguments are dropped or moved out once.
        unsafe {
            if matches!(self, Self::Stopping) && drop_unreleased::<A>(monitor, &raw mut *args) {
                Ok(())
            } else {
                self.error(monitor, &raw const *args)
            }
        }
    }

    /// The error with the arguments at `args`.
    ///
    /// # Safety
    /// `args` points to arguments, which are not used again.
    #[inline(always)]
    unsafe fn error<T, A>(self, monitor: &'static Monitor, args: *const A) -> Result<T, SpawnError<A>> {
        // A function for each error: each would have a separate place on the stack of a debug
        // build.
        #[inline]
        unsafe fn with<T, A>(
            error: impl FnOnce(A) -> SpawnError<A>,
            args: *const A,
        ) -> Result<T, SpawnError<A>> {
            // SAFETY: as for `error`.
            Err(error(unsafe { args.read() }))
        }

        // SAFETY: by this function's contract.
        unsafe {
            match self {
                Self::Full => with(|args| SpawnError::Full(args, monitor.declared.full), args),
                Self::Stopping => with(SpawnError::Stopping, args),
                Self::TooEarly => with(SpawnError::TooEarly, args),
            }
        }
    }
}

/// The code that releases a job, in relation to its task.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Caller {
    /// A job of the task's level.
    SameLevel(CurrentWorker),
    /// A thread of the partition that runs a job of another level, or none.
    OtherLevel(CurrentWorker),
    /// Any other thread.
    Foreign,
}

impl Caller {
    /// The calling code, for a task in `partition` at `level`.
    #[inline(always)]
    pub(crate) fn of(partition: &'static PartitionState, level: u8) -> Self {
        if !Host::is_in(partition) {
            return Self::Foreign;
        }
        // SAFETY: this is a thread of the partition. In a process no interrupt handlers exist.
        let (me, running) = unsafe {
            let me = Host::worker();
            (me, if cfg!(feature = "std") { me.running_uninterrupted() } else { me.running() })
        };
        if running == level { Self::SameLevel(me) } else { Self::OtherLevel(me) }
    }
}

/// The slots of any task. Pointers to arguments are to the type of argument of that task.
pub(crate) trait AnySlots: Sync {
    /// See [`Slots::put_from`].
    ///
    /// # Safety
    /// As there.
    unsafe fn put(&self, args: *const (), release: u64) -> Option<u32>;

    /// See [`Slots::arm_from`].
    ///
    /// # Safety
    /// As there.
    unsafe fn arm(&self, args: *const (), time: Instant) -> Option<Armed>;

    /// See [`Slots::reclaim`].
    fn reclaim(&self, partition: &'static PartitionState);

    /// See [`Slots::clear`].
    ///
    /// # Safety
    /// As there.
    unsafe fn clear(&self, each: &mut dyn FnMut(*mut ())) -> u32;
}

impl<A: Send, const N: usize, const W: usize> AnySlots for Slots<A, N, W> {
    unsafe fn put(&self, args: *const (), release: u64) -> Option<u32> {
        // SAFETY: by this function's contract.
        unsafe { self.put_from(args.cast(), release) }
    }

    unsafe fn arm(&self, args: *const (), time: Instant) -> Option<Armed> {
        // SAFETY: by this function's contract.
        unsafe { self.arm_from(args.cast(), time) }
    }

    fn reclaim(&self, partition: &'static PartitionState) {
        // SAFETY: the thread has joined as its current worker.
        unsafe { self.reclaim(partition.core().word_cell(), Host::worker_of(partition)) }
    }

    unsafe fn clear(&self, each: &mut dyn FnMut(*mut ())) -> u32 {
        // SAFETY: by this function's contract.
        unsafe { self.clear(|args| each(args.cast())) }
    }
}

/// A message task without its types.
#[derive(Clone, Copy)]
pub(crate) struct AnyTask {
    pub(crate) monitor: &'static Monitor,
    pub(crate) slots: &'static dyn AnySlots,
}

impl AnyTask {
    fn partition(self) -> &'static PartitionState {
        (self.monitor.declared.partition)()
    }

    fn level(self) -> u8 {
        (self.monitor.declared.place)().0.number()
    }

    /// Releases a job of a task whose early releases wait or are refused.
    ///
    /// # Errors
    /// See [`Refusal`].
    ///
    /// # Safety
    /// As for [`release_slow`](Self::release_slow).
    #[inline(never)]
    pub(crate) unsafe fn release_in_time(
        self,
        interval: &'static Interval,
        on_early: OnEarly,
        args: *mut (),
    ) -> Result<(), Refusal> {
        let (now, claim) = {
            // The releases noted are those of this run.
            let Some(_entry) = Host::enter(self.partition().runtime) else {
                return Err(Refusal::Stopping);
            };
            let now = self.partition().core.port().now();
            (now, interval.claim(now, on_early))
        };
        let Claim::At(time, noted) = claim else {
            interval.count();
            return Err(Refusal::TooEarly);
        };
        let released = if time <= now {
            // SAFETY: by this function's contract.
            unsafe { self.release_slow(Caller::of(self.partition(), self.level()), args) }
        } else if self.partition().runtime.is_stopping() {
            Err(Refusal::Stopping)
        } else {
            // SAFETY: by this function's contract.
            let armed = unsafe { self.arm(time, args) };
            if armed.is_ok() && self.monitor.declared.is_profiled {
                self.monitor.cells.spawned_in_time();
            }
            armed.map(|_| interval.count())
        };
        if released.is_err() {
            interval.withdraw(noted);
        }
        released
    }

    /// Claims a slot by `claim`, which returns `None` if it finds no free bit.
    fn claim<R>(
        self,
        partition: &'static PartitionState,
        claim: impl Fn() -> Option<R>,
    ) -> Result<R, Refusal> {
        let again = || {
            self.slots.reclaim(partition);
            claim()
        };
        claim().or_else(again).ok_or(Refusal::Full)
    }

    /// Arms a job for `time`.
    ///
    /// # Errors
    /// See [`Refusal`].
    ///
    /// # Safety
    /// As for [`AnySlots::arm`].
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn arm(self, time: Instant, args: *const ()) -> Result<Armed, Refusal> {
        let partition = self.partition();
        let core = partition.core();
        let Some(_visit) = Host::visit(partition).filter(|_| !core.is_stopping()) else {
            return Err(Refusal::Stopping);
        };
        // SAFETY: by this function's contract; the arguments are moved once.
        let arm = || unsafe { self.slots.arm(args, time) };
        let armed = self.claim(partition, arm)?;
        core.armed((self.monitor.declared.place)().0, time);
        Ok(armed)
    }

    /// Releases a job, also in an app that is stopping, or whose jobs are marked, or behind jobs
    /// from other threads: as a call if the job can run at once, and otherwise by its level's
    /// queue.
    ///
    /// # Errors
    /// See [`Refusal`].
    ///
    /// # Safety
    /// `args` points to arguments of the task, which are not used again if this succeeds, and
    /// `caller` is the calling code.
    #[inline(never)]
    pub(crate) unsafe fn release_slow(self, caller: Caller, args: *mut ()) -> Result<(), Refusal> {
        let partition = self.partition();
        let (core, level) = (partition.core(), (self.monitor.declared.place)().0);
        if let Caller::OtherLevel(me) = caller
            // SAFETY: the level is the partition's, by the contract of `Task::new`; the job ends
            // before `call_slow` returns.
            && let Some(preemption) = unsafe { core.preempt(me, level) }
        {
            // SAFETY: the preemption is of this task's level; the rest is this function's contract.
            return unsafe { self.call_slow(me, args, preemption.suspend()) };
        }
        let _entry = match caller {
            Caller::Foreign => Some(Host::enter(partition.runtime).ok_or(Refusal::Stopping)?),
            _ if core.is_stopping() => return Err(Refusal::Stopping),
            _ => None,
        };
        let time = stamp_any(self.monitor);
        // SAFETY: by this function's contract; the arguments are moved once.
        let put = || unsafe { self.slots.put(args, time) };
        let node = self.claim(partition, put)?;
        // SAFETY: the level is the partition's, by the contract of `Task::new`, and the node was
        // just handed out. At the same level, this thread runs a job of it.
        unsafe {
            match caller {
                Caller::SameLevel(_) => core.spawn_own(level, node),
                Caller::OtherLevel(me) => core.spawn(me, level, node),
                Caller::Foreign => core.spawn_from_outside(level, node),
            }
        }
        let may_wait_for_idle = match caller {
            Caller::SameLevel(_) => false,
            Caller::OtherLevel(me) => me.running() == 0,
            Caller::Foreign => true,
        };
        if Host::HAS_PRIORITIES && may_wait_for_idle {
            core.boost_for_queued();
        }
        Ok(())
    }

    /// Runs a job as a call in an app that is stopping, or whose jobs are marked, watched or
    /// measured further.
    ///
    /// # Errors
    /// See [`Refusal`].
    ///
    /// # Safety
    /// As for [`release_slow`](Self::release_slow), and a preemption made this thread occupy the
    /// level to run this job, and was suspended.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn call_slow(self, me: CurrentWorker, args: *mut (), outer: u8) -> Result<(), Refusal> {
        let (core, level) = (self.partition().core(), (self.monitor.declared.place)().0);
        // SAFETY: by this function's contract.
        let preemption = unsafe { core.resume(me, level, outer) };
        if core.is_stopping() {
            preemption.finish(None);
            return Err(Refusal::Stopping);
        }
        // SAFETY: this thread occupies the level to run this job, by this function's contract.
        let end = unsafe { execute_any(self.monitor, me, Arguments::at(args), Release::AtStart, None) };
        preemption.finish(end);
        Ok(())
    }
}

/// Room for small arguments.
pub(crate) type Room = MaybeUninit<(usize, usize)>;

/// Returns `true` if arguments are passed in registers.
const fn is_small<A>() -> bool {
    size_of::<A>() <= size_of::<Room>() && align_of::<A>() <= align_of::<Room>()
}

/// The arguments at `args` for a slow path: small ones in `room`, so that the fast paths keep them
/// in registers.
///
/// # Safety
/// `args` points to arguments. At most one of the two places is used afterwards.
#[inline(always)]
pub(crate) unsafe fn spilled<A>(args: *mut A, room: &mut Room) -> *mut () {
    if const { !is_small::<A>() } {
        return args.cast();
    }
    let place = room.as_mut_ptr().cast::<A>();
    // SAFETY: there are arguments, by this function's contract, and there is room for them.
    unsafe { place.copy_from_nonoverlapping(args, 1) };
    place.cast()
}

/// Arguments as a function takes them: small ones by value.
pub(crate) struct Passed<A> {
    large: *mut A,
    small: Room,
}

impl<A> Passed<A> {
    /// The arguments at `args`.
    ///
    /// # Safety
    /// As for [`spilled`].
    #[inline(always)]
    pub(crate) unsafe fn of(args: *mut A) -> Self {
        let mut small = Room::uninit();
        // SAFETY: by this function's contract.
        unsafe { spilled(args, &mut small) };
        Self { large: args, small }
    }

    /// Returns a pointer to the arguments.
    #[inline(always)]
    pub(crate) fn place(&mut self) -> *mut A {
        if const { is_small::<A>() } { self.small.as_mut_ptr().cast() } else { self.large }
    }
}

/// On a thread of an app that is stopping, drops the arguments of a job that was not released, and
/// counts it; `false` if the calling thread is another one. See [`SpawnError`].
///
/// [`Declared::drop`](crate::task::body::Declared) does not serve here: a job of an async task is a
/// poll, and the arguments of its spawn have another type.
///
/// # Safety
/// `args` points to arguments of the task with this monitor, which are not used again if they have
/// been dropped.
#[inline]
unsafe fn drop_unreleased<A>(monitor: &'static Monitor, args: *mut A) -> bool {
    #[cold]
    #[inline(never)]
    unsafe fn any(monitor: &Monitor, args: *mut (), drop: unsafe fn(*mut ())) -> bool {
        let (task, runtime) = (&monitor.declared, monitor.declared.runtime());
        let drops = Host::is_of(runtime);
        if drops {
            runtime.drop_job();
            let unwinding = AbortOnUnwind;
            // SAFETY: as for `drop_unreleased`.
            Host::contained(runtime, Culprit::Argument(task.name), || unsafe { drop(args) });
            core::mem::forget(unwinding);
        }
        drops
    }

    // SAFETY: by this function's contract.
    unsafe { any(monitor, args.cast(), drop_arguments::<A>) }
}

/// Aborts the process if it is dropped: around the code of a spawn, which may have moved the
/// message or not if it unwinds. Only a bug in the executor lets it unwind.
pub(crate) struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // A panic during unwinding aborts.
        panic!("the executor panicked while it released a job");
    }
}

/// Drops the jobs of a task that were never run; returns their number.
///
/// # Safety
/// The slots are those of the task with this monitor, of which no job can run and none can be
/// spawned.
pub(crate) unsafe fn clear(monitor: &Monitor, slots: &dyn AnySlots) -> u32 {
    let (task, runtime) = (&monitor.declared, monitor.declared.runtime());
    let mut drop = |args: *mut ()| {
        // SAFETY: these are arguments of the task, which are not used again.
        Host::contained(runtime, Culprit::Argument(task.name), || unsafe { (task.drop)(args) });
    };
    // SAFETY: by this function's contract.
    unsafe { slots.clear(&mut drop) }
}

//! Tasks bound to an interrupt: released when it is pending, or by `pend`.
//!
//! A source is level-triggered: from the release to the end of the job its interrupt is disabled,
//! and a job that leaves the line raised is released again at once.

use punctual_core::{Arguments, CurrentWorker, Level, PackedStamp, Popped, Preemption, Worker};

use crate::board::port::{self as board, clock};
use crate::model::{OnEarly, OnIdle};
use crate::port::AppPort;
use crate::report::TaskReport;
use crate::state::partition::PartitionState;
use crate::state::runtime::{Counters, Registered, TaskInfo};
use crate::state::source::{INTERRUPTS, Place, Reaction, Source};
use crate::task::body::{Body, Release};
use crate::task::interval::Interval;
use crate::task::job::execute_plain;
use crate::task::message::Task;

/// Generated properties of a bound task in addition to its [`Body`].
pub trait Bound: Body<Args = ()> {
    /// Number of the interrupt.
    const INTERRUPT: u32;
}

/// A task released by an interrupt.
pub struct BoundTask<B: Bound> {
    task: Task<B, 1, 1>,
}

impl<B: Bound> BoundTask<B> {
    /// Creates a task whose node in `level` is `base`.
    ///
    /// # Safety
    /// As for [`Task::new`].
    pub const unsafe fn new(level: &'static Level, base: u32, _: &'static Worker, _: OnIdle) -> Self {
        const { assert!((B::INTERRUPT as usize) < INTERRUPTS, "the number of an interrupt is below 192") };
        // SAFETY: the node is used only by this task and the level belongs to the partition, by
        // this function's contract.
        Self { task: unsafe { Task::new(level, base) } }
    }

    /// Runs `job`.
    ///
    /// # Safety
    /// As for [`Task::run`].
    #[inline]
    pub unsafe fn run(&'static self, me: CurrentWorker, job: Popped, now: PackedStamp) -> PackedStamp {
        // SAFETY: this thread has popped the task's job and occupies the level, by this function's
        // contract.
        unsafe { self.task.run(me, job, now) }
    }

    /// Releases a job, unless one is already waiting.
    #[inline]
    pub fn pend(&'static self) {
        // No free slot means that a job is waiting, which will see everything that this one would
        // have seen.
        self.release_as(B::interval().map(Interval::on_early));
    }

    /// # Safety
    /// The task of `place` is a static one of this type; and as for [`Reaction::take_place`].
    unsafe fn interrupted(place: &Place) {
        // Enabled again after the job has ended. Here, because the number is a constant.
        board::disable(B::INTERRUPT);
        let on_early = B::interval().map(Interval::on_early);
        let at_once = !matches!(on_early, Some(OnEarly::Delay | OnEarly::Reject));
        if at_once && let Some((me, preemption)) = Self::preempt() {
            // SAFETY: as in the module `interrupt`; this interrupt is disabled until the job has
            // ended.
            unsafe { board::unmask() };
            // Must follow `preempt`, as for a spawn.
            let end = match B::partition().core.starts_no_job() {
                true => None,
                // SAFETY: `preempt` made this thread occupy the level to run this job.
                false => unsafe {
                    execute_plain::<B>(
                        &Self::of(place).task.monitor,
                        me,
                        Arguments::none(),
                        Release::AtStart,
                        PackedStamp::UNKNOWN,
                        false,
                    )
                },
            };
            preemption.finish(end);
            return board::mask();
        }
        // SAFETY: by this function's contract.
        unsafe { Self::queue(place, on_early) };
    }

    /// Returns the task of an interrupt.
    ///
    /// # Safety
    /// The task has this type.
    #[inline(always)]
    unsafe fn of(place: &Place) -> &'static Self {
        // SAFETY: by this function's contract.
        unsafe { &*place.task().cast::<Self>() }
    }

    /// Returns the right to run a job at once, without slot and queue, if nothing precedes it.
    #[inline]
    fn preempt() -> Option<(CurrentWorker, Preemption<AppPort>)> {
        let partition = B::partition();
        // SAFETY: this is the handler of an interrupt that is enabled while the app runs, on the
        // only thread of the partition. The level belongs to the partition, by the contract of
        // `Task::new`, and the job ends before the handler returns.
        let (me, preemption) = unsafe {
            let me = partition.enter_idle();
            (me, partition.core().preempt_by_interrupt(me, B::place().0)?)
        };
        Some((me, preemption))
    }

    /// Releases a job from the handler, to be run after the jobs that precede it.
    ///
    /// # Safety
    /// As for [`of`](Self::of).
    #[inline(never)]
    unsafe fn queue(place: &Place, on_early: Option<OnEarly>) {
        // SAFETY: by this function's contract.
        let this = unsafe { Self::of(place) };
        B::partition().core.port().begin_handler();
        // An interrupt cannot be rejected: its line stays raised. It stays disabled until the
        // waiting job has ended.
        let on_early = match on_early {
            Some(OnEarly::Reject) => Some(OnEarly::Delay),
            on_early => on_early,
        };
        this.release_as(on_early);
        // The handler serves a job that is only released.
        if B::partition().core.port().end_handler() && on_early == Some(OnEarly::Delay) {
            clock::alarm(0);
        }
    }

    /// Frees the slot of the arguments, if they are in one.
    ///
    /// # Safety
    /// As for [`Body::free`].
    #[inline(always)]
    pub unsafe fn free(&self, args: Arguments) {
        // SAFETY: by this function's contract.
        unsafe { self.task.free(args) }
    }

    fn release_as(&'static self, on_early: Option<OnEarly>) {
        // SAFETY: there are no arguments to be used again.
        let _ = unsafe { self.task.try_spawn(&mut (), on_early) };
    }

    /// Performs the work that follows each job.
    ///
    /// # Safety
    /// Called at the task's level, while no job of the task runs.
    #[inline]
    pub unsafe fn after_job(&self) {
        board::enable(B::INTERRUPT);
    }
}

impl<B: Bound> Source for BoundTask<B> {
    fn number(&self) -> u32 {
        B::INTERRUPT
    }

    fn partition(&self) -> &'static PartitionState {
        B::partition()
    }

    fn reaction(&'static self) -> Reaction {
        Reaction::of(core::ptr::from_ref(self).cast(), Self::interrupted)
    }
}

impl<B: Bound> Registered for BoundTask<B> {
    unsafe fn begin(&self) {
        // SAFETY: no job of the task can run, by this function's contract.
        unsafe { self.task.begin() };
    }

    unsafe fn end(&self) -> u32 {
        // SAFETY: no job of the task can run and none can be spawned, by this function's contract.
        unsafe { self.task.end() }
    }

    unsafe fn report(&self) -> Option<TaskReport> {
        // SAFETY: no job of the task can run, by this function's contract.
        unsafe { self.task.report() }
    }

    fn info(&'static self) -> Option<TaskInfo> {
        self.task.info()
    }

    fn counters(&self) -> Counters {
        self.task.counters()
    }

    fn source(&'static self) -> Option<&'static dyn Source> {
        Some(self)
    }
}

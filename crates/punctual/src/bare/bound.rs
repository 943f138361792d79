//! Tasks bound to an interrupt: released when it is pending, or by `pend`.
//!
//! Like an interrupt line, a source is level-triggered: from the release to the end of the job its interrupt is disabled, and
//! a job that leaves the line raised is released again at once.

use punctual_core::{CurrentWorker, Level, Stamp, Worker};

use super::board;
use super::report::TaskReport;
use super::runtime::{Registered, TaskInfo};
use crate::model::OnEarly;
use crate::task::body::Body;
use crate::task::interval::Interval;
use crate::task::message::Task;

/// What the generated code says of a bound task besides its [`Body`].
pub trait Bound: Body<Args = ()> {
    /// The number of the interrupt.
    const INTERRUPT: u32;
}

/// What to do about a source that is always ready; an interrupt that stays pending is no more than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnIdle {
    /// Release a job each time.
    Every,
    /// As `Every`.
    Once,
    /// As `Every`.
    Stop,
}

/// An interrupt with a task.
pub trait Source: Sync {
    /// Its number.
    fn number(&self) -> u32;

    /// Releases a job.
    fn release(&'static self);
}

/// A task released by an interrupt.
pub struct BoundTask<B: Bound> {
    task: Task<B, 1, 1>,
}

impl<B: Bound> BoundTask<B> {
    /// A task whose node in `level` is `base`.
    ///
    /// # Safety
    /// As for [`Task::new`].
    pub const unsafe fn new(level: &'static Level, base: u32, _: &'static Worker, _: OnIdle) -> Self {
        // SAFETY: the node is used by this task alone and the level is the partition's, by this function's contract.
        Self { task: unsafe { Task::new(level, base) } }
    }

    /// Runs the job of `node`.
    ///
    /// # Safety
    /// As for [`Task::run`].
    #[inline]
    pub unsafe fn run(&'static self, me: CurrentWorker, node: u32, now: Stamp) -> Stamp {
        // SAFETY: this thread has popped the task's node and occupies the level, by this function's contract.
        unsafe { self.task.run(me, node, now) }
    }

    /// Releases a job, unless one is waiting already.
    #[inline]
    pub fn pend(&'static self) {
        // No free slot means that a job is waiting, which will see whatever this one would have.
        self.release_as(B::interval().map(Interval::on_early));
    }

    fn release_as(&'static self, on_early: Option<OnEarly>) {
        let _ = self.task.release((), on_early, |()| Ok(()));
    }

    /// What has to happen after each job.
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

    fn release(&'static self) {
        // An interrupt cannot be refused: its line stays raised. It stays disabled until the job that waits has ended.
        self.release_as(B::interval().map(|interval| match interval.on_early() {
            OnEarly::Reject => OnEarly::Delay,
            on_early => on_early,
        }));
    }
}

impl<B: Bound> Registered for BoundTask<B> {
    unsafe fn begin(&self) {
        // SAFETY: no job of the task can run, by this function's contract.
        unsafe { self.task.begin() };
    }

    unsafe fn end(&self) -> (Option<TaskReport>, u32) {
        // SAFETY: no job of the task can run and none can be spawned, by this function's contract.
        unsafe { self.task.end() }
    }

    fn info(&'static self) -> Option<TaskInfo> {
        self.task.info()
    }

    fn source(&'static self) -> Option<&'static dyn Source> {
        Some(self)
    }
}

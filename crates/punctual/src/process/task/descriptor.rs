//! Tasks bound to an event source: released when a file descriptor becomes ready, or by `pend`.
//!
//! The descriptor is that of the task's resource, by `AsFd`. It is read at the task's level, after
//! each job, so a job may replace the resource. Readiness is level-triggered, like an interrupt
//! line: a job that does not consume the event is released again immediately. A source at its end
//! has nothing to consume, see [`event_source`](crate::state::source).

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use punctual_core::{Arguments, CurrentWorker, Level, PackedStamp, Popped, Port, Worker};

use crate::model::{OnEarly, OnIdle};
use crate::report::TaskReport;
use crate::state::fault;
use crate::state::notify;
use crate::state::partition::PartitionState;
use crate::state::runtime::{Counters, Registered, TaskInfo};
use crate::state::source::{Idleness, NONE, Source};
use crate::stop::Culprit;
use crate::stop::StopReason;
use crate::task::body::Body;
use crate::task::interval::Interval;
use crate::task::message::Task;

/// Properties of a bound task that the generated code declares in addition to its [`Body`].
pub trait Bound: Body<Args = ()> {
    /// Returns the descriptor of the resource.
    ///
    /// # Safety
    /// The resource is filled and no job of the task runs at the same time.
    unsafe fn fd() -> RawFd;
}

/// A task released by the readiness of a file descriptor.
pub struct BoundTask<B: Bound> {
    task: Task<B, 1, 1>,
    worker: &'static Worker,
    fd: AtomicI32,
    control: AtomicI32,
    ended: AtomicU32,
    idleness: Idleness,
}

impl<B: Bound> BoundTask<B> {
    /// Creates a task whose node in `level` is `base` and whose descriptor `worker` waits for.
    ///
    /// # Safety
    /// As for [`Task::new`]; `worker` is one of the partition's, and no other task uses it.
    pub const unsafe fn new(
        level: &'static Level,
        base: u32,
        worker: &'static Worker,
        on_idle: OnIdle,
    ) -> Self {
        Self {
            // SAFETY: only this task uses the node, and the level is of the task's partition, by
            // this function's contract.
            task: unsafe { Task::new(level, base) },
            worker,
            fd: AtomicI32::new(NONE),
            control: AtomicI32::new(NONE),
            ended: AtomicU32::new(0),
            idleness: Idleness::new(on_idle),
        }
    }

    /// Runs `job`.
    ///
    /// # Safety
    /// As for [`Task::run`].
    #[inline]
    pub unsafe fn run(&'static self, me: CurrentWorker, job: Popped, now: PackedStamp) -> PackedStamp {
        // SAFETY: the job was popped by this thread, which occupies the level, and is this task's,
        // by this function's contract.
        unsafe { self.task.run(me, job, now) }
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

    /// Releases a job, unless one is already waiting.
    #[inline]
    pub fn pend(&'static self) {
        // No free slot means that a job is waiting, which will see the same events. In a stopping
        // app no job is lost, because the event remains.
        self.release_as(B::interval().map(Interval::on_early));
    }

    fn release_as(&'static self, on_early: Option<OnEarly>) {
        // SAFETY: there are no arguments to be used again.
        let _ = unsafe { self.task.try_spawn(&mut (), on_early) };
    }

    /// Updates the descriptor; must be called after each job.
    ///
    /// # Safety
    /// Called at the task's level, while no job of the task runs.
    pub unsafe fn after_job(&self) {
        let before = self.fd();
        // The user's `AsFd` returns the descriptor. SAFETY: no job of the task runs, by this
        // function's contract; the resource is filled, since one has run.
        fault::contained(B::runtime(), Culprit::Handler(B::NAME), || unsafe { self.refresh() });
        // The thread of a polling partition does not enter the kernel, and the waiting thread
        // checks by itself.
        if before != self.fd() && B::partition().core.port().may_sleep() {
            self.interrupt();
        }
        self.ended.fetch_add(1, Ordering::Release);
        B::partition().core.port().wake(self.worker);
    }
}

impl<B: Bound> Source for BoundTask<B> {
    fn partition(&self) -> &'static PartitionState {
        B::partition()
    }

    fn worker(&self) -> &'static Worker {
        self.worker
    }

    fn name(&self) -> &'static str {
        B::NAME
    }

    fn fd(&self) -> RawFd {
        self.fd.load(Ordering::Relaxed)
    }

    unsafe fn refresh(&self) {
        // SAFETY: the resource is filled and no job of the task runs, by this function's contract.
        self.fd.store(unsafe { B::fd() }, Ordering::Relaxed);
    }

    fn set_control(&self, control: RawFd) {
        self.control.store(control, Ordering::Release);
    }

    fn forget(&self) {
        self.fd.store(NONE, Ordering::Relaxed);
    }

    fn control(&self) -> RawFd {
        self.control.load(Ordering::Acquire)
    }

    fn interrupt(&self) {
        notify(self.control());
    }

    fn ended(&self) -> u32 {
        self.ended.load(Ordering::Acquire)
    }

    fn release(&'static self) -> bool {
        let Some(interval) = B::interval() else {
            self.pend();
            return true;
        };
        let is_delaying = || interval.is_delaying(B::partition().core.port().now());
        if is_delaying() {
            return false;
        }
        // An event cannot be rejected: it stays in its source, which stays ready.
        self.release_as(Some(match interval.on_early() {
            OnEarly::Reject => OnEarly::Delay,
            on_early => on_early,
        }));
        !is_delaying()
    }

    fn idleness(&self) -> &Idleness {
        &self.idleness
    }

    fn stop_idle(&self) {
        B::runtime().stop(const { &StopReason::IdleSource(B::NAME) });
    }
}

impl<B: Bound> Registered for BoundTask<B> {
    unsafe fn begin(&self) {
        // A run in virtual time leaves its descriptor, whose number is meaningless in the next run.
        self.forget();
        self.idleness.begin();
        // SAFETY: no job of the task can run, by this function's contract.
        unsafe { self.task.begin() };
    }

    unsafe fn end(&self) -> u32 {
        // SAFETY: no job of the task can run or be spawned, by this function's contract.
        unsafe { self.task.end() }
    }

    unsafe fn report(&self) -> Option<TaskReport> {
        // SAFETY: no job of the task can run, by this function's contract.
        let report = unsafe { self.task.report() };
        report.map(|report| TaskReport { idle_releases: self.idleness.repeated(), ..report })
    }

    fn info(&'static self) -> Option<TaskInfo> {
        self.task.info()
    }

    fn counters(&self) -> Counters {
        Counters { idle_releases: self.idleness.repeated(), ..self.task.counters() }
    }

    fn source(&'static self) -> Option<&'static dyn Source> {
        Some(self)
    }
}

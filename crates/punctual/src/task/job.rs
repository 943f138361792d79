//! Running one job of any kind of task.
//!
//! Only the code on the path of every job exists once per task, where the properties of the task
//! are constants. Everything else exists once, and reads them from
//! [`Declared`](super::body::Declared): generated code has to be small, since each app compiles it.

use core::hint::black_box;

use punctual_core::{Arguments, CurrentWorker, Duration, Instant, PackedStamp, Port, Stamp, WordCell};

use crate::cells::{self, Observe};
use crate::port::{AppPort, Suspensions};
use crate::state::partition::PartitionState;
use crate::state::{Host, Platform};
use crate::stop::Culprit;
use crate::task::body::{Body, Declared, Release, counted, measures, released};
use crate::task::monitor::Monitor;

/// True if the cell of a partition's word fails where jobs are [instrumented](is_instrumented).
pub(super) const WORD_CHECKS_JOBS: bool = <<AppPort as Port>::Word as WordCell>::CHECKS_JOBS;

/// Returns whether a spawn needs further checks: see [`Platform::is_instrumented`].
#[inline(always)]
pub(crate) fn is_instrumented<B: Body>() -> bool {
    Host::is_instrumented(B::runtime(), B::partition())
}

/// Returns whether a job whose start the word has permitted needs further checks.
#[inline(always)]
pub(crate) fn is_started_instrumented<B: Body>() -> bool {
    !WORD_CHECKS_JOBS && is_instrumented::<B>()
}

/// Returns whether a spawned job needs its release time if it runs without further checks.
///
/// With them it does, since the job may be marked in the kernel's trace. Jobs are marked during a
/// whole run or not at all, and a spawn with further checks records the time.
#[inline(always)]
pub(crate) fn needs_release<B: Body>() -> bool {
    measures::<B>() || B::interval().is_some()
}

/// Runs one job that requires only measurements, as checked by [`is_instrumented`]. Unless
/// `is_unchecked`, checks its end; otherwise the caller does.
///
/// # Safety
/// As for [`Body::call`].
// Always: the release is a constant in most callers, and the measurement is out of line.
#[inline(always)]
pub(crate) unsafe fn execute_plain<B: Body>(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: Release,
    now: PackedStamp,
    is_unchecked: bool,
) -> Stamp {
    let (runtime, partition) = (B::runtime(), B::partition());
    // While the execution time passes, others may fail, too: the end of this job is checked before.
    let is_unchecked = is_unchecked && const { B::EXECUTION.as_ticks() == 0 };
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    let call = |release| move || unsafe { B::call(me, release, args) };
    if const { !measures::<B>() } {
        if let Some(interval) = counted::<B>() {
            interval.observe(released(runtime, release, || partition.core.port().stamp()));
        }
        Host::call(runtime, B::NAME, is_unchecked, call(release.unmeasured()));
        Host::spend(partition, me, B::EXECUTION);
        // SAFETY: this thread is still at the task's level, by this function's contract, and `call`
        // has returned.
        return unsafe { B::after(None) };
    }
    let job = Measurement::begin(partition, release, now);
    if let Some(interval) = counted::<B>() {
        interval.observe(released(runtime, release, || job.start));
    }
    Host::call(runtime, B::NAME, is_unchecked, call(job.release));
    Host::spend(partition, me, B::EXECUTION);
    // SAFETY: this thread occupies the task's level, by this function's contract.
    let end = unsafe { job.end(monitor, partition, release) };
    if let Some(interval) = B::interval() {
        // SAFETY: as above.
        unsafe { monitor.cells.show_early(|| interval.early()) };
    }
    // SAFETY: this thread is still at the task's level, by this function's contract, and `call` has
    // returned.
    unsafe { B::after(Some(end)) }
}

/// Runs one job: measures it, marks it in the kernel's trace if requested, and turns a panic into a
/// fault.
///
/// # Safety
/// As for [`Body::call`].
#[cfg(feature = "async")]
#[inline]
pub(crate) unsafe fn execute<B: Body>(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: Release,
    now: PackedStamp,
) -> Stamp {
    if monitor.cells.is_on() {
        // SAFETY: this thread runs this job at the task's level, by this function's contract.
        return unsafe { execute_any(monitor, me, args, release, now.into()) };
    }
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    unsafe { execute_plain::<B>(monitor, me, args, release, now, false) }
}

/// Runs one queued job that requires further checks: [`is_instrumented`] covers all of them. Drops
/// the job if the app aborts.
///
/// # Safety
/// As for [`Body::call`] of the task with this monitor.
#[cold]
#[inline(never)]
pub(crate) unsafe fn execute_flagged(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: Release,
    now: Stamp,
) -> Stamp {
    let (task, runtime) = (&monitor.declared, monitor.declared.runtime());
    if Host::drops_queued(runtime) {
        // SAFETY: the arguments are this job's, by this function's contract, and are not used
        // again.
        Host::contained(runtime, Culprit::Argument(task.name), || unsafe { (task.drop)(args.place()) });
        // SAFETY: they have been dropped, as far as their destructors have allowed.
        unsafe { (task.free)(args) };
        return None;
    }
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    unsafe { execute_any(monitor, me, args, release, now) }
}

/// Checks the end of a job that ran as a call, and ends it, if that was not possible by the cell of
/// the word: jobs of its level are queued, or the cell is flagged.
///
/// # Safety
/// The job was one of `task`, and its preemption could not be
/// [finished](punctual_core::Preemption::finish_at).
#[cold]
#[inline(never)]
pub(crate) unsafe fn end_slow(task: &Declared, me: CurrentWorker, end: PackedStamp) {
    let partition = (task.partition)();
    // SAFETY: by this function's contract.
    let preemption = unsafe { partition.core().reenter(me, (task.place)().0) };
    Host::check_end(partition.runtime, task.name);
    preemption.finish(end.into());
}

/// Runs one job of any task, marked, profiled, shown to a supervisor and guarded as requested.
///
/// # Safety
/// As for [`Body::call`] of the task with this monitor.
#[cold]
#[inline(never)]
pub(crate) unsafe fn execute_any(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: Release,
    now: Stamp,
) -> Stamp {
    if monitor.cells.is_on() {
        // SAFETY: by this function's contract.
        #[cfg(feature = "std")]
        return unsafe { crate::process::task::observed::execute(monitor, me, args, release) };
    }
    // SAFETY: by this function's contract.
    unsafe { measured(monitor, me, args, release, now, Unobserved) }
}

/// What observers of a measured job do. The default methods are those of an unobserved job.
pub(crate) trait JobObserver: Sized {
    /// True if the job is measured even if its task is not.
    const IS_ON: bool;

    /// Called before the job.
    fn begin(&mut self, _release: Instant) {}

    /// Runs the user's function.
    #[inline(always)]
    fn call(&mut self, f: impl FnOnce()) {
        f();
    }

    /// Called when the user's function has returned.
    fn stop(&mut self) {}

    /// Called after the job has been recorded, with `end` as its end.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    unsafe fn end(self, _deadline: Option<Duration>, _suspensions: Suspensions, _end: Instant) {}
}

/// A job without observers.
pub(super) struct Unobserved;

impl JobObserver for Unobserved {
    const IS_ON: bool = false;
}

/// Runs one job of any task, measured if its task is or if it is observed.
///
/// # Safety
/// As for [`Body::call`] of the task with this monitor.
pub(crate) unsafe fn measured(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: Release,
    now: Stamp,
    mut observer: impl JobObserver,
) -> Stamp {
    let (task, partition) = (&monitor.declared, (monitor.declared.partition)());
    let (runtime, port) = (partition.runtime, partition.core.port());
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    let call = |release| move || unsafe { (task.call)(me, release, args) };
    if !task.is_measured && !is_on(&observer) {
        if let Some(interval) = task.counted() {
            interval.observe(released(runtime, release, || port.stamp()));
        }
        Host::call(runtime, task.name, false, call(release.unmeasured()));
        Host::spend(partition, me, task.execution);
        // SAFETY: this thread is still at the task's level, by this function's contract, and `call`
        // has returned.
        return unsafe { (task.after)(None) };
    }
    let mut job = Measurement::begin(partition, release, now.into());
    job.release = released(runtime, release, || job.start);
    if let Some(interval) = task.counted() {
        interval.observe(job.release);
    }
    observer.begin(job.release);
    Host::call(runtime, task.name, false, || observer.call(call(job.release)));
    Host::spend(partition, me, task.execution);
    observer.stop();
    // SAFETY: by this function's contract this thread occupies the task's level.
    unsafe {
        let end = port.stamp();
        let suspensions = job.record(monitor, partition, end);
        observer.end(task.deadline, suspensions, end);
        if let Some(interval) = (task.interval)() {
            monitor.cells.show_early(|| interval.early());
        }
        // This thread is still at the task's level, and `call` has returned.
        (task.after)(Some(end))
    }
}

fn is_on<O: JobObserver>(_: &O) -> bool {
    O::IS_ON
}

/// A running job that is measured.
struct Measurement {
    /// May be before the start of the app, see [`released`], except for a periodic task.
    release: Instant,
    start: Instant,
    /// The execution time of all earlier jobs of the partition, in ns.
    executed: u64,
}

impl Measurement {
    #[inline(always)]
    fn begin(partition: &PartitionState, release: Release, now: PackedStamp) -> Self {
        let start = now.unwrap_or_else(|| partition.core.port().stamp());
        let release = match release {
            Release::AtStart => start,
            Release::At(release) => Instant::from_ticks(release),
        };
        Self { release, start, executed: partition.executed() }
    }

    /// Records the job, which ends at `end`; returns its suspensions.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline(always)]
    unsafe fn record(self, monitor: &Monitor, partition: &PartitionState, end: Instant) -> Suspensions {
        let gross = cells::since(end, self.start);
        let preempted = partition.executed().saturating_sub(self.executed);
        Host::add_executed(partition, self.executed, gross, preempted);
        let suspensions = Host::suspensions(partition, gross, preempted);
        let Self { release, start, .. } = self;
        let job = cells::Job { release, start, gross, preempted, suspensions };
        // SAFETY: by this function's contract.
        unsafe { monitor.cells.record(job, monitor.declared.max_response) };
        suspensions
    }

    /// Records the job, which ends now and was released at `release`; returns its end.
    ///
    /// # Safety
    /// As for [`record`].
    #[inline(always)]
    unsafe fn end(self, monitor: &Monitor, partition: &PartitionState, release: Release) -> Instant {
        let Self { start, executed, .. } = self;
        let end = partition.core.port().stamp();
        // SAFETY: by this function's contract.
        unsafe {
            match release {
                Release::AtStart => record_call(monitor, partition, start, executed, end),
                Release::At(release) => record(monitor, partition, start, executed, end, release),
            }
        }
    }
}

/// Records a job of any task, which was released at `release`, in ns, or if that is earlier, when
/// the app started; `executed` is the partition's execution time at the job's start. Returns `end`,
/// which the caller then need not save.
///
/// # Safety
/// The calling thread occupies the task's level, whose task is measured.
// Takes the parts of a measurement, so that they are in registers, the end not in the one that
// counts shifts. Calls a function only at its end, with the parts in the same registers, so it
// saves and moves no register.
#[inline(never)]
unsafe fn record(
    monitor: &Monitor,
    partition: &PartitionState,
    start: Instant,
    executed: u64,
    end: Instant,
    release: u64,
) -> Instant {
    // SAFETY: by this function's contract.
    unsafe {
        if release >= start.as_ticks() {
            return record_from_release(monitor, partition, start, executed, end);
        }
        record_late(monitor, partition, start, executed, end, release)
    }
}

/// [`record`] of a job that was late.
///
/// # Safety
/// As for [`record`].
// Separate, since it needs the end behind a call. Hides that it returns the argument: the caller
// would save the end instead of jumping here, and so it would for every job.
#[inline(never)]
unsafe fn record_late(
    monitor: &Monitor,
    partition: &PartitionState,
    start: Instant,
    executed: u64,
    end: Instant,
    release: u64,
) -> Instant {
    // SAFETY: by this function's contract.
    unsafe {
        let release = released(partition.runtime, Release::At(release), || start);
        // As in `record_from_release`, except that the job was late.
        let gross = end.as_ticks().wrapping_sub(start.as_ticks());
        if !partition.has_executed(executed) {
            return record_disturbed(monitor, partition, start, executed, end, release);
        }
        if gross > Host::MAX_UNSUSPENDED {
            return record_disturbed(monitor, partition, start, executed, end, release);
        }
        Host::add_executed(partition, executed, gross, 0);
        let job = cells::Job { release, start, gross, preempted: 0, suspensions: Suspensions::NONE };
        monitor.cells.record(job, monitor.declared.max_response);
        black_box(end)
    }
}

/// [`record`] of a job that ran as a call.
///
/// # Safety
/// As for [`record`].
#[inline(never)]
unsafe fn record_call(
    monitor: &Monitor,
    partition: &PartitionState,
    start: Instant,
    executed: u64,
    end: Instant,
) -> Instant {
    // SAFETY: by this function's contract.
    unsafe { record_from_release(monitor, partition, start, executed, end) }
}

/// [`record`] of a job that started at its release.
///
/// # Safety
/// As for [`record`].
#[inline(always)]
unsafe fn record_from_release(
    monitor: &Monitor,
    partition: &PartitionState,
    start: Instant,
    executed: u64,
    end: Instant,
) -> Instant {
    // A huge number if the clock has gone backwards, which `record_disturbed` handles.
    let gross = end.as_ticks().wrapping_sub(start.as_ticks());
    // SAFETY: by this function's contract.
    unsafe {
        // One by one: for a disjunction the compiler computes both conditions.
        if !partition.has_executed(executed) {
            return record_disturbed(monitor, partition, start, executed, end, start);
        }
        if gross > Host::MAX_UNSUSPENDED {
            return record_disturbed(monitor, partition, start, executed, end, start);
        }
        Host::add_executed(partition, executed, gross, 0);
        monitor.cells.record_undisturbed(start, gross, monitor.declared.max_response);
    }
    end
}

/// [`record`] of a job that may have been late, preempted or suspended.
///
/// # Safety
/// As for [`record`].
#[inline(never)]
unsafe fn record_disturbed(
    monitor: &Monitor,
    partition: &PartitionState,
    start: Instant,
    executed: u64,
    end: Instant,
    release: Instant,
) -> Instant {
    // SAFETY: by this function's contract.
    unsafe { Measurement { release, start, executed }.record(monitor, partition, end) };
    black_box(end)
}

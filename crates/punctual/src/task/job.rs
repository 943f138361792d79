//! Running one job of any kind of task.
//!
//! Only the code on the path of every job exists once per task, where the properties of the task
//! are constants. Everything else exists once, and reads them from
//! [`Declared`](super::body::Declared): generated code has to be small, since each app compiles it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_core::{Arguments, CurrentWorker, Duration, Instant, Port, Stamp};

use crate::app::guard;
use crate::app::partition::PartitionState;
use crate::app::runtime::Runtime;
use crate::app::stop::Culprit;
use crate::app::virtual_time;
use crate::app::{fault, forked};
use crate::port::linux::suspension::{self, Suspensions};
use crate::task::body::{Body, counted, measures, released};
use crate::task::monitor::{self, Monitor};

/// Returns whether a spawn needs further checks: see [`Runtime::needs_care`].
#[inline(always)]
pub(crate) fn needs_care<B: Body>() -> bool {
    B::runtime().needs_care()
}

/// Returns whether a spawned job needs its release time if it runs without further checks.
///
/// With them it does, since the job may be marked in the kernel's trace. Jobs are marked during a
/// whole run or not at all, and a spawn with further checks records the time.
#[inline(always)]
pub(crate) fn needs_release<B: Body>() -> bool {
    measures::<B>() || B::interval().is_some()
}

/// Runs one job that requires only measurements, as checked by [`Runtime::needs_care`].
///
/// # Safety
/// As for [`Body::call`].
#[inline]
pub(crate) unsafe fn execute_plain<B: Body>(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: u64,
    now: Stamp,
) -> Stamp {
    let (runtime, partition) = (B::runtime(), B::partition());
    let port = partition.core.port();
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    let call = |release| move || unsafe { B::call(me, release, args) };
    if const { !measures::<B>() } {
        if let Some(interval) = counted::<B>() {
            interval.observe(released(runtime, release, || port.stamp()));
        }
        contain(runtime, B::NAME, call(Instant::from_ticks(release)));
        spend(partition, me, B::EXECUTION);
        // SAFETY: this thread is still at the task's level, by this function's contract, and `call`
        // has returned.
        unsafe { B::after(None) };
        return None;
    }
    let job = Measurement::begin(runtime, partition, release, now);
    if let Some(interval) = counted::<B>() {
        interval.observe(job.release);
    }
    contain(runtime, B::NAME, call(job.release));
    spend(partition, me, B::EXECUTION);
    // SAFETY: this thread occupies the task's level, by this function's contract.
    let end = unsafe { job.end(monitor, partition, B::DEADLINE) }.0;
    // SAFETY: this thread is still at the task's level, by this function's contract, and `call` has
    // returned.
    unsafe { B::after(Some(end)) };
    Some(end)
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
    release: u64,
    now: Stamp,
) -> Stamp {
    if monitor.mark.is_on() {
        // SAFETY: this thread runs this job at the task's level, by this function's contract.
        return unsafe { execute_any(monitor, me, args, release, now) };
    }
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    unsafe { execute_plain::<B>(monitor, me, args, release, now) }
}

/// Runs one queued job, or drops it if the app aborts. One check covers all exceptions.
///
/// `release` reads the time of the job's release. Without further checks it is read only if
/// `needs_release`; otherwise it is 0, and it may not have been recorded.
///
/// # Safety
/// As for [`Body::call`].
#[inline]
pub(crate) unsafe fn execute_queued<B: Body>(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    (release, needs_release): (impl FnOnce() -> u64, bool),
    now: Stamp,
) -> Stamp {
    if B::runtime().needs_care() {
        // SAFETY: this thread runs this job at the task's level, by this function's contract.
        return unsafe { execute_flagged(monitor, me, args, release(), now) };
    }
    let release = if needs_release { release() } else { 0 };
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    unsafe { execute_plain::<B>(monitor, me, args, release, now) }
}

/// # Safety
/// As for [`Body::call`] of the task with this monitor.
#[cold]
#[inline(never)]
unsafe fn execute_flagged(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: u64,
    now: Stamp,
) -> Stamp {
    let (task, runtime) = (&monitor.declared, monitor.declared.runtime());
    if runtime.is_copy() {
        forked::check(runtime);
    }
    if runtime.drops_jobs() {
        // SAFETY: the arguments are this job's, by this function's contract, and are not used
        // again.
        fault::contained(runtime, Culprit::Argument(task.name), || unsafe { (task.drop)(args.place()) });
        // SAFETY: they have been dropped, as far as their destructors have allowed.
        unsafe { (task.free)(args) };
        return None;
    }
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    unsafe { execute_any(monitor, me, args, release, now) }
}

/// Runs one job of any task, marked, profiled, shown to a supervisor and guarded as requested. The
/// cost of the marks is not included in this job's measurements: the clock is read after the first
/// mark and before the second, and again for the next job.
///
/// # Safety
/// As for [`Body::call`] of the task with this monitor.
#[cold]
#[inline(never)]
pub(crate) unsafe fn execute_any(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: u64,
    now: Stamp,
) -> Stamp {
    let partition = (monitor.declared.partition)();
    if !monitor.mark.is_on() {
        // SAFETY: this thread runs this job at the task's level, by this function's contract.
        return unsafe { measured(monitor, me, args, release, now, false) };
    }
    let port = partition.core.port();
    monitor.mark.start(released(partition.runtime, release, || port.stamp()).as_ticks());
    let begun = monitor.beat.get().map(|beat| {
        let start = port.stamp();
        (start, beat.begin(me.thread(), start, partition.executed(), port.may_sleep()))
    });
    let start = begun.as_ref().map(|(start, _)| *start);
    guard::job(&monitor.guard, partition.runtime, monitor.guard_stop, || {
        // SAFETY: this thread runs this job at the task's level, by this function's contract.
        unsafe { measured(monitor, me, args, release, start, true) };
    });
    if let Some((_, begun)) = begun {
        begun.end(partition.executed());
    }
    monitor.mark.end();
    None
}

/// Runs one job of any task, measured if its task is; if `is_marked`, also for the profile, if
/// there is one, and monitored by the guard, if that is on.
///
/// # Safety
/// As for [`Body::call`] of the task with this monitor.
unsafe fn measured(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: u64,
    now: Stamp,
    is_marked: bool,
) -> Stamp {
    let (task, partition) = (&monitor.declared, (monitor.declared.partition)());
    let (runtime, port) = (partition.runtime, partition.core.port());
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    let call = |release| move || unsafe { (task.call)(me, release, args) };
    if !task.is_measured && !is_marked {
        if let Some(interval) = task.counted() {
            interval.observe(released(runtime, release, || port.stamp()));
        }
        contain(runtime, task.name, call(Instant::from_ticks(release)));
        spend(partition, me, task.execution);
        // SAFETY: this thread is still at the task's level, by this function's contract, and `call`
        // has returned.
        unsafe { (task.after)(None) };
        return None;
    }
    let job = Measurement::begin(runtime, partition, release, now);
    if let Some(interval) = task.counted() {
        interval.observe(job.release);
    }
    let mut profiled = if is_marked { monitor.profile.begin(job.release) } else { None };
    let call = call(job.release);
    contain(runtime, task.name, || if is_marked { guard::users_code(call) } else { call() });
    spend(partition, me, task.execution);
    if let Some(profiled) = &mut profiled {
        profiled.stop();
    }
    // SAFETY: by this function's contract this thread occupies the task's level.
    let (end, suspensions) = unsafe { job.end(monitor, partition, task.deadline) };
    if let Some(profiled) = profiled {
        // SAFETY: by this function's contract this thread occupies the task's level.
        unsafe { profiled.record(task.deadline, suspensions.count) };
    }
    // SAFETY: this thread is still at the task's level, by this function's contract, and `call` has
    // returned.
    unsafe { (task.after)(Some(end)) };
    Some(end)
}

/// Runs the user's function, whose panic stops the app.
#[inline(always)]
fn contain(runtime: &'static Runtime, name: &'static str, call: impl FnOnce()) {
    let result = catch_unwind(AssertUnwindSafe(call));
    if result.is_err() || runtime.needs_care() {
        fault::ended(runtime, Culprit::Handler(name), result);
    }
}

/// Lets the declared execution time pass, in virtual time.
#[inline(always)]
fn spend(partition: &'static PartitionState, me: CurrentWorker, execution: Duration) {
    if execution.as_ticks() > 0 && partition.core.port().is_virtual() {
        virtual_time::spend(partition, me, execution);
    }
}

/// A running job that is measured.
struct Measurement {
    release: Instant,
    start: Instant,
    /// The execution time of all earlier jobs of the partition, in ns.
    executed: u64,
}

impl Measurement {
    #[inline(always)]
    fn begin(runtime: &Runtime, partition: &PartitionState, release: u64, now: Stamp) -> Self {
        let start = now.unwrap_or_else(|| partition.core.port().stamp());
        let release = released(runtime, release, || start);
        Self { release, start, executed: partition.executed() }
    }

    /// Records the job, which ends now; returns its end and its suspensions.
    ///
    /// # Safety
    /// The calling thread occupies the task's level.
    #[inline(always)]
    unsafe fn end(
        self,
        monitor: &Monitor,
        partition: &PartitionState,
        deadline: Option<Duration>,
    ) -> (Instant, Suspensions) {
        let port = partition.core.port();
        let end = port.stamp();
        let gross = monitor::since(end, self.start);
        let preempted = partition.executed().saturating_sub(self.executed);
        partition.set_executed(self.executed + gross);
        let suspensions = if gross > suspension::MIN_SWITCH_TIME.as_ticks() && port.may_sleep() {
            // A job that forked took longer than that.
            forked::check(partition.runtime);
            suspension::since(gross.saturating_sub(preempted))
        } else {
            Suspensions::NONE
        };
        let Self { release, start, .. } = self;
        // SAFETY: by this function's contract.
        unsafe { monitor.record(monitor::Job { release, start, end, preempted, suspensions, deadline }) };
        (end, suspensions)
    }
}

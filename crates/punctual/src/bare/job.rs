//! Runs one job of any kind of task.

use punctual_core::{Arguments, CurrentWorker, Instant, Port, Stamp};

use super::monitor::{Job, Monitor};
use super::virtual_time;
use crate::task::body::{Body, counted, measures, released};

// Jobs here have no further options.
pub(crate) use self::execute as execute_plain;

/// Returns whether a spawn needs the slow path, as in an app that is stopping; the task's partition
/// knows that, too.
#[inline(always)]
pub(crate) fn needs_care<B: Body>() -> bool {
    B::partition().core.begins_nothing()
}

/// Returns whether the release time of jobs is needed.
#[inline(always)]
pub(crate) fn needs_release<B: Body>() -> bool {
    measures::<B>() || B::interval().is_some()
}

/// Runs one queued job; `release` reads the time of its release, if `needs_release`.
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
    let release = if needs_release { release() } else { 0 };
    // SAFETY: by this function's contract.
    unsafe { execute::<B>(monitor, me, args, release, now) }
}

/// Runs one job, measured.
///
/// # Safety
/// As for [`Body::call`].
#[inline]
pub(crate) unsafe fn execute<B: Body>(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: u64,
    now: Stamp,
) -> Stamp {
    let partition = B::partition();
    let port = partition.core.port();
    if const { !measures::<B>() } {
        if let Some(interval) = counted::<B>() {
            interval.observe(released(partition.runtime, release, || port.now()));
        }
        // SAFETY: this thread runs this job at the task's level, by this function's contract.
        unsafe { B::call(me, Instant::from_ticks(release), args) };
        virtual_time::spend_declared::<B>(me);
        // SAFETY: this thread is still at the task's level, and `call` has returned.
        unsafe { B::after(None) };
        return None;
    }
    let start = now.unwrap_or_else(|| port.now());
    let release = released(partition.runtime, release, || start);
    if let Some(interval) = counted::<B>() {
        interval.observe(release);
    }
    let executed = partition.executed();
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    unsafe { B::call(me, release, args) };
    virtual_time::spend_declared::<B>(me);
    let end = port.now();
    let gross = end.as_ticks().saturating_sub(start.as_ticks());
    let preempted = partition.executed().saturating_sub(executed);
    partition.add_executed(gross.saturating_sub(preempted));
    let job = Job { release, start, end, preempted, deadline: B::DEADLINE };
    // SAFETY: by this function's contract this thread occupies the task's level.
    unsafe {
        monitor.record(job);
        if let Some(interval) = B::interval() {
            monitor.show_counts(None, Some(interval.early()));
        }
    }
    // SAFETY: this thread is still at the task's level, and `call` has returned.
    unsafe { B::after(Some(end)) };
    Some(end)
}

/// [`execute`] of any task, on the slow paths.
///
/// # Safety
/// As for [`Body::call`] of the task with this monitor.
pub(crate) unsafe fn execute_any(
    monitor: &Monitor,
    me: CurrentWorker,
    args: Arguments,
    release: u64,
    now: Stamp,
) -> Stamp {
    // SAFETY: the function is that of the task; the rest is this function's contract.
    unsafe { (monitor.execute)(monitor, me, args, release, now) }
}

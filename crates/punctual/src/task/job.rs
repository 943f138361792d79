//! Running one job of any kind of task.

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_core::{CurrentWorker, Instant, Port, Stamp};

use crate::app::guard;
use crate::app::stop::{Culprit, StopReason};
use crate::app::virtual_time;
use crate::app::{fault, forked};
use crate::port::linux::suspension::{self, Suspensions};
use crate::task::body::{Body, counted, measures, released};
use crate::task::monitor::{self, Monitor};

/// Whether a spawn has to be looked at further: see [`Runtime::needs_care`].
#[inline(always)]
pub(crate) fn needs_care<B: Body>() -> bool {
    B::runtime().needs_care()
}

/// Whether anybody asks when a job was released. Marks in the kernel's trace may, of any task.
#[inline(always)]
#[expect(clippy::extra_unused_type_parameters, reason = "on a bare board it depends on the task")]
pub(crate) fn needs_release<B: Body>() -> bool {
    true
}

/// Runs one job, of which nothing but measurements is wanted, as [`Runtime::needs_care`] has said.
///
/// # Safety
/// As for [`Body::call`].
#[inline]
pub(crate) unsafe fn execute_plain<B: Body>(
    monitor: &Monitor,
    me: CurrentWorker,
    args: B::Args,
    release: u64,
    now: Stamp,
) -> Stamp {
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    unsafe { measured::<B, false>(monitor, me, args, release, now) }
}

/// Runs one job: measures it, marks it in the kernel's trace if requested, and turns a panic into a fault.
///
/// # Safety
/// As for [`Body::call`].
#[inline]
pub(crate) unsafe fn execute<B: Body>(
    monitor: &Monitor,
    me: CurrentWorker,
    args: B::Args,
    release: u64,
    now: Stamp,
) -> Stamp {
    if monitor.mark.is_on() {
        // SAFETY: this thread runs this job at the task's level, by this function's contract.
        return unsafe { marked::<B>(monitor, me, args, release) };
    }
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    unsafe { measured::<B, false>(monitor, me, args, release, now) }
}

/// [`execute`] for a queued job, which is dropped instead if the app aborts. One check covers all exceptions.
///
/// # Safety
/// As for [`Body::call`].
#[inline]
pub(crate) unsafe fn execute_queued<B: Body>(
    monitor: &Monitor,
    me: CurrentWorker,
    args: B::Args,
    release: u64,
    now: Stamp,
) -> Stamp {
    if B::runtime().needs_care() {
        // SAFETY: this thread runs this job at the task's level, by this function's contract.
        return unsafe { execute_flagged::<B>(monitor, me, args, release, now) };
    }
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    unsafe { measured::<B, false>(monitor, me, args, release, now) }
}

/// # Safety
/// As for [`Body::call`].
#[cold]
#[inline(never)]
unsafe fn execute_flagged<B: Body>(
    monitor: &Monitor,
    me: CurrentWorker,
    args: B::Args,
    release: u64,
    now: Stamp,
) -> Stamp {
    if B::runtime().is_copy() {
        forked::check(B::runtime());
    }
    if B::runtime().drops_jobs() {
        fault::contained(B::runtime(), Culprit::Argument(B::NAME), || drop(args));
        return None;
    }
    // SAFETY: this thread runs this job at the task's level, by this function's contract.
    unsafe { execute::<B>(monitor, me, args, release, now) }
}

/// [`execute`] of a job that is marked, profiled, told a supervisor or guarded. The cost of the marks is in none of this job's
/// measurements: the clock is read after the first and before the second, and again for the next job.
///
/// # Safety
/// As for [`Body::call`].
#[cold]
#[inline(never)]
unsafe fn marked<B: Body>(monitor: &Monitor, me: CurrentWorker, args: B::Args, release: u64) -> Stamp {
    monitor.mark.start(released::<B>(release, || B::partition().core.port().stamp()).as_ticks());
    let begun = monitor.beat.get().map(|beat| {
        let port = B::partition().core.port();
        let start = port.stamp();
        (start, beat.begin(me.thread(), start, B::partition().executed(), port.may_sleep()))
    });
    let start = begun.as_ref().map(|(start, _)| *start);
    guard::job(&monitor.guard, B::runtime(), const { &StopReason::Guard(B::NAME) }, || {
        // SAFETY: this thread runs this job at the task's level, by this function's contract.
        unsafe { measured::<B, true>(monitor, me, args, release, start) };
    });
    if let Some((_, begun)) = begun {
        begun.end(B::partition().executed());
    }
    monitor.mark.end();
    None
}

/// Runs one job, measured; if `PROFILED`, for the profile too, if there is one, and watched by the guard, if that is on.
///
/// # Safety
/// As for [`Body::call`].
#[inline]
unsafe fn measured<B: Body, const PROFILED: bool>(
    monitor: &Monitor,
    me: CurrentWorker,
    args: B::Args,
    release: u64,
    now: Stamp,
) -> Stamp {
    let (runtime, partition) = (B::runtime(), B::partition());
    let port = partition.core.port();
    let body = |release| {
        // SAFETY: this thread runs this job at the task's level, by this function's contract.
        let call = || unsafe { B::call(me, release, args) };
        catch_unwind(AssertUnwindSafe(|| if PROFILED { guard::users_code(call) } else { call() }))
    };
    if !measures::<B>() && !PROFILED {
        if let Some(interval) = counted::<B>() {
            interval.observe(released::<B>(release, || port.stamp()));
        }
        // As below. A closure for both makes a spawn a tenth slower.
        let result = body(Instant::from_ticks(release));
        if result.is_err() || runtime.needs_care() {
            fault::ended(runtime, Culprit::Handler(B::NAME), result);
        }
        if B::EXECUTION.as_ticks() > 0 && port.is_virtual() {
            virtual_time::spend(partition, me, B::EXECUTION);
        }
        // SAFETY: this thread is still at the task's level, by this function's contract, and `call` has returned.
        unsafe { B::after(None) };
        return None;
    }
    let start = now.unwrap_or_else(|| port.stamp());
    let release = released::<B>(release, || start);
    if let Some(interval) = counted::<B>() {
        interval.observe(release);
    }
    let mut profiled = if PROFILED { monitor.profile.begin(release) } else { None };
    let executed = partition.executed();
    let result = body(release);
    if result.is_err() || runtime.needs_care() {
        fault::ended(runtime, Culprit::Handler(B::NAME), result);
    }
    if B::EXECUTION.as_ticks() > 0 && port.is_virtual() {
        virtual_time::spend(partition, me, B::EXECUTION);
    }
    if let Some(profiled) = &mut profiled {
        profiled.stop();
    }
    let end = port.stamp();
    let gross = monitor::since(end, start);
    let preempted = partition.executed().saturating_sub(executed);
    partition.set_executed(executed + gross);
    let suspensions = if gross > suspension::MIN_SWITCH_TIME.as_ticks() && port.may_sleep() {
        // A job that forked took longer than that.
        forked::check(runtime);
        suspension::since(gross.saturating_sub(preempted))
    } else {
        Suspensions::NONE
    };
    let job = monitor::Job { release, start, end, preempted, suspensions, deadline: B::DEADLINE };
    if let Some(profiled) = profiled {
        // SAFETY: by this function's contract this thread occupies the task's level.
        unsafe { profiled.record(B::DEADLINE, suspensions.count) };
    }
    // SAFETY: by this function's contract this thread occupies the task's level.
    unsafe { monitor.record(job) };
    // SAFETY: this thread is still at the task's level, by this function's contract, and `call` has returned.
    unsafe { B::after(Some(end)) };
    Some(end)
}

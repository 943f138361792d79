//! Profiling of one job while it runs.
//!
//! The time between start and end of a job includes other jobs of its partition: those it called,
//! by spawning or waking above its level, and those on other threads that preempted it. To subtract
//! them, each partition accumulates the time that profiled jobs have used. A job that ends adds the
//! time it took, minus the time that others added since its start. So the increase between two
//! readings is the time of the jobs that ran in between, for any nesting and on any thread. A job
//! never starts inside another and ends after it, because levels are vacated in reverse order; so
//! none is counted in part, unless one suspends itself and lower jobs continue during that time.
//!
//! A preemption between reading the clock and reading the account would count a job's time in only
//! one of them. So both are read until the account is the same before and after.
//!
//! The readings themselves are in the account, and not in the time of any job.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use punctual_core::{Duration, Instant, Port};

use super::task::{Ended, TaskProfile};
use crate::cells::recent::Done;
use crate::port::linux::clock;
use crate::state::partition::{PartitionState, ThreadModel};

thread_local! {
    /// The innermost profiled job on this thread; below all jobs, `idle` on its thread.
    static RUNNING: Cell<Option<&'static TaskProfile>> = const { Cell::new(None) };
    /// The thread's CPU time used by jobs that the running job called, in ns.
    static CALLED: Cell<u64> = const { Cell::new(0) };
    /// Time that the running job has waited for locks held on other CPUs, in ns.
    static WAITED: Cell<u64> = const { Cell::new(0) };
    /// Number of resources that the running job holds.
    static HELD: Cell<u32> = const { Cell::new(0) };
    /// Start of the running job.
    static STARTED: Cell<Option<Reading>> = const { Cell::new(None) };
}

/// A time, and the time that profiled jobs of the partition had used by then, in ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) time: Instant,
    used: u64,
}

impl Reading {
    pub(super) fn now(partition: &PartitionState) -> Self {
        let used = || partition.host.used.load(Ordering::Relaxed);
        loop {
            let before = used();
            let time = partition.core.port().now();
            if used() == before {
                return Self { time, used: before };
            }
        }
    }

    /// Returns the time since `earlier`, and the part of it used by other jobs.
    pub(super) fn since(self, earlier: Self) -> (u64, u64) {
        let gross = self.time.as_ticks().saturating_sub(earlier.time.as_ticks());
        (gross, self.used.wrapping_sub(earlier.used))
    }
}

/// A job in progress.
pub(crate) struct ProfiledJob {
    task: &'static TaskProfile,
    release: u64,
    /// Part of the time from the release to the start not taken by jobs and critical sections of
    /// the partition, in ns.
    lateness: u64,
    entered: Reading,
    start: Reading,
    end: Reading,
    /// The thread's CPU time at the start, and since then; `None` on a thread that must not enter
    /// the kernel.
    thread_time: Option<u64>,
    outer: Option<&'static TaskProfile>,
    outer_called: u64,
    outer_waited: u64,
    outer_held: u32,
    outer_started: Option<Reading>,
}

impl ProfiledJob {
    /// Begins a job of `task` that was released at `release`, on the thread that occupies its
    /// level.
    pub(super) fn begin(task: &'static TaskProfile, release: Instant) -> Self {
        let partition = task.partition;
        let entered = Reading::now(partition);
        let (release, start) = (release.as_ticks(), entered.time.as_ticks());
        let waited = partition.host.recent.waited_for(release, start, task.level);
        let lateness = start.saturating_sub(release).saturating_sub(waited);
        let thread_time = partition.core.port().may_sleep().then(clock::thread_cpu_time);
        let (outer, outer_called) = (RUNNING.replace(Some(task)), CALLED.replace(0));
        let (outer_waited, outer_held) = (WAITED.replace(0), HELD.replace(0));
        let start = Reading::now(partition);
        let (end, outer_started) = (start, STARTED.replace(Some(start)));
        Self {
            task,
            release,
            lateness,
            entered,
            start,
            end,
            thread_time,
            outer,
            outer_called,
            outer_waited,
            outer_held,
            outer_started,
        }
    }

    /// Reads the clock at the end of the job.
    pub(crate) fn stop(&mut self) {
        self.end = Reading::now(self.task.partition);
        self.thread_time = self.thread_time.map(|before| clock::thread_cpu_time().saturating_sub(before));
    }

    /// Records the job after [`stop`](Self::stop). It suspended itself `suspensions` times. In the
    /// report it ended at `reported`, slightly later, which determines whether it was late: one run
    /// has one count of misses.
    ///
    /// # Safety
    /// The calling thread occupies the task's level since the job began.
    pub(crate) unsafe fn record(self, deadline: Option<Duration>, suspensions: u64, reported: Instant) {
        let Self { task, entered, start, end, thread_time, .. } = self;
        let partition = task.partition;
        let (gross, others) = end.since(start);
        // The thread's CPU time, without that of the jobs it called.
        let own = thread_time.map(|thread| thread.saturating_sub(CALLED.get()));
        CALLED.set(self.outer_called + thread_time.unwrap_or(0));
        RUNNING.set(self.outer);
        let wall = gross.saturating_sub(others).saturating_sub(WAITED.replace(self.outer_waited));
        STARTED.set(self.outer_started);
        // Not its own count: a section that ends by a panic does not count down at its end.
        HELD.set(self.outer_held);
        let (execution, suspension, outside) = match own {
            // Under the global executor, a job is preempted by threads that are not in its account.
            Some(own) if partition.model == ThreadModel::Anywhere => (own.min(wall), 0, None),
            Some(own) if suspensions > 0 => (own.min(wall), wall.saturating_sub(own), None),
            own => (wall, 0, own.map(|own| wall.saturating_sub(own))),
        };
        let ended = Ended {
            release: self.release,
            lateness: self.lateness,
            // The readings in between are not release jitter.
            start: entered.time.as_ticks(),
            end: end.time.as_ticks(),
            execution,
            suspension,
            suspensions,
            outside,
            is_missed: deadline.is_some_and(|deadline| {
                reported.as_ticks().saturating_sub(self.release) > deadline.as_ticks()
            }),
        };
        // SAFETY: this thread occupies the task's level, by this function's contract.
        unsafe { task.record(ended) };
        let now = Reading::now(partition);
        let (all, others) = now.since(entered);
        let time = all.saturating_sub(others);
        let ceiling = if partition.model == ThreadModel::Polling { u8::MAX } else { 0 };
        partition.host.recent.add(Done {
            end: now.time.as_ticks(),
            time,
            level: task.level,
            ceiling,
            is_job: true,
            is_called: self.outer.is_some(),
        });
        partition.host.used.fetch_add(time, Ordering::Relaxed);
    }
}

/// Returns the profiled job that runs on this thread.
#[inline]
pub(crate) fn running() -> Option<&'static TaskProfile> {
    RUNNING.get()
}

/// Returns the execution time so far of the running job of `task`: the time since its start without
/// other jobs of its partition.
pub(super) fn since_start(task: &TaskProfile) -> Option<u64> {
    let (elapsed, others) = Reading::now(task.partition).since(STARTED.get()?);
    Some(elapsed.saturating_sub(others))
}

/// Adds `time`, in ns, that the running job has waited for a lock held on another CPU.
pub(super) fn waited(time: u64) {
    WAITED.set(WAITED.get() + time);
}

/// Records that the running job has acquired a resource.
pub(super) fn has_got_one() {
    HELD.set(HELD.get() + 1);
}

/// Records that the running job releases a resource.
pub(super) fn gives_up_one() {
    HELD.set(HELD.get().saturating_sub(1));
}

/// Returns whether the running job holds a resource.
pub(super) fn holds_any() -> bool {
    HELD.get() > 0
}

/// Attributes the execution of `f` on this thread to `task`, the profile of `idle`.
pub(super) fn run_as<R>(task: Option<&'static TaskProfile>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<&'static TaskProfile>, u32);
    impl Drop for Restore {
        fn drop(&mut self) {
            RUNNING.set(self.0);
            HELD.set(self.1);
        }
    }
    let _restore = Restore(RUNNING.replace(task), HELD.replace(0));
    f()
}

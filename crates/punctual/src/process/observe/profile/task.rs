//! The figures of a task in a profile.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::Instant;

use super::job::{ProfiledJob, Reading, holds_any};
use crate::cells::Slot;
use crate::cells::recent::Done;
use crate::model::Protocol;
use crate::state::partition::{PartitionState, ThreadModel};

/// Number of previous releases to which minimum distances are stored.
pub(super) const DISTANCES: usize = 8;

/// The profile of a task, or of `idle`. Of a fixed size, allocated before the app starts.
#[derive(Debug)]
pub(crate) struct TaskProfile {
    /// Its index among the tasks.
    index: usize,
    /// 0 for `idle`.
    pub(super) level: u8,
    pub(super) partition: &'static PartitionState,
    figures: UnsafeCell<Figures>,
    /// Spawns by none of the app's jobs: by other threads, `init`, `idle`, or the clock. Written by
    /// any thread.
    by_no_job: AtomicU64,
}

// SAFETY: the figures are used by the thread that occupies the task's level, handed over with the
// level, or for `idle` by its thread; and while no job can run.
unsafe impl Sync for TaskProfile {}

/// Measurements of a task's jobs.
#[derive(Debug, Default, Clone)]
pub(super) struct Figures {
    pub(super) jobs: u64,
    pub(super) execution_max: u64,
    pub(super) execution_min: u64,
    pub(super) response_max: u64,
    pub(super) jitter_max: u64,
    pub(super) lateness_max: u64,
    pub(super) lateness_min: u64,
    pub(super) deadline_misses: u64,
    pub(super) suspension_max: u64,
    pub(super) suspensions_most: u64,
    /// The longest execution of a job on its thread, if known for every job, and the maximum taken
    /// by others from one.
    pub(super) cpu_max: u64,
    pub(super) outside_max: Option<u64>,
    /// The last releases, latest first.
    last: [u64; DISTANCES],
    releases: u64,
    /// By `n`: the minimum time from a release to the one `n + 1` before it.
    pub(super) least: [u64; DISTANCES],
    /// By task.
    pub(super) spawns: Box<[Spawns]>,
    /// For all tasks together.
    pub(super) spawned: PerJob,
    pub(super) spawned_by_no_job: u64,
    /// By resource.
    pub(super) holds: Box<[Holds]>,
}

/// Number of operations of a kind per job.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct PerJob {
    now: u32,
    pub(super) most: u32,
}

/// The spawns of another task by a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spawns {
    pub(super) jobs: PerJob,
    /// The minimum execution of a job before a spawn, in ns.
    pub(super) earliest: u64,
    /// True if a job held a resource then.
    pub(super) in_section: bool,
}

impl Spawns {
    const NONE: Self = Self { jobs: PerJob { now: 0, most: 0 }, earliest: u64::MAX, in_section: false };
}

impl PerJob {
    fn count(&mut self) {
        self.now += 1;
        // Immediately, because `idle` does not end as jobs do.
        self.most = self.most.max(self.now);
    }
}

/// The critical sections of a task by one resource.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Holds {
    pub(super) longest: u64,
    pub(super) locks: PerJob,
    /// True if a job held another resource at the request.
    pub(super) nested: bool,
}

/// A job that has ended. Times in ns.
pub(super) struct Ended {
    pub(super) release: u64,
    /// Part of the time from release to start not taken by jobs and critical sections of the
    /// partition.
    pub(super) lateness: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) execution: u64,
    pub(super) suspension: u64,
    pub(super) suspensions: u64,
    /// Part of the execution used neither by the thread nor by jobs of its partition, if known.
    pub(super) outside: Option<u64>,
    pub(super) is_missed: bool,
}

impl Figures {
    fn new(tasks: usize, resources: usize) -> Self {
        Self {
            execution_min: u64::MAX,
            lateness_min: u64::MAX,
            least: [u64::MAX; DISTANCES],
            spawns: vec![Spawns::NONE; tasks].into(),
            holds: vec![Holds::default(); resources].into(),
            ..Self::default()
        }
    }

    fn record(&mut self, job: &Ended) {
        let response = job.end.saturating_sub(job.release);
        self.jobs += 1;
        self.execution_max = self.execution_max.max(job.execution);
        self.execution_min = self.execution_min.min(job.execution);
        self.response_max = self.response_max.max(response);
        self.jitter_max = self.jitter_max.max(job.start.saturating_sub(job.release));
        self.lateness_max = self.lateness_max.max(job.lateness);
        self.lateness_min = self.lateness_min.min(job.lateness);
        self.deadline_misses += u64::from(job.is_missed);
        self.suspension_max = self.suspension_max.max(job.suspension);
        self.suspensions_most = self.suspensions_most.max(job.suspensions);
        self.cpu_max = self.cpu_max.max(job.execution - job.outside.unwrap_or(0));
        self.outside_max = self.outside_max.max(job.outside);
        self.released(job.release);
        self.spawns.iter_mut().for_each(|spawns| spawns.jobs.now = 0);
        self.spawned.now = 0;
        self.holds.iter_mut().for_each(|holds| holds.locks.now = 0);
    }

    fn released(&mut self, release: u64) {
        let known = DISTANCES.min(self.releases as usize);
        for (least, earlier) in self.least.iter_mut().zip(&self.last[..known]) {
            *least = (*least).min(release.saturating_sub(*earlier));
        }
        self.last.rotate_right(1);
        self.last[0] = release;
        self.releases += 1;
    }
}

impl TaskProfile {
    pub(super) fn new(
        index: usize,
        level: u8,
        partition: &'static PartitionState,
        tasks: usize,
        resources: usize,
    ) -> Self {
        let figures = UnsafeCell::new(Figures::new(tasks, resources));
        Self { index, level, partition, figures, by_no_job: AtomicU64::new(0) }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.level == 0
    }

    /// Counts a spawn of this task by none of the app's jobs.
    pub(super) fn spawned_by_no_job(&self) {
        self.by_no_job.fetch_add(1, Ordering::Relaxed);
    }

    /// # Safety
    /// The calling thread occupies the task's level.
    pub(super) unsafe fn record(&self, job: Ended) {
        // SAFETY: nothing else refers to the figures, by this function's contract.
        unsafe { (*self.figures.get()).record(&job) }
    }

    /// Returns whether a job of `target` that a job of this task spawns runs after it on the same
    /// CPU.
    pub(super) fn runs_before(&self, target: &TaskProfile) -> bool {
        let is_here = std::ptr::eq(self.partition, target.partition);
        is_here && self.partition.model != ThreadModel::Anywhere && self.level >= target.level
    }

    /// Counts a spawn of `target` by the job that runs on this thread, which belongs to this task,
    /// at `when` ns after its start.
    ///
    /// # Safety
    /// It is the [`running`](super::running) one of this thread.
    pub(super) unsafe fn spawned(&self, target: &TaskProfile, when: u64) {
        // SAFETY: the thread runs a job of this task, so it occupies its level; or it is the thread
        // of `idle`.
        let figures = unsafe { &mut *self.figures.get() };
        figures.spawned.count();
        if let Some(spawns) = figures.spawns.get_mut(target.index) {
            spawns.jobs.count();
            spawns.earliest = spawns.earliest.min(when);
            spawns.in_section |= holds_any();
        }
    }

    /// Adds a critical section that began at `start` and ends now; `nested` if it lay inside
    /// another one.
    ///
    /// # Safety
    /// As for [`spawned`](Self::spawned).
    pub(super) unsafe fn held(&self, resource: usize, start: Reading, nested: bool) {
        let now = Reading::now(self.partition);
        let (gross, others) = now.since(start);
        let time = gross.saturating_sub(others);
        if let Some(declared) = self.partition.runtime.host.model.resources.get(resource) {
            // The holder of a resource of several partitions is above all levels.
            let ceiling = if declared.protocol == Protocol::Msrp { u8::MAX } else { declared.ceiling };
            let end = now.time.as_ticks();
            self.partition.host.recent.add(Done {
                end,
                time,
                level: self.level,
                ceiling,
                is_job: false,
                is_called: false,
            });
        }
        // SAFETY: the thread runs a job of this task, so it occupies its level; or it is the thread
        // of `idle`.
        let holds = unsafe { &mut (*self.figures.get()).holds };
        if let Some(holds) = holds.get_mut(resource) {
            holds.longest = holds.longest.max(time);
            holds.locks.count();
            holds.nested |= nested;
        }
    }

    /// Returns the figures.
    ///
    /// # Safety
    /// No job of the task can run.
    pub(super) unsafe fn figures(&self) -> Figures {
        // SAFETY: no thread changes the figures, by this function's contract.
        let figures = unsafe { (*self.figures.get()).clone() };
        Figures { spawned_by_no_job: self.by_no_job.load(Ordering::Relaxed), ..figures }
    }
}

/// Sets the profile of the task with this slot, while no job of the task can run.
///
/// # Safety
/// It lives until the slot is cleared, which is when no job of the task can run anymore.
pub(super) unsafe fn set(slot: &Slot, profile: &TaskProfile) {
    // SAFETY: only this module uses slots of profiles, with this type; the rest is this function's
    // contract.
    unsafe { slot.set(profile) };
}

/// Returns the profile of the task with this slot, if it is profiled. For threads of the app; not
/// valid after the run.
#[inline]
pub(super) fn get(slot: &Slot) -> Option<&'static TaskProfile> {
    // SAFETY: `set` alone sets slots of profiles.
    unsafe { slot.get() }
}

/// Begins a job that was released at `release`, if the task with this slot is profiled.
pub(crate) fn begin(slot: &Slot, release: Instant) -> Option<ProfiledJob> {
    get(slot).map(|task| ProfiledJob::begin(task, release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_minimum_over_releases() {
        let mut figures = Figures::new(0, 0);
        [0, 10, 13, 40, 41].iter().for_each(|&release| figures.released(release));
        assert_eq!(figures.least[..5], [1, 13, 31, 41, u64::MAX]);
    }

    #[test]
    fn release_window_is_bounded_by_history() {
        let mut figures = Figures::new(0, 0);
        (0..100).for_each(|number| figures.released(number * number));
        let expected = std::array::from_fn(|back| (back as u64 + 1).pow(2));
        assert_eq!(figures.least, expected);
    }

    #[test]
    fn counts_findings_per_job() {
        let mut spawns = PerJob::default();
        spawns.count();
        spawns.count();
        spawns.now = 0;
        spawns.count();
        assert_eq!((spawns.now, spawns.most), (1, 2));
    }
}

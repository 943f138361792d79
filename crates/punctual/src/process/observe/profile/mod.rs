//! The profile of a run: observations of jobs for a response-time analysis.
//!
//! Everything is allocated before the app starts; the size depends on the number of tasks and
//! resources. A profiled job takes the slow path of [marked](crate::port::linux::trace_marker)
//! jobs, so other jobs have no overhead. Locks and spawns have no such path: they are measured only
//! in apps whose attribute includes `profile`, and there check a thread-local variable each time.
//!
//! The quantities:
//!
//! * `C` is the time from start to end without that of other jobs of the partition, see [`job`]. It
//!   includes time that the kernel used or gave to other processes; only a trace distinguishes
//!   these. For a job that suspended itself, and under the global executor, `C` is the thread's CPU
//!   time minus that of the jobs it called.
//! * So there are two more figures for a job that can read its thread's CPU time and did not
//!   suspend itself: the CPU time it used, and the difference to `C`, which is the interference by
//!   the rest of the machine.
//! * The lateness of a release is the time from it to the start of the job without the part taken
//!   by jobs and critical sections of the partition, and the kernel's switches to those jobs, see
//!   [`recent`](crate::cells::recent). Under the global executor they also run on other CPUs, and
//!   the lateness is unknown.
//! * Spinning or waiting for a lock held on another CPU is blocking, and not in `C`, if the app has
//!   `profile`.
//! * A suspension is the rest of the time from start to end, for all of the job's suspensions
//!   together.
//! * A job of an async task is a poll; waking the task is a spawn.
//! * Timed spawns do not count as spawns of a job: the clock releases them.
//! * A hold is the time from acquiring a resource to releasing it, without the jobs that ran in
//!   between. A lock by a user at the ceiling's level delays no job, but is measured nevertheless.
//! * The overhead of profiling is included in responses and in no other quantity, except that holds
//!   add to C. It is measured before the run, like the executor's costs, because an app that is not
//!   profiled does not have it.

mod job;
mod lock;
mod task;
mod write;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

pub(crate) use self::job::ProfiledJob;
pub use self::lock::Profiled;
use self::task::TaskProfile;
pub(crate) use self::task::begin;
use crate::cells::Slot;
use crate::port::linux::{interference, stderr};
use crate::report::{Outcome, Report};
use crate::start_error::StartError;
use crate::state::partition::PartitionState;
use crate::state::runtime::{Runtime, TaskInfo};

/// Returns the CPU of a partition, and its costs there.
pub(crate) type CostsOf<'a> = &'a dyn Fn(&PartitionState) -> (Option<usize>, Costs);

/// The profile of a run in progress.
#[derive(Debug)]
pub(crate) struct Profile {
    runtime: &'static Runtime,
    path: PathBuf,
    /// The tasks that have jobs, in order, and then `idle`.
    tasks: Vec<TaskProfile>,
    /// The CPU of each partition, and its costs.
    placements: Vec<(Option<usize>, Costs)>,
    /// Time that the host had taken of each of these CPUs at the start of the run, in ns.
    stolen: Vec<Option<u64>>,
}

impl Profile {
    /// Begins to profile a run before any job can run. `place` is `None` in virtual time.
    pub(crate) fn begin(
        runtime: &'static Runtime,
        path: &Path,
        place: Option<CostsOf<'_>>,
    ) -> Result<Self, StartError> {
        // Before the run: afterwards its figures would be lost.
        punctual_files::check(path)
            .map_err(|error| StartError::Profile { path: path.display().to_string().into(), error })?;
        let (count, resources) = (tasks(runtime).count(), runtime.host.model.resources.len());
        let placements = tasks(runtime).map(|task| (task.level, task.partition)).chain([(0, runtime.home)]);
        let profiles = placements
            .enumerate()
            .map(|(index, (level, partition))| TaskProfile::new(index, level, partition, count, resources));
        let place = |partition: &&'static PartitionState| match place {
            Some(place) => place(partition),
            None => (None, Costs::of_virtual_time()),
        };
        let placements: Vec<(Option<usize>, Costs)> = runtime.partitions.iter().map(place).collect();
        for (partition, (_, costs)) in runtime.partitions.iter().zip(&placements) {
            partition.host.used.store(0, Ordering::Relaxed);
            partition.host.recent.clear(costs.preemption.unwrap_or(0));
        }
        let stolen = stolen(&placements);
        let profile = Self { runtime, path: path.to_owned(), tasks: profiles.collect(), placements, stolen };
        for (slot, task) in slots(runtime).zip(&profile.tasks) {
            // SAFETY: it is cleared when `profile` is dropped or ended, which is when no job can
            // run.
            unsafe { task::set(slot, task) };
        }
        tasks(runtime).for_each(|task| task.cells.mark.set_profiled(true));
        runtime.set_profiles(true);
        Ok(profile)
    }

    /// Writes the profile of a run that has ended. Reports on standard error why it is incomplete,
    /// if it is.
    ///
    /// # Safety
    /// No job of the app can run.
    pub(crate) unsafe fn end(self, report: &Report) {
        // SAFETY: no job can run, by this function's contract.
        let figures: Vec<_> = self.tasks.iter().map(|task| unsafe { task.figures() }).collect();
        let stolen = stolen(&self.placements).into_iter().zip(&self.stolen);
        let stolen: Vec<_> = stolen.map(|(after, before)| after?.checked_sub((*before)?)).collect();
        let text = write::json(self.runtime, &figures, report, &self.placements, &stolen).to_string();
        let path = self.path.display();
        if let Err(error) = punctual_files::write(&self.path, (text + "\n").as_bytes()) {
            return stderr::line(format_args!("the profile could not be written to {path}: {error}"));
        }
        if matches!(report.outcome, Outcome::Panicked { .. }) {
            stderr::line(format_args!("the profile covers only part of a run: {}", report.outcome));
        }
        let unseen = tasks(self.runtime).zip(&figures).filter(|(_, figures)| figures.jobs == 0);
        let unseen: Vec<String> = unseen.map(|(task, _)| format!("`{}`", task.name)).collect();
        if !unseen.is_empty() {
            stderr::line(format_args!(
                "the profile has no data on {}: no job ran; run the app longer, or provide the inputs of the tasks",
                unseen.join(", ")
            ));
        }
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        slots(self.runtime).for_each(|slot| _ = slot.clear());
        tasks(self.runtime).for_each(|task| task.cells.mark.set_profiled(false));
        self.runtime.set_profiles(false);
    }
}

/// Returns the time that the host of a virtual machine has taken of these CPUs since boot, in ns.
fn stolen(placements: &[(Option<usize>, Costs)]) -> Vec<Option<u64>> {
    placements.iter().map(|&(cpu, _)| cpu.and_then(interference::stolen)).collect()
}

/// Runs `f`, which is `idle`.
pub(crate) fn idle<R>(runtime: &'static Runtime, f: impl FnOnce() -> R) -> R {
    job::run_as(task::get(&runtime.host.idle_profile), f)
}

/// Runs `f` with the jobs of a task profiled without an output, and as such a job itself, to
/// measure the overhead of profiling.
///
/// # Safety
/// `slot` and `partition` belong to an app that only this thread runs, with one task.
pub(crate) unsafe fn tried<R>(
    partition: &'static PartitionState,
    slot: &'static Slot,
    f: impl FnOnce() -> R,
) -> R {
    static PROFILE: OnceLock<TaskProfile> = OnceLock::new();
    let resources = partition.runtime.host.model.resources.len();
    let profile = PROFILE.get_or_init(|| TaskProfile::new(0, 1, partition, 1, resources));
    // SAFETY: it is `'static`, and jobs of the task can run only on this thread, by this function's
    // contract.
    unsafe { task::set(slot, profile) };
    // As in a profiled run: jobs and spawns check the app's flag before they check their task's.
    partition.runtime.set_profiles(true);
    let result = job::run_as(Some(profile), f);
    partition.runtime.set_profiles(false);
    slot.clear();
    result
}

/// Returns the time, in ns of its own execution, at which the current job of this thread is about
/// to spawn the task with this slot, if both are profiled and the task will run after it on the
/// same CPU.
#[inline]
pub(crate) fn before_spawn(slot: &Slot) -> Option<u64> {
    let (running, target) = (job::running()?, task::get(slot)?);
    running.runs_before(target).then(|| job::since_start(running))?
}

/// Counts a spawn of the task with this slot, if it is profiled: by the current job of this thread,
/// or by none. `when` is the result of [`before_spawn`].
#[inline]
pub(crate) fn spawned(slot: &Slot, when: Option<u64>) {
    let Some(target) = task::get(slot) else { return };
    match job::running() {
        Some(running) => {
            if running.is_idle() {
                target.spawned_by_no_job();
            }
            // SAFETY: it is the job that runs on this thread.
            unsafe { running.spawned(target, when.unwrap_or(0)) };
        }
        None => target.spawned_by_no_job(),
    }
}

/// Counts a spawn that the clock will carry out.
pub(crate) fn spawned_in_time(slot: &Slot) {
    if let Some(target) = task::get(slot) {
        target.spawned_by_no_job();
    }
}

/// Reports that a requested profile is lost, because the process ends while a job or `idle` is
/// still running.
pub(crate) fn log_losses(runtime: &Runtime) {
    if runtime.profiles() {
        stderr::line(format_args!("no profile is written, since the app did not end"));
    }
}

/// Returns the tasks that have jobs.
fn tasks(runtime: &'static Runtime) -> impl Iterator<Item = TaskInfo> {
    runtime.tasks.iter().filter_map(|task| task.info())
}

/// Returns the slots of these tasks and of `idle`.
fn slots(runtime: &'static Runtime) -> impl Iterator<Item = &'static Slot> {
    tasks(runtime).map(|task| &task.cells.profile).chain([&runtime.host.idle_profile])
}

/// Overhead of the executor and the kernel, in ns; `None` if not applicable. Only tasks can measure
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    /// A timed release: finding the due timer, queueing its job and marking its level as ready.
    pub(crate) release: Option<u64>,
    /// A job without the user's function: occupying its level, measuring it, vacating the level.
    pub(crate) dispatch: Option<u64>,
    /// Raising the level to a ceiling and lowering it again.
    pub(crate) lock: Option<u64>,
    /// The kernel's timer, and its switches to a thread of a higher priority and back.
    pub(crate) preemption: Option<u64>,
    /// Overhead of profiling per job, and the part of it before the job's end, which its response
    /// includes.
    pub(crate) profiling: Option<u64>,
    pub(crate) profiling_before: Option<u64>,
    /// Overhead of measuring a critical section.
    pub(crate) profiling_lock: Option<u64>,
}

impl Costs {
    /// Returns the costs in virtual time, where only declared execution takes time.
    fn of_virtual_time() -> Self {
        let none = Some(0);
        Self {
            release: none,
            dispatch: none,
            lock: none,
            preemption: none,
            profiling: none,
            profiling_before: none,
            profiling_lock: none,
        }
    }
}

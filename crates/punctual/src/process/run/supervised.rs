//! Reports to a supervisor in another process: identity, tasks with their budgets, and running
//! jobs.
//!
//! The supervisor passes the app a file in memory, whose layout is in [`heartbeat`].

use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use punctual_core::heartbeat::{self, Beat, Region};

use super::cpu_clock::CpuClock;
use super::plan::Plan;
use crate::model::{OnBudget, Task};
use crate::port::linux::{fatal_signal, notice};
use crate::state::partition::PartitionState;
use crate::state::runtime::Runtime;

/// Reports of a run to a supervisor; ends when dropped, which is after its threads have ended.
#[derive(Debug)]
pub(super) struct Supervised {
    runtime: &'static Runtime,
    region: Option<&'static Region>,
    /// Answers the supervisor, if tasks have budgets.
    clock: Option<CpuClock>,
    /// Notes for the report.
    notes: Vec<String>,
}

impl Supervised {
    /// Makes the jobs of `runtime`, none of which can run yet, report to a supervisor, if there is
    /// one.
    pub(super) fn begin(runtime: &'static Runtime, plan: &Plan) -> Self {
        let mut supervised = Self { runtime, region: None, clock: None, notes: Vec::new() };
        match region() {
            Ok(Some(region)) => supervised.enter(region, plan),
            Ok(None) => {
                let tasks = runtime.host.model.tasks.iter().filter(|task| task.budget.is_some());
                let names: Vec<_> = tasks.map(|task| format!("`{}`", task.name)).collect();
                if !names.is_empty() {
                    supervised.notes.push(format!(
                        "the budget of {} is not monitored: start the app with `punctual supervise`",
                        names.join(", ")
                    ));
                }
            }
            Err(why) => supervised.warn(format!("the supervisor does not monitor this app: {why}")),
        }
        supervised
    }

    /// Returns the notes for the report.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    fn warn(&mut self, note: String) {
        notice::warn(format_args!("{note}"));
        self.notes.push(note);
    }

    fn enter(&mut self, region: &'static Region, plan: &Plan) {
        let runtime = self.runtime;
        let claim = |from| {
            let state = &region.app.state;
            state.compare_exchange(from, heartbeat::CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        if !claim(heartbeat::UNCLAIMED) && !claim(heartbeat::OVER) {
            return self.warn(
                "the supervisor does not monitor this app: it monitors another one of this process".into(),
            );
        }
        self.region = Some(region);
        let levels: Vec<_> = runtime
            .partitions
            .iter()
            .flat_map(|part| part.core.levels().iter().map(move |level| (*part, level.number())))
            .collect();
        if levels.len() > region.beats.len() || runtime.tasks.len() > region.tasks.len() {
            self.warn(format!(
                "the supervisor monitors only the first {} levels and {} tasks",
                region.beats.len(),
                region.tasks.len()
            ));
        }
        region.app.name.set(runtime.name);
        region.app.process.store(std::process::id(), Ordering::Relaxed);
        region.app.priority.store(plan.highest_priority().into(), Ordering::Relaxed);
        region.app.cpus.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        runtime.partitions.iter().filter_map(|part| plan.cpu(part)).for_each(|cpu| region.app.add_cpu(cpu));
        for (beat, (part, level)) in region.beats.iter().zip(&levels) {
            // The last run may have been of another app.
            beat.end(0);
            beat.partition.store(part.index() as u32, Ordering::Relaxed);
            beat.level.store(u32::from(*level), Ordering::Relaxed);
        }
        let count = self.publish_tasks(region, &levels);
        region.app.tasks.store(count, Ordering::Relaxed);
        region.app.levels.store(levels.len().min(region.beats.len()) as u32, Ordering::Relaxed);
        if runtime.host.model.tasks.iter().any(|task| task.budget.is_some()) {
            self.start_clock(region, plan);
        }
        runtime.set_supervised(true);
        fatal_signal::watch(Some(region));
        region.app.state.store(heartbeat::RUNNING, Ordering::Release);
    }

    fn start_clock(&mut self, region: &'static Region, plan: &Plan) {
        // Above the app, like the supervisor.
        let priority = plan.highest_priority().saturating_add(1).min(99);
        match CpuClock::start(region, plan.background_cpus(), priority) {
            Ok(clock) => self.clock = Some(clock),
            Err(error) => self.warn(format!(
                "budgets are enforced up to a tick of the kernel late: a thread could not be started: {error}"
            )),
        }
    }

    /// Returns the number of tasks.
    fn publish_tasks(&self, region: &'static Region, levels: &[(&'static PartitionState, u8)]) -> u32 {
        let mut count = 0;
        for task in self.runtime.tasks.iter().filter_map(|task| task.info()) {
            let here = |(part, level): &(&'static PartitionState, u8)| {
                std::ptr::eq(*part, task.partition) && *level == task.level
            };
            let beat: Option<&'static Beat> =
                levels.iter().position(here).and_then(|at| region.beats.get(at));
            let (Some(entry), Some(beat)) = (region.tasks.get(count as usize), beat) else { continue };
            let declared = self.runtime.host.model.task(task.name);
            entry.name.set(task.name);
            entry.level.store(task.level.into(), Ordering::Relaxed);
            let budget = declared.map_or(0, budget);
            entry.budget.store(budget, Ordering::Relaxed);
            entry.policy.store(declared.map_or(heartbeat::REPORT, policy), Ordering::Relaxed);
            task.cells.beat.set(beat, count, budget > 0);
            task.cells.mark.set_supervised(true);
            count += 1;
        }
        count
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let Some(region) = self.region else { return };
        self.clock = None;
        for task in self.runtime.tasks.iter().filter_map(|task| task.info()) {
            task.cells.mark.set_supervised(false);
            task.cells.beat.clear();
        }
        self.runtime.set_supervised(false);
        fatal_signal::watch(None);
        region.app.state.store(heartbeat::OVER, Ordering::Release);
    }
}

fn budget(task: &'static Task) -> u64 {
    task.budget.map_or(0, |budget| budget.as_ticks())
}

fn policy(task: &'static Task) -> u32 {
    match task.on_budget {
        Some(OnBudget::Stop) => heartbeat::STOP,
        Some(OnBudget::Kill) => heartbeat::KILL,
        Some(OnBudget::Report) | None => heartbeat::REPORT,
    }
}

/// Returns the memory of the supervisor, if there is one. Mapped once, and never unmapped.
fn region() -> Result<Option<&'static Region>, String> {
    static REGION: OnceLock<Result<Option<&'static Region>, String>> = OnceLock::new();
    REGION
        .get_or_init(|| match std::env::var(heartbeat::VARIABLE) {
            Ok(number) => {
                let map = |fd| map(fd).map_err(|error| format!("descriptor {number}: {error}"));
                number.parse().map_err(|_| format!("`{number}` is no descriptor")).and_then(map).map(Some)
            }
            Err(_) => Ok(None),
        })
        .clone()
}

fn map(fd: RawFd) -> Result<&'static Region, String> {
    // SAFETY: the call takes a number and returns one; for a closed descriptor it returns an error.
    let seals = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
    // A foreign descriptor, in a process that inherited the variable but not the memory, is not
    // such memory.
    if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
        return Err("it is not the memory of a supervisor".into());
    }
    // SAFETY: it is open and of the kind that a supervisor passes to its app, which no other code
    // in this process uses.
    let file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    if length < size_of::<Region>() as u64 {
        return Err("it is of another version".into());
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, of a file that is long enough; it is never unmapped.
    let start = unsafe {
        libc::mmap(std::ptr::null_mut(), size_of::<Region>(), access, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if start == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error().to_string());
    }
    // SAFETY: never unmapped and aligned to a page; the file cannot shrink. Every field is an
    // atomic integer, valid for any value stored by another process.
    let region = unsafe { &*start.cast::<c_void>().cast::<Region>() };
    match region.app.magic.load(Ordering::Relaxed) {
        heartbeat::MAGIC => Ok(region),
        _ => Err("it is of another version".into()),
    }
}

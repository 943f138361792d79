//! The checked task set: all names are resolved and all times are known.

use serde::Deserialize;

use crate::arrival::Stream;
use crate::supply::Supply;
use crate::time::{Nanos, Ratio};

/// Input of the analysis.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct System {
    /// Name of the app.
    pub name: String,
    /// Groups of tasks that share CPUs.
    pub partitions: Vec<Partition>,
    /// Tasks, in source order.
    pub tasks: Vec<Task>,
    /// Shared resources.
    pub resources: Vec<Resource>,
    /// Sources that displace every task of a partition.
    pub interrupts: Vec<Interrupt>,
    /// Cause-effect chains.
    pub chains: Vec<Chain>,
    /// Assumptions in place of unknown values, one sentence each.
    pub assumptions: Vec<String>,
}

/// Dispatching rules of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Executor {
    /// One CPU, preemptive, under the Stack Resource Policy.
    #[default]
    Preemptive,
    /// One CPU and one thread that selects the next job when one ends.
    Polling,
    /// One thread per level, on any of a number of CPUs.
    Global {
        /// Number of CPUs.
        cpus: u64,
    },
}

/// Tasks that share CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Partition {
    /// Name in the source.
    pub name: String,
    /// Dispatching rules.
    pub executor: Executor,
    /// Available part of the CPU.
    pub supply: Supply,
    /// Costs of running jobs.
    pub overheads: Overheads,
    /// Additional costs in the observed run, due to profiling.
    pub profiling: Profiling,
    /// The CPU, if known.
    pub cpu: Option<u32>,
    /// Critical sections of the thread below all levels.
    pub idle_sections: Vec<Section>,
}

/// Overheads of the executor and the kernel, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overheads {
    /// Release of a job by the clock or from outside: an interrupt and a wake-up, above all levels.
    pub release: Nanos,
    /// Start and end of a job, at its level.
    pub dispatch: Nanos,
    /// Lock and unlock of a resource, in addition to its hold.
    pub lock: Nanos,
    /// Loss of a preempted job per preemption.
    pub preemption: Nanos,
}

/// Costs of profiling in ns; zero without a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Profiling {
    /// Cost per job.
    pub job: Nanos,
    /// The part of it that precedes the measured end of the job.
    pub before_end: Nanos,
    /// Cost per hold.
    pub lock: Nanos,
}

/// A task. Times are in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Name in the source.
    pub name: String,
    /// Index of its partition.
    pub partition: usize,
    /// Level; higher is more urgent.
    pub level: u32,
    /// C, the longest execution time of a job.
    pub execution: Nanos,
    /// Own releases, if any; otherwise the task is released by spawns.
    pub arrivals: Option<Stream>,
    /// True if every own release is a spawn by another task of the system. The releases of that
    /// task are then a bound, too.
    pub is_only_spawned: bool,
    /// True if the clock releases the task, so that its period is also the longest time between
    /// releases.
    pub is_periodic: bool,
    /// J, the longest time from the nominal release, at which the response starts, until a job is
    /// ready.
    pub jitter: Nanos,
    /// The part of J that delays every job, and so does not bring jobs closer together.
    pub delay: Nanos,
    /// D, from the nominal release; `None` is never missed.
    pub deadline: Option<Nanos>,
    /// Offset of the first release, if the task is periodic and the offset is known.
    pub offset: Option<Nanos>,
    /// Offset on a clock shared by all tasks that have one, which handles simultaneous releases of
    /// a CPU in one interrupt.
    pub grid: Option<Nanos>,
    /// Critical sections of a job.
    pub sections: Vec<Section>,
    /// Spawns of a job.
    pub spawns: Vec<Spawn>,
    /// Largest total number of spawns per job; `None` if only `spawns` limits it.
    pub most_spawns: Option<u64>,
    /// Self-suspension of a job.
    pub suspension: Option<Suspension>,
    /// Observations of a run.
    pub observed: Observed,
}

/// A critical section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Index of the resource.
    pub resource: usize,
    /// Longest hold without preemption, in ns: with the sections inside it, without spinning.
    pub hold: Nanos,
    /// Largest number per job; 0 if the task accesses the resource without locking it.
    pub times: u64,
    /// Sections of the same job that enclose it.
    pub nesting: Nesting,
}

/// Sections of a job that enclose another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nesting {
    /// The job holds no other resource at the request.
    #[default]
    Outermost,
    /// The job may hold the resource with this index, and those that enclose its sections.
    Inside(usize),
    /// The job may hold any other resource that it locks.
    Unknown,
}

impl Section {
    /// Returns whether the section may lie inside a section of `resource`, given all sections of
    /// the job.
    pub(crate) fn is_inside(&self, resource: usize, all: &[Self]) -> bool {
        self.nesting != Nesting::Outermost && self.enclosing(all)(resource)
    }

    /// Returns [`is_inside`](Self::is_inside) for many resources.
    pub(crate) fn enclosing(&self, all: &[Self]) -> impl Fn(usize) -> bool + use<> {
        // Each resource is visited once: a malformed description may nest in circles.
        let (mut held, mut unknown) = (Vec::new(), Vec::new());
        let mut next = vec![self];
        while let Some(section) = next.pop() {
            match section.nesting {
                Nesting::Unknown => unknown.push(section.resource),
                Nesting::Inside(outer) if !held.contains(&outer) => {
                    held.push(outer);
                    next.extend(all.iter().filter(|it| it.resource == outer));
                }
                _ => {}
            }
        }
        move |resource| held.contains(&resource) || unknown.iter().any(|&within| within != resource)
    }
}

/// Spawns of another task by a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spawn {
    /// Index of the spawned task.
    pub task: usize,
    /// Largest number per job.
    pub most: u64,
    /// Least execution time of a job before its first spawn, in ns; 0 if unknown.
    pub earliest: Nanos,
    /// True if the job may hold a resource at the spawn.
    pub in_section: bool,
}

/// Self-suspension: a job gives up the CPU before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspension {
    /// Longest total per job, in ns.
    pub total: Nanos,
    /// Largest number per job.
    pub times: u64,
}

/// Observed maxima of a run; `None` is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Observed {
    /// Response, from the nominal release to the end, in ns.
    pub response: Option<Nanos>,
    /// Number of jobs.
    pub jobs: Option<u64>,
    /// Number of deadline misses.
    pub misses: Option<u64>,
}

/// Locking protocol of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Within a partition: a hold raises the partition to the ceiling.
    Srp,
    /// Across partitions: a hold, and FIFO spinning for it, raise the partition above all levels.
    Msrp {
        /// Lock group; resources of a group share one lock.
        group: usize,
    },
    /// Across the CPUs of the global executor.
    Pcp,
    /// Access without waiting.
    Unlocked,
}

impl Protocol {
    /// Returns the lock group of a resource of several partitions.
    pub(crate) fn group(self) -> Option<usize> {
        match self {
            Self::Msrp { group } => Some(group),
            _ => None,
        }
    }
}

/// A shared resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Name in the source.
    pub name: String,
    /// Locking protocol.
    pub protocol: Protocol,
    /// Highest level that uses it, by partition.
    pub ceilings: Vec<u32>,
}

/// A source that displaces every task of a partition: an interrupt, or a thread above all workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// Name.
    pub name: String,
    /// Index of the partition.
    pub partition: usize,
    /// Longest displacement per occurrence, in ns.
    pub execution: Nanos,
    /// Arrivals.
    pub arrivals: Stream,
}

/// Propagation of a value from one task to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// Each task runs at its own releases and reads the latest value.
    #[default]
    Sampled,
    /// Each task is spawned by the one before it.
    Spawned,
}

/// A sequence of tasks from cause to effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Name.
    pub name: String,
    /// Indices of the tasks.
    pub tasks: Vec<usize>,
    /// Propagation between the tasks.
    pub link: Link,
    /// Longest allowed reaction time, in ns.
    pub deadline: Option<Nanos>,
}

impl Task {
    /// Returns the part of J that brings jobs closer together: J without the delay that all jobs
    /// share. With an offset all of J counts, because it brings jobs closer to those of other
    /// tasks.
    pub(crate) fn closer(&self) -> Nanos {
        match self.offset {
            None => self.jitter.saturating_sub(self.delay),
            Some(_) => self.jitter,
        }
    }
}

impl System {
    /// Sets the ceiling of every resource to the highest level that uses it in each partition. Call
    /// it after changes of levels or sections.
    pub fn update_ceilings(&mut self) {
        let partitions = self.partitions.len();
        for resource in &mut self.resources {
            resource.ceilings.clear();
            resource.ceilings.resize(partitions, 0);
        }
        for task in &self.tasks {
            for section in &task.sections {
                let ceiling = &mut self.resources[section.resource].ceilings[task.partition];
                *ceiling = (*ceiling).max(task.level);
            }
        }
    }

    /// Returns the system of the observed run, if profiling added to the costs of its jobs.
    #[must_use]
    pub fn of_profiled_run(&self) -> Option<Self> {
        if self.partitions.iter().all(|partition| partition.profiling == Profiling::default()) {
            return None;
        }
        let mut system = self.clone();
        for Partition { overheads, profiling, .. } in &mut system.partitions {
            overheads.dispatch = overheads.dispatch.saturating_add(profiling.job);
            overheads.lock = overheads.lock.saturating_add(profiling.lock);
            *profiling = Profiling::default();
        }
        Some(system)
    }

    /// Scales all execution times and holds by a factor.
    pub fn scale(&mut self, factor: Ratio) {
        let scale = |sections: &mut [Section]| sections.iter_mut().for_each(|s| s.hold = factor.of(s.hold));
        for task in &mut self.tasks {
            task.execution = factor.of(task.execution);
            scale(&mut task.sections);
            task.spawns
                .iter_mut()
                .for_each(|spawn| spawn.earliest = spawn.earliest.min(factor.of(spawn.earliest)));
        }
        for partition in &mut self.partitions {
            scale(&mut partition.idle_sections);
        }
    }

    /// Returns the index of a task by name.
    #[must_use]
    pub fn task(&self, name: &str) -> Option<usize> {
        self.tasks.iter().position(|task| task.name == name)
    }
}

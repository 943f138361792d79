//! A task set that has been checked: all names are resolved, all times are known.

use crate::arrival::Stream;
use crate::supply::Supply;
use crate::time::{Nanos, Ratio};

/// What is analysed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct System {
    /// What the app is called.
    pub name: String,
    /// Where tasks run.
    pub partitions: Vec<Partition>,
    /// In the order of the source.
    pub tasks: Vec<Task>,
    /// What tasks share.
    pub resources: Vec<Resource>,
    /// What displaces every task of a partition.
    pub interrupts: Vec<Interrupt>,
    /// What has to happen one after the other.
    pub chains: Vec<Chain>,
    /// What was not known and has been assumed, in sentences.
    pub assumptions: Vec<String>,
}

/// The rules by which jobs of a partition run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Executor {
    /// One CPU, the highest level first, the Stack Resource Policy.
    #[default]
    Preemptive,
    /// One CPU and one thread: the next job is chosen when one ends.
    Polling,
    /// A thread for each level, on any of so many CPUs.
    Global {
        /// How many.
        cpus: u64,
    },
}

/// Tasks that share CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Partition {
    /// As in the source.
    pub name: String,
    /// How jobs are chosen.
    pub executor: Executor,
    /// How much of the CPU it has.
    pub supply: Supply,
    /// What running jobs costs.
    pub overheads: Overheads,
    /// What jobs cost in addition in the run that was observed, since it was profiled.
    pub profiling: Profiling,
    /// The CPU, where it is known.
    pub cpu: Option<u32>,
    /// Critical sections of the thread below all levels.
    pub idle_sections: Vec<Section>,
}

/// What the executor and the kernel take for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overheads {
    /// To release a job by the clock or from outside: an interrupt and a wake, above all levels.
    pub release: Nanos,
    /// To start and end a job, at its level.
    pub dispatch: Nanos,
    /// To lock and unlock a resource, on top of its hold.
    pub lock: Nanos,
    /// What a preempted job loses to each that preempts it.
    pub preemption: Nanos,
}

/// What profiling a run adds. An app that is not profiled does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Profiling {
    /// To a job.
    pub job: Nanos,
    /// How much of that comes before the end of the job, as its response is measured.
    pub before_end: Nanos,
    /// To a hold.
    pub lock: Nanos,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// As in the source.
    pub name: String,
    /// Index of its partition.
    pub partition: usize,
    /// The higher, the more urgent.
    pub level: u32,
    /// C: the longest execution of a job.
    pub execution: Nanos,
    /// When jobs are released, if that is known of the task itself. Otherwise by its spawns.
    pub arrivals: Option<Stream>,
    /// Whether each of these releases is a spawn by a job of another task of the system, so that those of its callers bound them, too.
    pub is_only_spawned: bool,
    /// Whether the clock releases it, so that its period is the longest time between releases, too.
    pub is_periodic: bool,
    /// J: how late a job may become ready after its nominal release, which its response is measured from.
    pub jitter: Nanos,
    /// How much of J every job is late by at least, so that it does not bring jobs nearer to each other.
    pub delay: Nanos,
    /// D, from the nominal release. None is never missed.
    pub deadline: Option<Nanos>,
    /// When the first release is, if the task is periodic and this is known.
    pub offset: Option<Nanos>,
    /// The same, if one clock releases all tasks that have it, and does by one interrupt what is due at one instant on a CPU.
    pub grid: Option<Nanos>,
    /// When it holds what.
    pub sections: Vec<Section>,
    /// What a job spawns.
    pub spawns: Vec<Spawn>,
    /// How many jobs one job spawns at most in all; `None` is as many as `spawns` allow.
    pub most_spawns: Option<u64>,
    /// How it waits in the middle of a job.
    pub suspension: Option<Suspension>,
    /// What has been seen of it.
    pub observed: Observed,
}

/// A critical section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Index of the resource.
    pub resource: usize,
    /// The longest time that it is held, without preemption.
    pub hold: Nanos,
    /// How often at most in a job; 0 if the task uses the resource without locking it.
    pub times: u64,
}

/// Jobs of another task that a job releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spawn {
    /// Index of the task.
    pub task: usize,
    /// How many at most per job.
    pub most: u64,
    /// How long a job has executed at least before the first; 0 if that is not known.
    pub earliest: Nanos,
    /// Whether it may hold a resource then.
    pub in_section: bool,
}

/// How a job gives up the CPU although it has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspension {
    /// The longest sum over a job.
    pub total: Nanos,
    /// How often at most in a job.
    pub times: u64,
}

/// The largest that was seen in a run; `None` is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Observed {
    /// From the nominal release to the end.
    pub response: Option<Nanos>,
    /// How many jobs.
    pub jobs: Option<u64>,
    /// Deadlines that were missed.
    pub misses: Option<u64>,
}

/// How jobs take turns with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Within a partition: holding it raises the partition to the ceiling.
    Srp,
    /// Across partitions: holding it, and spinning for it in order of arrival, raises the partition above all levels.
    Msrp {
        /// Resources of a group have one lock.
        group: usize,
    },
    /// Across the CPUs of the global executor.
    Pcp,
    /// Nobody waits for it.
    Unlocked,
}

/// What tasks share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// As in the source.
    pub name: String,
    /// How it is locked.
    pub protocol: Protocol,
    /// The highest level that uses it, of each partition.
    pub ceilings: Vec<u32>,
}

/// What displaces every task of a partition: an interrupt, a thread above all workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// What it is called.
    pub name: String,
    /// Index of the partition.
    pub partition: usize,
    /// The longest displacement by one.
    pub execution: Nanos,
    /// How often.
    pub arrivals: Stream,
}

/// How a value gets from one task to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Each task runs when it is released, and reads what was written last.
    Sampled,
    /// Each task is spawned by the one before it.
    Spawned,
}

/// A sequence of tasks from cause to effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// What it is called.
    pub name: String,
    /// Indices of tasks.
    pub tasks: Vec<usize>,
    /// How they hand over.
    pub link: Link,
    /// The longest reaction that is allowed.
    pub deadline: Option<Nanos>,
}

impl Task {
    /// By how much J may bring its jobs nearer to each other: not by what all of them are late by. With an offset all of it counts,
    /// since it brings them nearer to those of other tasks.
    pub(crate) fn closer(&self) -> Nanos {
        match self.offset {
            None => self.jitter.saturating_sub(self.delay),
            Some(_) => self.jitter,
        }
    }
}

impl System {
    /// Sets the ceiling of every resource to the highest level that uses it in each partition. To be called after levels or
    /// sections have been changed.
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

    /// The system as it was in the run that was observed, if profiling that run has added to what jobs cost.
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

    /// Every execution, and every hold with it, by a factor.
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

    /// The task of this name.
    #[must_use]
    pub fn task(&self, name: &str) -> Option<usize> {
        self.tasks.iter().position(|task| task.name == name)
    }
}

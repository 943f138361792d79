//! Contents of an app.

use clap::ValueEnum;
use punctual::model::OnOverrun;

/// Executor of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Executor {
    /// One partition.
    One,
    /// Two partitions.
    Two,
    /// Two partitions, of which one polls.
    Poll,
    /// Global executor.
    Global,
}

impl Executor {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
            Self::Poll => "poll",
            Self::Global => "global",
        }
    }
}

/// App.
#[derive(Debug, Clone)]
pub struct Model {
    /// Seed of the generator.
    pub seed: u64,
    /// Executor.
    pub executor: Executor,
    /// Partition that polls.
    pub(crate) polling: Option<usize>,
    pub(crate) monitored: bool,
    pub(crate) tasks: Vec<Task>,
    pub(crate) resources: Vec<Resource>,
    /// Number of unused local resources.
    pub(crate) unused: usize,
    /// True if `init` has a local resource.
    pub(crate) init_local: bool,
    pub(crate) idle: Option<Idle>,
    pub(crate) hook: Option<Hook>,
}

/// Access to a shared resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Locked,
    LockFree,
    ByReference,
}

#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub(crate) access: Access,
    /// Tasks, by number.
    pub(crate) users: Vec<usize>,
    pub(crate) idle: bool,
    pub(crate) hook: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) kind: Kind,
    pub(crate) level: u8,
    pub(crate) part: usize,
    /// True if it has a local resource from `init`, and one declared in place.
    pub(crate) local: bool,
    pub(crate) in_place: bool,
    /// True if the hook uses its local resource, too.
    pub(crate) hooked: bool,
    /// Execution time in virtual time, in µs.
    pub(crate) execution: u64,
    /// Alternative bodies of a job.
    pub(crate) bodies: Vec<Vec<Step>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Message {
        arguments: usize,
        capacity: u32,
    },
    Periodic {
        period: u64,
        offset: u64,
        on_overrun: OnOverrun,
        /// The number of releases that may wait, with [`OnOverrun::Queue`].
        capacity: u32,
    },
    Bound,
    Async,
    /// Async task that only its level spawns.
    Local,
    /// Handler of the overruns of another task.
    Handler {
        capacity: u32,
    },
}

impl Kind {
    pub(crate) fn is_async(self) -> bool {
        matches!(self, Self::Async | Self::Local)
    }
}

/// Termination of `idle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Returns,
    Waits,
    /// Never ends.
    Stubborn,
}

#[derive(Debug, Clone)]
pub(crate) struct Idle {
    pub(crate) manner: Manner,
    /// True if it has a local resource from `init`, and whether the hook uses it, too.
    pub(crate) local: bool,
    pub(crate) hooked: bool,
    pub(crate) body: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(crate) struct Hook {
    /// True if points are passed while it uses a resource.
    pub(crate) points: bool,
}

/// Step of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Point,
    /// Locks these resources at once and executes the steps. Several are passed by value.
    Lock(Vec<usize>, Vec<Step>),
    /// Uses a resource without a lock.
    Use(usize, Vec<Step>),
    /// Reads a resource that is shared by `&`.
    Inspect(usize),
    /// Uses the local resource, and the one declared in place.
    Local(Vec<Step>),
    InPlace(Vec<Step>),
    /// Keeps a value on the stack.
    Keep(Vec<Step>),
    /// Spawns a local task of the level.
    SpawnLocal(usize),
    /// Waits, in async tasks, optionally with a value across the `await`.
    Wait(Wait, bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Delay,
    /// Until a wake-up.
    Parked,
    /// Until a wake-up, with a time limit.
    Timeout,
    /// Until a descriptor is readable, with a time limit.
    Readable,
    Yield,
    Never,
}

impl Model {
    /// Returns the partition of `idle`.
    pub(crate) fn home(&self) -> usize {
        usize::from(self.polling == Some(0))
    }

    pub(crate) fn parts(&self) -> usize {
        match self.executor {
            Executor::One | Executor::Global => 1,
            Executor::Two | Executor::Poll => 2,
        }
    }

    /// Returns the level to which a lock raises a user of a resource at `level` in `part`; 0 if it
    /// does not raise.
    pub(crate) fn ceiling(&self, resource: usize, part: usize, level: u8) -> u8 {
        /// Level to which locks across partitions raise.
        const TOP: u8 = 28;
        let resource = &self.resources[resource];
        let idle = resource.idle.then_some((self.home(), 0));
        let users = resource.users.iter().map(|&task| (self.tasks[task].part, self.tasks[task].level));
        let users: Vec<(usize, u8)> = users.chain(idle).collect();
        if users.iter().any(|&(other, _)| other != part) {
            return TOP;
        }
        let highest = users.iter().map(|&(_, level)| level).max().unwrap_or(0);
        if highest > level { highest } else { 0 }
    }

    /// Returns true if `idle` and the hook share a value that one of them may change.
    pub(crate) fn in_common(&self) -> bool {
        let both =
            |resource: &Resource| resource.idle && resource.hook && resource.access != Access::ByReference;
        self.resources.iter().any(both) || self.idle.as_ref().is_some_and(|idle| idle.local && idle.hooked)
    }

    /// Returns true if `idle` raises its partition, or holds a resource of other levels of the
    /// global executor.
    pub(crate) fn idle_locks(&self) -> bool {
        let locked = |number: &usize| {
            let resource = &self.resources[*number];
            resource.idle && resource.access == Access::Locked && self.ceiling(*number, self.home(), 0) > 0
        };
        (0..self.resources.len()).any(|number| locked(&number))
    }

    /// Returns the local tasks that a task can spawn.
    pub(crate) fn local_tasks(&self, part: usize, level: u8) -> Vec<usize> {
        let there = |task: &Task| task.kind == Kind::Local && (task.part, task.level) == (part, level);
        (0..self.tasks.len()).filter(|&number| there(&self.tasks[number])).collect()
    }
}

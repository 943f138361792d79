//! What an app consists of.

use std::fmt;
use std::str::FromStr;

/// How its jobs come to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// One partition.
    One,
    /// Two.
    Two,
    /// Two, of which one polls.
    Poll,
    /// Every level by itself.
    Global,
}

impl Executor {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::One, Self::Two, Self::Poll, Self::Global];

    fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
            Self::Poll => "poll",
            Self::Global => "global",
        }
    }
}

impl fmt::Display for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Executor {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|executor| executor.name() == name);
        found.ok_or_else(|| format!("the executor is one, two, poll or global, not `{name}`"))
    }
}

/// An app.
#[derive(Debug, Clone)]
pub struct Model {
    /// What it was made of.
    pub seed: u64,
    /// How its jobs come to run.
    pub executor: Executor,
    /// The partition that polls.
    pub(crate) polling: Option<usize>,
    pub(crate) monitored: bool,
    pub(crate) tasks: Vec<Task>,
    pub(crate) resources: Vec<Resource>,
    /// Local resources that nobody uses.
    pub(crate) unused: usize,
    /// Whether `init` has a local of its own.
    pub(crate) init_local: bool,
    pub(crate) idle: Option<Idle>,
    pub(crate) hook: Option<Hook>,
}

/// How a shared resource is used.
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
    /// Whether it has a local resource from `init`, and one declared in place.
    pub(crate) local: bool,
    pub(crate) in_place: bool,
    /// Whether the hook uses its local resource, too.
    pub(crate) hooked: bool,
    /// In virtual time, in µs.
    pub(crate) execution: u64,
    /// What a job does; it does one of these.
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
        overrun: Overrun,
    },
    Bound,
    Async,
    /// An async task that its level alone spawns.
    Local,
    /// What the overruns of another task release.
    Handler {
        capacity: u32,
    },
}

impl Kind {
    pub(crate) fn is_async(self) -> bool {
        matches!(self, Self::Async | Self::Local)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overrun {
    Skip,
    Queue(u32),
    Stop,
    /// The task of this number.
    Task(usize),
}

/// How `idle` comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Returns,
    Waits,
    /// Never.
    Stubborn,
}

#[derive(Debug, Clone)]
pub(crate) struct Idle {
    pub(crate) manner: Manner,
    /// Whether it has a local resource from `init`, and whether the hook uses that, too.
    pub(crate) local: bool,
    pub(crate) hooked: bool,
    pub(crate) body: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(crate) struct Hook {
    /// Whether anything may happen while it has a resource.
    pub(crate) points: bool,
}

/// A step of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Point,
    /// Locks these resources, all at once, and does something meanwhile. Several are given away by that.
    Lock(Vec<usize>, Vec<Step>),
    /// Uses a resource without a lock.
    Use(usize, Vec<Step>),
    /// Looks at a resource that everybody may look at.
    Look(usize),
    /// Uses the local resource, and the one declared in place.
    Local(Vec<Step>),
    InPlace(Vec<Step>),
    /// Keeps something on the stack.
    Keep(Vec<Step>),
    /// Spawns a local task of the level.
    SpawnLocal(usize),
    /// Of async tasks: waits, and keeps something meanwhile or not.
    Wait(Wait, bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Delay,
    /// Until somebody wakes it.
    Parked,
    /// The same, but not for ever.
    Timeout,
    /// Until something can be read, but not for ever.
    Readable,
    Yield,
    Never,
}

impl Model {
    /// The partition of `idle`.
    pub(crate) fn home(&self) -> usize {
        usize::from(self.polling == Some(0))
    }

    pub(crate) fn parts(&self) -> usize {
        match self.executor {
            Executor::One | Executor::Global => 1,
            Executor::Two | Executor::Poll => 2,
        }
    }

    /// What a user of a resource at `level` in `part` is raised to by locking it; 0 if it is high enough.
    pub(crate) fn ceiling(&self, resource: usize, part: usize, level: u8) -> u8 {
        /// What locks between partitions raise to.
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

    /// Whether `idle` and the hook have something in common that one of them may change.
    pub(crate) fn in_common(&self) -> bool {
        let both =
            |resource: &Resource| resource.idle && resource.hook && resource.access != Access::ByReference;
        self.resources.iter().any(both) || self.idle.as_ref().is_some_and(|idle| idle.local && idle.hooked)
    }

    /// Whether `idle` raises its partition, or holds what it shares with others of the global executor.
    pub(crate) fn idle_locks(&self) -> bool {
        let locked = |number: &usize| {
            let resource = &self.resources[*number];
            resource.idle && resource.access == Access::Locked && self.ceiling(*number, self.home(), 0) > 0
        };
        (0..self.resources.len()).any(|number| locked(&number))
    }

    /// Local tasks that a task can spawn.
    pub(crate) fn local_tasks(&self, part: usize, level: u8) -> Vec<usize> {
        let there = |task: &Task| task.kind == Kind::Local && (task.part, task.level) == (part, level);
        (0..self.tasks.len()).filter(|&number| there(&self.tasks[number])).collect()
    }
}

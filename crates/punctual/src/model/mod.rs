//! The declarations of an app, as data: the input of a response-time analysis.
//!
//! The attribute generates it as `app::MODEL`. It contains everything that the analysis can know
//! before the app has run: the releases of each task and their rates, its level and partition, the
//! users of each resource, and the protocol that protects it. Execution times are measured, or
//! known from other sources.
//!
//! With the environment variable `PUNCTUAL_MODEL=FILE`, an app writes its model into that file as
//! JSON, and ends before `init`.
//!
//! A task removed by a `#[cfg]` is not in the model; but ceilings include all tasks in the source,
//! because the app runs with these.
//!
//! ```
//! #[punctual::app(main = false)]
//! mod app {
//!     use punctual::prelude::*;
//!
//!     #[shared]
//!     struct Shared {
//!         count: u32,
//!     }
//!
//!     #[local]
//!     struct Local {}
//!
//!     #[init]
//!     fn init(_: init::Context) -> (Shared, Local) {
//!         (Shared { count: 0 }, Local {})
//!     }
//!
//!     #[task(priority = 2, period = 10.millis(), shared = [count])]
//!     fn sample(_: sample::Context) {}
//!
//!     #[task(priority = 1, shared = [count])]
//!     fn print(_: print::Context, count: u32) {
//!         println!("{count}");
//!     }
//! }
//!
//! use punctual::Duration;
//! use punctual::model::{Access, Kind, Protocol};
//!
//! let sample = app::MODEL.task("sample").unwrap();
//! assert_eq!((sample.kind, sample.level), (Kind::Periodic, 2));
//! assert_eq!(sample.deadline, Some(Duration::from_millis(10)), "the period, unless there is another");
//! assert_eq!(sample.uses[0].access, Access::Exclusive, "it has the level of the ceiling");
//! assert_eq!((app::MODEL.resources[0].ceiling, app::MODEL.resources[0].protocol), (2, Protocol::Srp));
//! ```

use punctual_core::Duration;

/// Declarations of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Model {
    /// The name of the app's module.
    pub app: &'static str,
    /// The partitions, in order of declaration. An app without named partitions has one, `main`;
    /// under the global executor it is `global`.
    pub partitions: &'static [Partition],
    /// The tasks, in order of declaration.
    pub tasks: &'static [Task],
    /// The shared resources, in order of declaration.
    pub resources: &'static [Resource],
    /// `idle`, if there is one.
    pub idle: Option<Idle>,
}

/// The tasks that share a CPU; under the global executor, all tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partition {
    /// Its name.
    pub name: &'static str,
    /// Its executor.
    pub executor: Executor,
    /// Its CPU, if declared. [`Config::cpu`](crate::Config::cpu) and `PUNCTUAL_CPU` may have
    /// selected another.
    pub cpu: Option<usize>,
}

/// Scheduling of a partition's jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Executor {
    /// Fixed priorities, preemptive, on one CPU.
    Preemptive,
    /// Fixed priorities on one CPU, by a thread that checks for releases only between jobs: a job
    /// is preempted by the jobs it spawns, and by no others.
    Polling,
    /// Fixed priorities, preemptive, on every CPU.
    Global,
}

/// A task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// Its name.
    pub name: &'static str,
    /// Kind of its releases.
    pub kind: Kind,
    /// The name of its partition.
    pub partition: &'static str,
    /// Its level, from 1 to 28; higher preempts lower.
    pub level: u8,
    /// The time between two releases of a periodic task.
    pub period: Option<Duration>,
    /// The external clock that the grid of a periodic task follows, as spelled in the source. The
    /// distance between two releases then deviates by up to 0.1 % from the period.
    pub clock: Option<&'static str>,
    /// The time from the origin of the periodic grids to the first release of a periodic task; for
    /// a task with a `clock`, to its releases from the multiples of the period on that clock.
    pub offset: Option<Duration>,
    /// The time from release to completion; for a periodic task its period by default.
    pub deadline: Option<Duration>,
    /// The length of a window with at most [`burst`](Self::burst) releases, if the task declares
    /// one.
    pub min_interval: Option<Duration>,
    /// The largest number of releases in any window of [`min_interval`](Self::min_interval), if
    /// there is one.
    pub burst: Option<u16>,
    /// The number of jobs that may wait, in addition to the running one.
    pub capacity: u16,
    /// Policy for a release of a periodic task while its previous job is unfinished.
    pub on_overrun: Option<OnOverrun>,
    /// Policy for an early release of a task with a [`min_interval`](Self::min_interval).
    pub on_early: Option<OnEarly>,
    /// The maximum CPU time of a job, if the task declares it.
    pub budget: Option<Duration>,
    /// Reaction of a supervisor to a job that exceeds its [`budget`](Self::budget), if there is
    /// one.
    pub on_budget: Option<OnBudget>,
    /// The shared resources it uses.
    pub uses: &'static [Use],
}

/// Kind of a task's releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The clock.
    Periodic,
    /// `spawn`, `spawn_after` or `spawn_at`.
    Message,
    /// An event source, and `pend`.
    Bound,
    /// `spawn`, and then the events it awaits; a job is a poll.
    Async,
}

/// Policy for a release while the previous job is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnOverrun {
    /// It is skipped.
    Skip,
    /// It waits, up to the task's capacity of unfinished jobs; above that, it is skipped.
    Queue,
    /// It is skipped, and the app stops.
    Stop,
    /// It is skipped, and this task is spawned.
    Task(&'static str),
}

impl OnOverrun {
    /// Returns the spelling of the attribute, and of the model as a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Stop => "stop",
            Self::Task(name) => name,
        }
    }
}

/// Policy for an early release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnEarly {
    /// It is counted.
    Count,
    /// It is counted, and delayed until the task may be released.
    Delay,
    /// It is counted, and rejected.
    Reject,
}

/// Reaction of a supervisor in another process to a job that has used more CPU time than its
/// budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnBudget {
    /// It reports the job, with its stack.
    Report,
    /// It reports it and asks the app to stop, and kills the process if that takes too long.
    Stop,
    /// It reports it and kills the process.
    Kill,
}

/// The use of a resource by a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Use {
    /// The name of the resource.
    pub resource: &'static str,
    /// Kind of access.
    pub access: Access,
}

/// Access of a user to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// By a lock, which prevents other users from running or makes them wait.
    Lock,
    /// Exclusive: no other user can run at the same time, so a lock has no effect.
    Exclusive,
    /// By a shared reference.
    Shared,
}

/// A shared resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource {
    /// Its name.
    pub name: &'static str,
    /// The highest level of its users; 0 if only `idle` uses it, or no task.
    pub ceiling: u8,
    /// The protocol that excludes its users from each other.
    pub protocol: Protocol,
    /// The group lock that protects it, if its users are in several partitions; all resources of a
    /// group share one lock.
    pub group: Option<u16>,
    /// The names of its users' partitions.
    pub partitions: &'static [&'static str],
}

/// Policy for an event source that is still idle after a job. On a board an interrupt that stays
/// pending always releases another job.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnIdle {
    /// Releases another job.
    Every,
    /// Releases no further job until the source is replaced, is no longer ready, or has data.
    Once,
    /// Stops the app.
    Stop,
}

/// The protocol that excludes the users of a resource from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// None is needed: all users only read, they never preempt one another, or there are none.
    None,
    /// The Stack Resource Policy (Baker 1991), within one partition.
    Srp,
    /// The Multiprocessor Stack Resource Policy (Gai, Lipari, Di Natale 2001) with group locks,
    /// across partitions.
    Msrp,
    /// The Priority Ceiling Protocol (Sha, Rajkumar, Lehoczky 1990), across the levels of the
    /// global executor.
    Pcp,
}

/// `idle`, below all levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Idle {
    /// The partition on whose CPU it runs; `None` if every partition polls: then it runs on another
    /// CPU.
    pub partition: Option<&'static str>,
    /// The shared resources it uses.
    pub uses: &'static [Use],
}

impl Model {
    /// Returns the task with this name.
    pub fn task(&self, name: &str) -> Option<&'static Task> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// Returns the resource with this name.
    pub fn resource(&self, name: &str) -> Option<&'static Resource> {
        self.resources.iter().find(|resource| resource.name == name)
    }
}

/// For the code that the attribute generates.
#[doc(hidden)]
impl Model {
    pub const fn new(
        app: &'static str,
        partitions: &'static [Partition],
        tasks: &'static [Task],
        resources: &'static [Resource],
        idle: Option<Idle>,
    ) -> Self {
        Self { app, partitions, tasks, resources, idle }
    }
}

#[doc(hidden)]
impl Partition {
    pub const fn new(name: &'static str, executor: Executor, cpu: Option<usize>) -> Self {
        Self { name, executor, cpu }
    }
}

#[doc(hidden)]
impl Task {
    pub const fn new(
        name: &'static str,
        kind: Kind,
        partition: &'static str,
        level: u8,
        deadline: Option<Duration>,
        capacity: u16,
        uses: &'static [Use],
    ) -> Self {
        let (period, offset, min_interval, burst, on_overrun, on_early) =
            (None, None, None, None, None, None);
        let (budget, on_budget) = (None, None);
        Self {
            name,
            kind,
            partition,
            level,
            period,
            clock: None,
            offset,
            deadline,
            min_interval,
            burst,
            capacity,
            on_overrun,
            on_early,
            budget,
            on_budget,
            uses,
        }
    }

    #[must_use]
    pub const fn periodic(mut self, period: Duration, offset: Duration, on_overrun: OnOverrun) -> Self {
        (self.period, self.offset, self.on_overrun) = (Some(period), Some(offset), Some(on_overrun));
        self
    }
}

#[doc(hidden)]
impl Task {
    #[must_use]
    pub const fn follows(mut self, clock: &'static str) -> Self {
        self.clock = Some(clock);
        self
    }

    #[must_use]
    pub const fn sporadic(mut self, min_interval: Duration, burst: u16, on_early: OnEarly) -> Self {
        (self.min_interval, self.burst, self.on_early) = (Some(min_interval), Some(burst), Some(on_early));
        self
    }
}

#[doc(hidden)]
impl Task {
    #[must_use]
    pub const fn budgeted(mut self, budget: Duration, on_budget: OnBudget) -> Self {
        (self.budget, self.on_budget) = (Some(budget), Some(on_budget));
        self
    }
}

#[doc(hidden)]
impl Use {
    pub const fn new(resource: &'static str, access: Access) -> Self {
        Self { resource, access }
    }
}

#[doc(hidden)]
impl Resource {
    pub const fn new(
        name: &'static str,
        ceiling: u8,
        protocol: Protocol,
        group: Option<u16>,
        partitions: &'static [&'static str],
    ) -> Self {
        Self { name, ceiling, protocol, group, partitions }
    }
}

#[doc(hidden)]
impl Idle {
    pub const fn new(partition: Option<&'static str>, uses: &'static [Use]) -> Self {
        Self { partition, uses }
    }
}

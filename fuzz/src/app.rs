//! Description of a generated app.

use std::sync::OnceLock;

use punctual::{Config, Duration, Report, SpawnHandle, StartError};

use crate::ledger::{LEVELS, RELAXED, ledger};
use crate::token::{Arguments, Kind, Token};

impl App {
    /// Returns true if every level has its own partition.
    pub(crate) fn is_global(&self) -> bool {
        self.executor == "global"
    }
}

/// Position of a task.
#[derive(Debug, Clone, Copy)]
pub struct Spot {
    /// Number of the task.
    pub task: u8,
    /// Number of the partition.
    pub part: u8,
    /// Level.
    pub level: u8,
}

impl Spot {
    /// Returns the number of the lane: one partition and level, whose jobs run one at a time, in
    /// spawn order.
    pub(crate) fn lane(self) -> usize {
        usize::from(self.part) * LEVELS + usize::from(self.level)
    }
}

/// Interface that releases the jobs of a task.
#[derive(Debug)]
pub enum Interface {
    /// Message task.
    Message {
        /// `spawn`.
        spawn: fn(Token) -> Result<(), Arguments>,
        /// `spawn_after`.
        after: fn(Duration, Token) -> Result<Box<dyn Handle>, Arguments>,
    },
    /// Async task.
    Async(fn(Token) -> Result<(), Arguments>),
    /// Bound task.
    Pend(fn()),
    /// None: only the runtime releases jobs.
    Closed,
}

/// Task.
#[derive(Debug)]
pub struct Task {
    /// Name.
    pub name: &'static str,
    /// Position.
    pub spot: Spot,
    /// Interface that releases its jobs.
    pub interface: Interface,
    /// True for a local task.
    pub is_local: bool,
    /// True if every job executes the beginning of its body once, so that the count can be compared
    /// with the report.
    pub counted: bool,
    /// Maximum number of jobs that may wait without a spawn by the app.
    pub unseen: u32,
    /// True if the app stops when the task is released too early.
    pub stops: bool,
}

/// Behavior of `idle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Absent, or returns, or waits for events.
    Tame,
    /// Runs forever and does not wait for events.
    Stubborn {
        /// True if `idle` and the hook use the same resource and one of them may change it.
        in_common: bool,
        /// True if `idle` locks resources that others use.
        locks: bool,
    },
}

/// Generated app.
#[derive(Debug)]
pub struct App {
    /// Name of its module.
    pub name: &'static str,
    /// Seed of the generator.
    pub seed: u64,
    /// Runs the app.
    pub run: fn(Config) -> Result<Report, StartError>,
    /// Tasks, by number.
    pub tasks: &'static [Task],
    /// True if the runtime counts jobs.
    pub monitored: bool,
    /// True if there is a `#[shutdown]`.
    pub hook: bool,
    /// Behavior of `idle`.
    pub idle: Idle,
    /// Executor, as written by [`Executor`](crate::generate::Executor).
    pub executor: &'static str,
}

static APP: OnceLock<&'static App> = OnceLock::new();

/// Selects the app of this process.
pub(crate) fn choose(app: &'static App) {
    assert!(APP.set(app).is_ok(), "a process has one app");
}

/// Returns the app of this process.
pub(crate) fn app() -> &'static App {
    APP.get().expect("the process starts by choosing its app")
}

impl Task {
    /// Spawns a job; returns false if the spawn was refused, and true for tasks that cannot be
    /// spawned.
    pub(crate) fn spawn(&self) -> bool {
        let task = self.spot.task;
        match self.interface {
            Interface::Message { spawn, .. } => {
                let token = Token::queued(task, self.spot.lane());
                self.send(|| spawn(token)).map_err(Arguments::refused).is_ok()
            }
            // A wake-up that was too late for the previous instance may have queued the task
            // already.
            Interface::Async(spawn) => {
                let token = Token::of_task(Kind::Message, task);
                self.send(|| spawn(token)).map_err(Arguments::refused).is_ok()
            }
            Interface::Pend(pend) => {
                pend();
                false
            }
            Interface::Closed => false,
        }
    }

    /// Counts a spawn unless it is refused. A stopping app accepts it and drops the arguments at
    /// once, which may panic.
    pub(crate) fn send<T, E>(&self, spawn: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let sent = &ledger().tasks[usize::from(self.spot.task)].sent;
        sent.fetch_add(1, RELAXED);
        spawn().inspect_err(|_| {
            sent.fetch_sub(1, RELAXED);
        })
    }

    /// Returns true if only spawns release jobs.
    pub(crate) fn is_spawned(&self) -> bool {
        matches!(self.interface, Interface::Message { .. } | Interface::Async(_)) || self.is_local
    }
}

/// Job with a future release.
pub trait Handle: Send {
    /// Cancels the job and returns its arguments.
    fn cancel(self: Box<Self>) -> Option<Arguments>;
    /// Reschedules the job.
    fn reschedule(self: Box<Self>, after: Duration) -> Option<Box<dyn Handle>>;
}

impl std::fmt::Debug for dyn Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a handle")
    }
}

impl<A: Into<Arguments>> Handle for SpawnHandle<A> {
    fn cancel(self: Box<Self>) -> Option<Arguments> {
        SpawnHandle::cancel(*self).ok().map(Into::into)
    }

    fn reschedule(self: Box<Self>, after: Duration) -> Option<Box<dyn Handle>> {
        self.reschedule_after(after).ok().map(|handle| Box::new(handle) as Box<dyn Handle>)
    }
}

//! What a generated app says of itself.

use std::sync::OnceLock;

use punctual::{Config, Duration, Report, SpawnHandle, StartError};

use crate::ledger::{LEVELS, RELAXED, ledger};
use crate::token::{Arguments, Kind, Token};

impl App {
    /// Whether every level has a partition of its own.
    pub(crate) fn is_global(&self) -> bool {
        self.executor == "global"
    }
}

/// Where a task is.
#[derive(Debug, Clone, Copy)]
pub struct Spot {
    /// Its number.
    pub task: u8,
    /// Its partition.
    pub part: u8,
    /// Its level.
    pub level: u8,
}

impl Spot {
    /// What runs one job at a time, and in the order of their spawns.
    pub(crate) fn lane(self) -> usize {
        usize::from(self.part) * LEVELS + usize::from(self.level)
    }
}

/// How jobs of a task are asked for.
#[derive(Debug)]
pub enum Door {
    /// A message task.
    Message {
        /// `spawn`.
        spawn: fn(Token) -> Result<(), Arguments>,
        /// `spawn_after`.
        after: fn(Duration, Token) -> Result<Box<dyn Handle>, Arguments>,
    },
    /// An async task.
    Async(fn(Token) -> Result<(), Arguments>),
    /// A bound task.
    Pend(fn()),
    /// It is released otherwise.
    Closed,
}

/// A task.
#[derive(Debug)]
pub struct Task {
    /// Its name.
    pub name: &'static str,
    /// Where it is.
    pub spot: Spot,
    /// How jobs are asked for.
    pub door: Door,
    /// Whether it is a local task.
    pub is_local: bool,
    /// Whether every job passes the beginning of its body once, so that they can be compared with the report.
    pub counted: bool,
    /// Jobs that may wait, and that nobody but the app's runtime has released.
    pub unseen: u32,
    /// Whether the app stops when it is released too early.
    pub stops: bool,
}

/// How `idle` behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// There is none, or it returns or waits for events.
    Tame,
    /// It goes on for ever and does not wait for events.
    Stubborn {
        /// Whether it and the hook use the same resource, and not only to look at it.
        in_common: bool,
        /// Whether it locks resources that others use.
        locks: bool,
    },
}

/// A generated app.
#[derive(Debug)]
pub struct App {
    /// The name of its module.
    pub name: &'static str,
    /// What it was made of.
    pub seed: u64,
    /// Runs it.
    pub run: fn(Config) -> Result<Report, StartError>,
    /// Its tasks, by number.
    pub tasks: &'static [Task],
    /// Whether jobs are counted by the runtime.
    pub monitored: bool,
    /// Whether there is a `#[shutdown]`.
    pub hook: bool,
    /// How `idle` behaves.
    pub idle: Idle,
    /// What runs it: as [`Executor`](crate::generate::Executor) is written.
    pub executor: &'static str,
}

static APP: OnceLock<&'static App> = OnceLock::new();

/// Chooses the app of this process.
pub(crate) fn choose(app: &'static App) {
    assert!(APP.set(app).is_ok(), "a process has one app");
}

/// The app of this process.
pub(crate) fn app() -> &'static App {
    APP.get().expect("the process starts by choosing its app")
}

impl Task {
    /// Spawns a job now; whether it was accepted. Nothing is asked of a task that is released otherwise.
    pub(crate) fn spawn(&self) -> bool {
        let task = self.spot.task;
        match self.door {
            Door::Message { spawn, .. } => {
                let token = Token::queued(task, self.spot.lane());
                self.send(|| spawn(token)).map_err(Arguments::refused).is_ok()
            }
            // A wake that came too late for the instance before may have queued it already.
            Door::Async(spawn) => {
                let token = Token::of_task(Kind::Message, task);
                self.send(|| spawn(token)).map_err(Arguments::refused).is_ok()
            }
            Door::Pend(pend) => {
                pend();
                false
            }
            Door::Closed => false,
        }
    }

    /// Counts a spawn unless it is refused. One in an app that stops is not, and drops the arguments at once, which may panic.
    pub(crate) fn send<T, E>(&self, spawn: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let sent = &ledger().tasks[usize::from(self.spot.task)].sent;
        sent.fetch_add(1, RELAXED);
        spawn().inspect_err(|_| {
            sent.fetch_sub(1, RELAXED);
        })
    }

    /// Whether jobs come from spawns alone.
    pub(crate) fn is_spawned(&self) -> bool {
        matches!(self.door, Door::Message { .. } | Door::Async(_)) || self.is_local
    }
}

/// A job that is to be released later.
pub trait Handle: Send {
    /// Takes it back, with its arguments.
    fn cancel(self: Box<Self>) -> Option<Arguments>;
    /// Moves it.
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

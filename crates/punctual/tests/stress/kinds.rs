//! The kinds of executors under the same load, and the selection of the current one.
//!
//! To add a kind, add a line in `tasks.rs`, one in `KINDS`, and its name in `kinds!` of `main.rs`.

use std::os::unix::net::UnixDatagram;
use std::sync::OnceLock;

use punctual::{Config, Duration, Instant, Report, SpawnError, SpawnHandle, StartError};

use crate::ledger::Job;
use crate::tasks;

/// Handle of a job of `timed`.
pub(crate) type Handle = SpawnHandle<Job>;

/// A lane, and the spawn function of a task in it.
pub(crate) type Entry = (usize, fn(Job) -> Result<(), SpawnError<Job>>);

/// An app, with its tasks.
pub(crate) struct Kind {
    /// Value of the environment variable.
    pub(crate) name: &'static str,
    /// Number of CPUs it needs.
    pub(crate) cpus: usize,
    pub(crate) run: fn(Config, UnixDatagram) -> Result<Report, StartError>,
    pub(crate) low: Entry,
    pub(crate) mixed: Entry,
    pub(crate) other: Entry,
    pub(crate) timed: Entry,
    pub(crate) timed_at: fn(Instant, Job) -> Result<Handle, SpawnError<Job>>,
    pub(crate) timed_after: fn(Duration, Job) -> Result<Handle, SpawnError<Job>>,
    pub(crate) waits: Entry,
    pub(crate) high: Entry,
    pub(crate) top: Entry,
    pub(crate) pend_edge: fn(),
}

const KINDS: [&Kind; 4] =
    [&tasks::sole::KIND, &tasks::two::KIND, &tasks::polling::KIND, &tasks::global::KIND];

static CHOSEN: OnceLock<&Kind> = OnceLock::new();

/// Selects the kind for this process.
pub(crate) fn choose(name: &str) {
    let kind = KINDS.into_iter().find(|kind| kind.name == name).expect("the tests know the kinds");
    assert!(CHOSEN.set(kind).is_ok(), "a process has one kind");
}

/// Returns the kind of this process.
pub(crate) fn kind() -> &'static Kind {
    CHOSEN.get().expect("it is chosen first")
}

/// Returns whether this process has enough CPUs for the kind `name`.
pub(crate) fn has_cpus(name: &str) -> bool {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    KINDS.into_iter().any(|kind| kind.name == name && kind.cpus <= cpus)
}

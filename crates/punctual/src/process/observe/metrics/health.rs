//! The figures of a running app, for its own ordinary threads.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError, Weak};

use punctual_core::metrics::{Term, Values};

use super::{Metrics, tasks};
use crate::background::traffic;

/// The metrics of the running app. A program runs one app at a time.
static RUNNING: Mutex<Weak<Metrics>> = Mutex::new(Weak::new());

/// Makes the metrics of an app available to [`current`].
pub(super) fn register(metrics: Weak<Metrics>) {
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = metrics;
}

/// The state of a running app, as of [`current`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Health {
    /// The tasks, in the order of their declaration.
    pub tasks: Vec<TaskHealth>,
    /// The missing real-time settings, each with the remedy.
    pub missing: Vec<String>,
    /// The counts of each [`Traffic`](crate::background::Traffic).
    pub traffic: Vec<TrafficHealth>,
}

/// The counts of a task since the start of the app.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TaskHealth {
    /// The name.
    pub name: &'static str,
    /// The number of releases that found the previous job unfinished.
    pub overruns: u64,
    /// The figures of its jobs; `None` if they are not measured, without the feature `monitoring`.
    pub jobs: Option<JobsHealth>,
}

/// The figures of the jobs of a task since the start of the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct JobsHealth {
    /// The number of jobs that have ended.
    pub ended: u64,
    /// The number of jobs that ended after their deadline.
    pub misses: u64,
    /// The maximum time from release to start, in ns.
    pub jitter_max: u64,
    /// The maximum time from release to end, in ns.
    pub response_max: u64,
}

/// The counts of a [`Traffic`](crate::background::Traffic).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TrafficHealth {
    /// The name.
    pub name: String,
    /// The number of messages carried.
    pub carried: u64,
    /// The number of messages lost in transit.
    pub lost: u64,
    /// The number of messages received and rejected.
    pub refused: u64,
}

/// Returns the state of the running app; `None` before its first job, after its end, in virtual
/// time, and without [metrics](crate::Config::metrics).
///
/// Real-time safety: allocates and locks; for ordinary threads.
pub fn current() -> Option<Health> {
    let metrics = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
    if metrics.header().stopping.load(Relaxed) != 0 {
        return None;
    }
    let tasks = tasks(metrics.runtime).enumerate().map(|(index, (task, info))| {
        let figures = metrics.figures(index);
        let undisturbed = Values::from(&figures.undisturbed);
        let max = |term: Term| term.combine(figures.of_term(term).0.into(), undisturbed).max;
        let jobs = metrics.measured.get(index).is_some_and(|measured| *measured).then(|| JobsHealth {
            ended: figures.jobs.load(Relaxed),
            misses: figures.misses.load(Relaxed),
            jitter_max: max(Term::Jitter),
            response_max: max(Term::Response),
        });
        TaskHealth { name: info.name, overruns: task.counters().overruns, jobs }
    });
    let mut carried = vec![];
    traffic::each(|_, name, [carried_count, lost, refused]| {
        carried.push(TrafficHealth { name: name.to_owned(), carried: carried_count, lost, refused });
    });
    Some(Health { tasks: tasks.collect(), missing: metrics.missing.clone(), traffic: carried })
}

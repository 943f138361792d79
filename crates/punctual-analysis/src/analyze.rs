//! Analysis of a whole system: bounds every task, partition by partition, until a fixed point is
//! reached.
//!
//! *Tindell & Clark, "Holistic Schedulability Analysis for Distributed Hard Real-Time Systems",
//! Microprocessing and Microprogramming 40, 1994*: a spawned task inherits the releases of its
//! callers, delayed by up to their response times. Response times determine releases and releases
//! determine response times. Both only grow, and the least fixed point bounds them. The result is
//! sufficient.

use std::borrow::Cow;

use crate::arrival::Stream;
use crate::bound::{Analysis, NoBound, Outcome};
use crate::demand::{self, Source};
use crate::fraction::Fraction;
use crate::round::{Rivalry, Rivals, Round};
use crate::system::{Executor, Protocol, System, Task};
use crate::time::{MAX_TIME, Nanos};
use crate::work;

/// Maximum number of rounds; mutually dependent responses that still grow are treated as unbounded.
const ROUNDS: usize = 1_000;

/// Longest response to consider, as a multiple of the longest period or deadline.
const MAX_RESPONSE: u64 = 64;

/// Bounds every task of a system.
///
/// A task with independent releases that is also only spawned has two valid bounds; the result
/// contains the lower one.
#[must_use]
pub fn analyze(system: &System) -> Analysis {
    let mut analysis = analyze_releases(system);
    let Some(spawned) = with_releases_of_callers(system) else { return analysis };
    let others = analyze_releases(&spawned).tasks;
    // Callers may run far more often than the jobs that spawn. A task without a bound in one
    // variant may have one in the other.
    if others.iter().zip(&analysis.tasks).any(|(other, known)| other.is_err() && known.is_ok()) {
        return analysis;
    }
    let response = |outcome: &Outcome| outcome.as_ref().map_or(Nanos::MAX, |bound| bound.response);
    for (known, other) in analysis.tasks.iter_mut().zip(others) {
        if response(&other) < response(known) {
            *known = other;
        }
    }
    analysis
}

/// Returns the system in which the releases of their callers replace the patterns of tasks that
/// are only spawned, or `None` if no task is only spawned.
fn with_releases_of_callers(system: &System) -> Option<System> {
    let spawned =
        |at: usize| system.tasks.iter().any(|task| task.spawns.iter().any(|spawn| spawn.task == at));
    let is =
        |at: usize| system.tasks[at].is_only_spawned && system.tasks[at].arrivals.is_some() && spawned(at);
    let tasks: Vec<usize> = (0..system.tasks.len()).filter(|&at| is(at)).collect();
    if tasks.is_empty() {
        return None;
    }
    let mut system = system.clone();
    tasks.iter().for_each(|&at| system.tasks[at].arrivals = None);
    Some(system)
}

/// Bounds every task by its own releases, or by those of its callers if it has no pattern.
fn analyze_releases(system: &System) -> Analysis {
    let mut responses: Vec<Result<Nanos, NoBound>> = system.tasks.iter().map(|_| Ok(0)).collect();
    let mut ends = vec![None; system.tasks.len()];
    let longest = longest_response(system);
    let depends = depends_on_responses(system);
    for _ in 0..ROUNDS {
        if work::is_exceeded() {
            break;
        }
        let rivals = Rivals::new(system, &responses, &ends);
        let mut tasks = Round { system, responses: &responses, rivals: &rivals }.bounds();
        if !depends {
            return Analysis { tasks };
        }
        // A task without a bound keeps its original reason, even if others lack a bound because of
        // it.
        for (task, before) in tasks.iter_mut().zip(&responses) {
            if let (Err(_), Err(reason)) = (&task, before) {
                *task = Err(reason.clone());
            }
        }
        let found: Vec<_> = tasks.iter().map(|outcome| response(outcome, longest)).collect();
        let found_ends: Vec<_> =
            tasks.iter().map(|outcome| outcome.as_ref().ok().and_then(|bound| bound.since_root)).collect();
        if (&found, &found_ends) == (&responses, &ends) {
            return Analysis { tasks };
        }
        (responses, ends) = (found, found_ends);
    }
    Analysis { tasks: vec![Err(NoBound::TooLong); system.tasks.len()] }
}

/// Bounds the responses of a profiled run, in which jobs also spent the time of the profiler.
/// `analysis` is the analysis of the system without that cost.
#[must_use]
pub fn of_run(system: &System, analysis: &Analysis) -> Vec<Option<Nanos>> {
    let response = |outcome: &Outcome| outcome.as_ref().ok().map(|bound| bound.response);
    let Some(profiled) = system.of_profiled_run() else {
        return analysis.tasks.iter().map(response).collect();
    };
    let after_end = |task: &Task| {
        let profiling = system.partitions[task.partition].profiling;
        profiling.job.saturating_sub(profiling.before_end)
    };
    // Work after the end of a job counts in its own bound too, at the very end.
    let bounds = analyze(&profiled).tasks;
    let bounds = bounds.iter().zip(&system.tasks);
    bounds.map(|(outcome, task)| response(outcome).map(|it| it.saturating_sub(after_end(task)))).collect()
}

/// Returns the longest response on which other responses may depend.
fn longest_response(system: &System) -> Nanos {
    let times = system.tasks.iter().map(|task| {
        let window = task.arrivals.as_ref().map_or(0, Stream::window);
        window.max(task.deadline.unwrap_or(0)).max(task.jitter)
    });
    times.max().unwrap_or(0).saturating_mul(MAX_RESPONSE).min(MAX_TIME)
}

fn response(outcome: &Outcome, longest: Nanos) -> Result<Nanos, NoBound> {
    match outcome {
        Ok(bound) if bound.response > longest => Err(NoBound::TooLong),
        Ok(bound) => Ok(bound.response),
        Err(reason) => Err(reason.clone()),
    }
}

/// Returns whether the response of one task can influence that of another.
fn depends_on_responses(system: &System) -> bool {
    system.tasks.iter().any(|task| task.suspension.is_some() || !task.spawns.is_empty())
}

/// Returns a task whose deadline is not proven to be met, if any; checks the task `first` first.
///
/// Stops at the first such task, and is then faster than [`analyze`]. A task whose bound is
/// [too long](NoBound::TooLong) to be computed may still be proven to meet its deadline.
#[must_use]
pub fn first_miss(system: &System, first: Option<usize>) -> Option<usize> {
    let mut order = first.into_iter().chain(0..system.tasks.len());
    let probe = Probe::new(Cow::Borrowed(system));
    order.find(|&at| !probe.meets(at))
}

/// Checks single tasks of a system while its parameters change.
pub(crate) struct Probe<'a> {
    system: Cow<'a, System>,
    found: Found,
}

enum Found {
    /// The responses on which other tasks depend are known; each task is bounded on demand.
    Rivals(Box<Rivals>, Vec<Result<Nanos, NoBound>>),
    /// All tasks have been bounded.
    All(Analysis),
}

impl<'a> Probe<'a> {
    pub(crate) fn new(system: Cow<'a, System>) -> Self {
        let found = Found::of(&system);
        Self { system, found }
    }

    /// Applies an arbitrary change to the system.
    pub(crate) fn change_all(&mut self, change: impl FnOnce(&mut System)) {
        change(self.system.to_mut());
        self.found = Found::of(&self.system);
    }

    /// Changes C, T, J or the holds of one task.
    pub(crate) fn change(&mut self, at: usize, change: impl FnOnce(&mut Task)) {
        let system = self.system.to_mut();
        change(&mut system.tasks[at]);
        let spins = || system.resources.iter().any(|it| matches!(it.protocol, Protocol::Msrp { .. }));
        match &mut self.found {
            Found::Rivals(rivals, _) if !depends_on_responses(system) && !spins() => {
                rivals.update(system, at);
            }
            found => *found = Found::of(system),
        }
    }

    /// Returns whether all jobs of a task meet its deadline, if it has one.
    pub(crate) fn meets(&self, at: usize) -> bool {
        let Some(deadline) = self.system.tasks[at].deadline else { return true };
        match &self.found {
            Found::All(analysis) => analysis.tasks[at].as_ref().is_ok_and(|bound| bound.response <= deadline),
            Found::Rivals(rivals, responses) => {
                let round = Round { system: &self.system, responses, rivals };
                if let Executor::Global { .. } = round.partition(at).executor {
                    return round.bounds()[at].as_ref().is_ok_and(|bound| bound.response <= deadline);
                }
                round.meets(at, deadline)
            }
        }
    }
}

impl Found {
    fn of(system: &System) -> Self {
        let is_global =
            |task: &Task| matches!(system.partitions[task.partition].executor, Executor::Global { .. });
        let depends = |task: &Task| !task.spawns.is_empty() || task.suspension.is_some() && is_global(task);
        let found = if system.tasks.iter().any(depends) { None } else { Self::of_suspending(system) };
        found.unwrap_or_else(|| Self::All(analyze(system)))
    }

    /// Bounds the tasks that suspend themselves, whose responses are the only ones that others
    /// depend on in a system without spawns; `None` if they grow for too many rounds.
    ///
    /// The responses are those of [`analyze_releases`], whose rounds bound all tasks.
    fn of_suspending(system: &System) -> Option<Self> {
        let tasks = system.tasks.iter().enumerate();
        let suspending: Vec<usize> =
            tasks.filter(|(_, task)| task.suspension.is_some()).map(|(at, _)| at).collect();
        let ends = vec![None; system.tasks.len()];
        let longest = longest_response(system);
        let mut responses = vec![Ok(0); system.tasks.len()];
        for _ in 0..ROUNDS {
            if work::is_exceeded() {
                break;
            }
            let rivals = Rivals::new(system, &responses, &ends);
            let round = Round { system, responses: &responses, rivals: &rivals };
            // A task without a bound does not get one when the others grow.
            let bounded = suspending.iter().filter(|&&at| responses[at].is_ok());
            let found: Vec<_> = bounded.map(|&at| (at, response(&round.bound_of(at), longest))).collect();
            if found.iter().all(|(at, response)| *response == responses[*at]) {
                return Some(Self::Rivals(Box::new(rivals), responses));
            }
            found.into_iter().for_each(|(at, response)| responses[at] = response);
        }
        None
    }
}

/// Returns the CPU utilization of all tasks of a partition.
#[must_use]
pub fn utilization(system: &System, partition: usize) -> Fraction {
    let responses = vec![Ok(0); system.tasks.len()];
    let rivals = Rivals::new(system, &responses, &vec![None; responses.len()]);
    let Rivalry { above_all, tasks, .. } = &rivals.partitions[partition];
    demand::utilization(above_all.iter().chain(tasks), Source::cost)
}

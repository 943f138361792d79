//! The analysis of a whole system: what each task competes with, partition by partition, until nothing changes any more.
//!
//! *Tindell & Clark, "Holistic Schedulability Analysis for Distributed Hard Real-Time Systems", Microprocessing and
//! Microprogramming 40, 1994*: a task that others spawn is released as they are, and later by up to their response. Responses
//! determine releases, and releases responses; both only grow, and the least fixed point bounds them. Sufficient.

use std::borrow::Cow;

use crate::arrival::Stream;
use crate::bound::{Analysis, NoBound, Outcome};
use crate::demand::{self, Source};
use crate::fraction::Fraction;
use crate::round::{Rivalry, Rivals, Round};
use crate::system::{Executor, Protocol, System, Task};
use crate::time::{MAX_TIME, Nanos};

/// After so many rounds the responses of tasks that depend on each other are taken to grow without end.
const ROUNDS: usize = 1_000;

/// So many times the longest period or deadline, too.
const MAX_RESPONSE: u64 = 64;

/// Bounds every task of a system.
///
/// What has releases of its own and is only spawned is bounded in both ways, each of which holds for all tasks: the lower bound of
/// each is taken.
#[must_use]
pub fn analyse(system: &System) -> Analysis {
    let mut analysis = analyse_releases(system);
    let Some(spawned) = with_releases_of_callers(system) else { return analysis };
    let others = analyse_releases(&spawned).tasks;
    // Callers may come far more often than what only some of their jobs spawn. Then what has no bound may be missing from the others.
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

/// The system with tasks that are only spawned released as their callers are, and not by patterns of their own; `None` if there is none.
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

/// Bounds every task by its own releases, or those of its callers if it has none.
fn analyse_releases(system: &System) -> Analysis {
    let mut responses: Vec<Result<Nanos, NoBound>> = vec![Ok(0); system.tasks.len()];
    let mut ends = vec![None; system.tasks.len()];
    let longest = longest_response(system);
    let depends = depends_on_responses(system);
    for _ in 0..ROUNDS {
        let rivals = Rivals::new(system, &responses, &ends);
        let mut tasks = Round { system, responses: &responses, rivals: &rivals }.bounds();
        if !depends {
            return Analysis { tasks };
        }
        // What had no bound before has none for the same reason, and not since others have none because of it.
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

/// Bounds on the responses that were measured in the run which a profile is of. There, jobs also took what profiling them takes.
/// `analysis` is of the system without that.
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
    // What comes after the end of a job is in its own bound, too, and at its very end.
    let bounds = analyse(&profiled).tasks;
    let bounds = bounds.iter().zip(&system.tasks);
    bounds.map(|(outcome, task)| response(outcome).map(|it| it.saturating_sub(after_end(task)))).collect()
}

/// What no response that others depend on is longer than.
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

/// Whether the response of one task influences that of another.
fn depends_on_responses(system: &System) -> bool {
    system.tasks.iter().any(|task| task.suspension.is_some() || !task.spawns.is_empty())
}

/// A task with a deadline that it misses or has no bound for, if there is one; `first` is looked at first.
///
/// It ends at the first miss, so it is faster than [`analyse`] where there is one.
#[must_use]
pub fn first_miss(system: &System, first: Option<usize>) -> Option<usize> {
    let mut order = first.into_iter().chain(0..system.tasks.len());
    let probe = Probe::new(Cow::Borrowed(system));
    order.find(|&at| !probe.meets(at))
}

/// The verdict for single tasks of a system whose values may be changed.
pub(crate) struct Probe<'a> {
    system: Cow<'a, System>,
    responses: Vec<Result<Nanos, NoBound>>,
    found: Found,
}

enum Found {
    /// A task is bounded when it is asked for.
    Rivals(Rivals),
    /// All have been bounded, since they depend on each other.
    All(Analysis),
}

impl<'a> Probe<'a> {
    pub(crate) fn new(system: Cow<'a, System>) -> Self {
        let responses = vec![Ok(0); system.tasks.len()];
        let found = Found::of(&system, &responses);
        Self { system, responses, found }
    }

    /// Changes anything.
    pub(crate) fn change_all(&mut self, change: impl FnOnce(&mut System)) {
        change(self.system.to_mut());
        self.found = Found::of(&self.system, &self.responses);
    }

    /// Changes C, T, J or holds of a task.
    pub(crate) fn change(&mut self, at: usize, change: impl FnOnce(&mut Task)) {
        let system = self.system.to_mut();
        change(&mut system.tasks[at]);
        let spins = || system.resources.iter().any(|it| matches!(it.protocol, Protocol::Msrp { .. }));
        match &mut self.found {
            Found::Rivals(rivals) if !spins() => rivals.update(system, at),
            found => *found = Found::of(system, &self.responses),
        }
    }

    /// Whether all jobs of a task meet its deadline, if it has one.
    pub(crate) fn meets(&self, at: usize) -> bool {
        let Some(deadline) = self.system.tasks[at].deadline else { return true };
        match &self.found {
            Found::All(analysis) => analysis.tasks[at].as_ref().is_ok_and(|bound| bound.response <= deadline),
            Found::Rivals(rivals) => {
                let round = Round { system: &self.system, responses: &self.responses, rivals };
                if let Executor::Global { .. } = round.partition(at).executor {
                    return round.bounds()[at].as_ref().is_ok_and(|bound| bound.response <= deadline);
                }
                round.meets(at, deadline)
            }
        }
    }
}

impl Found {
    fn of(system: &System, responses: &[Result<Nanos, NoBound>]) -> Self {
        if depends_on_responses(system) {
            Self::All(analyse(system))
        } else {
            Self::Rivals(Rivals::new(system, responses, &vec![None; responses.len()]))
        }
    }
}

/// What every task of a system needs of the CPUs of its partition.
#[must_use]
pub fn utilisation(system: &System, partition: usize) -> Fraction {
    let responses = vec![Ok(0); system.tasks.len()];
    let rivals = Rivals::new(system, &responses, &vec![None; responses.len()]);
    let Rivalry { above_all, tasks, .. } = &rivals.partitions[partition];
    demand::utilisation(above_all.iter().chain(tasks), Source::cost)
}

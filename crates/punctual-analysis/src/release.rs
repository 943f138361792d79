//! Who is released when: by patterns of their own, or by those that spawn them.
//!
//! *Tindell & Clark, "Holistic Schedulability Analysis for Distributed Hard Real-Time Systems", Microprocessing and
//! Microprogramming 40, 1994*: a job spawns others at any instant from its nominal release to its end, so they inherit its
//! response as jitter. That is all that is known across partitions, and of callers below the level in question.
//!
//! Within a partition more is known, as *González Harbour & Palencia, "Exploiting Precedence Relations in the Schedulability
//! Analysis of Distributed Real-Time Systems", RTSS 1999* work out: the busy window of a level does not end while a job of this
//! level or above it has not. So who is spawned by such a job is spawned in the window in which that job became ready, and there
//! are no more of the one than of the other: no jitter is inherited. A called task never competes beside an earlier job of its
//! caller. A caller that waits in the middle of its job leaves the window, so this is not said of it.
//!
//! It is assumed that jobs spawn while they run, not through a timer. Sufficient.

use crate::arrival::Stream;
use crate::bound::{Bound, NoBound};
use crate::system::{Executor, System};
use crate::time::Nanos;

/// Releases of a task that go back to one task with releases of its own, the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    /// Of the root, with as many jobs for each as it leads to.
    stream: Stream,
    /// Of the root: its place after the start of the app, if that is known.
    pub(crate) offset: Option<Nanos>,
    /// J of the root.
    jitter: Nanos,
    /// The jobs through which it goes: the root, and then who spawns whom.
    path: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    task: usize,
    /// The latest end of the job after the nominal release of the root.
    end: Nanos,
}

impl Release {
    /// Of a task with releases of its own.
    pub(crate) fn of_root(system: &System, at: usize, stream: &Stream) -> Self {
        let task = &system.tasks[at];
        let offset = task.offset.filter(|_| task.is_periodic && stream.is_sporadic());
        Self { stream: stream.clone(), offset, jitter: task.jitter, path: Vec::new() }
    }

    /// Of a task that is spawned by jobs of `spawner`, which this is the release of.
    fn spawned(
        &self,
        system: &System,
        spawner: usize,
        most: u64,
        response: Nanos,
        since_root: Option<Nanos>,
    ) -> Self {
        let end = match self.path.last() {
            None => response,
            Some(&last) => end(system, last, spawner, response, since_root),
        };
        let mut path = self.path.clone();
        path.push(Step { task: spawner, end });
        Self { stream: self.stream.clone().times(most), path, ..*self }
    }

    /// Without the jitter that a response of the task itself includes.
    pub(crate) fn own(&self) -> Stream {
        self.stream.clone().with_jitter(self.path.last().map_or(0, |last| last.end))
    }

    /// In a busy window of this level of a partition, if the task is spawned.
    pub(crate) fn in_window(&self, system: &System, partition: usize, level: u32) -> Stream {
        let keeps = |step: &&Step| {
            let task = &system.tasks[step.task];
            task.partition == partition && task.level >= level && task.suspension.is_none()
        };
        let outside = self.path.len() - self.path.iter().rev().take_while(keeps).count();
        let jitter = match outside.checked_sub(1) {
            Some(last) => self.path[last].end,
            None => self.jitter,
        };
        self.stream.clone().with_jitter(jitter)
    }

    pub(crate) fn is_spawned(&self) -> bool {
        !self.path.is_empty()
    }
}

/// The latest end of a job of `at`, which `last` spawns, after the nominal release of the root.
fn end(system: &System, last: Step, at: usize, response: Nanos, since_root: Option<Nanos>) -> Nanos {
    let (caller, task) = (&system.tasks[last.task], &system.tasks[at]);
    let runs_on_one_cpu = !matches!(system.partitions[task.partition].executor, Executor::Global { .. });
    // It is called, and its caller goes on when it has ended.
    if caller.partition == task.partition && task.level > caller.level && runs_on_one_cpu {
        return last.end;
    }
    last.end.saturating_add(response).min(since_root.unwrap_or(Nanos::MAX))
}

/// Releases of every task, from its own pattern or from what spawns it.
pub(crate) fn releases(
    system: &System,
    responses: &[Result<Nanos, NoBound>],
    ends: &[Option<Nanos>],
) -> Vec<Result<Vec<Release>, NoBound>> {
    let own = |(at, task): (usize, &crate::system::Task)| {
        task.arrivals.as_ref().map(|stream| Ok(vec![Release::of_root(system, at, stream)]))
    };
    let mut known: Vec<Option<Result<Vec<Release>, NoBound>>> =
        system.tasks.iter().enumerate().map(own).collect();
    // Each pass resolves at least the tasks whose spawners are resolved; who spawns itself never is.
    for _ in 0..system.tasks.len() {
        for at in 0..system.tasks.len() {
            if known[at].is_none() {
                known[at] = inherited(system, responses, ends, &known, at);
            }
        }
    }
    known.into_iter().map(|releases| releases.unwrap_or(Err(NoBound::NoArrivals))).collect()
}

/// Releases of a task by those that spawn it, if theirs are known.
fn inherited(
    system: &System,
    responses: &[Result<Nanos, NoBound>],
    ends: &[Option<Nanos>],
    known: &[Option<Result<Vec<Release>, NoBound>>],
    at: usize,
) -> Option<Result<Vec<Release>, NoBound>> {
    let mut inherited = Vec::new();
    for (spawner, task) in system.tasks.iter().enumerate() {
        for spawn in task.spawns.iter().filter(|spawn| spawn.task == at) {
            let Ok(releases) = known[spawner].as_ref()? else {
                return Some(Err(NoBound::DependsOn(spawner)));
            };
            let Ok(response) = responses[spawner] else { return Some(Err(NoBound::DependsOn(spawner))) };
            let spawned = |it: &Release| it.spawned(system, spawner, spawn.most, response, ends[spawner]);
            inherited.extend(releases.iter().map(spawned));
        }
    }
    Some(if inherited.is_empty() { Err(NoBound::NoArrivals) } else { Ok(inherited) })
}

/// The latest end of the last job of a spawned chain, after the nominal release of its first task.
pub(crate) fn end_of_chain(system: &System, tasks: &[usize], bounds: &[&Bound]) -> Nanos {
    let Some((&first, rest)) = tasks.split_first() else { return 0 };
    let mut last = Step { task: first, end: bounds[0].response };
    let is_root = system.tasks[first].arrivals.is_some();
    for (&at, bound) in rest.iter().zip(&bounds[1..]) {
        let since_root = bound.since_root.filter(|_| is_root);
        last = Step { task: at, end: end(system, last, at, bound.response, since_root) };
    }
    last.end
}

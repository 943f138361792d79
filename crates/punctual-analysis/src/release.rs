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
//! A caller below the level, on the same CPU, does not run while the window lasts, unless it holds a resource whose ceiling is not below
//! the level, and then nobody else below the level has run or will (Baker 1991). So what is spawned from below is in a window by one job
//! only: the one that spawns at its start, or holds a resource there. It is the one that spawns the most, whoever that is. This is
//! not said of a level if a job at it or above it waits in the middle, nor of partitions that poll.
//!
//! Such a job need not be in the window of the task that it goes back to, its root. If it ends before the root's next job can become ready,
//! no job of the root meets it: what it spawns and what keeps it from running is over when it ends, and with that the window is.
//!
//! It is assumed that jobs spawn while they run, not through a timer. Sufficient.

use std::ops::Deref;
use std::slice;

use crate::arrival::Stream;
use crate::bound::{Bound, NoBound};
use crate::system::{Executor, Spawn, System, Task};
use crate::time::Nanos;

/// Releases of a task that go back to one task with releases of its own, the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    /// Of the root, with as many jobs for each as it leads to.
    stream: Stream,
    /// Of the root: its place after the start of the app, if that is known.
    pub(crate) offset: Option<Nanos>,
    /// By how much J of the root may bring its jobs nearer to each other.
    jitter: Nanos,
    /// The jobs through which it goes: the root, and then who spawns whom.
    path: Vec<Step>,
}

/// All ways in which a task is released. Most have one, which needs no memory of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Releases {
    One(Release),
    Many(Vec<Release>),
}

impl Deref for Releases {
    type Target = [Release];

    fn deref(&self) -> &[Release] {
        match self {
            Self::One(release) => slice::from_ref(release),
            Self::Many(releases) => releases,
        }
    }
}

impl<'a> IntoIterator for &'a Releases {
    type Item = &'a Release;
    type IntoIter = slice::Iter<'a, Release>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    task: usize,
    /// How many jobs of the next step it spawns.
    most: u64,
    /// How long its job has executed when it spawns the first, at least.
    earliest: Nanos,
    /// The latest end of the job after the nominal release of the root.
    end: Nanos,
    /// Whether it may hold a resource when it spawns.
    in_section: bool,
}

impl Release {
    /// Of a task with releases of its own.
    pub(crate) fn of_root(system: &System, at: usize, stream: &Stream) -> Self {
        let task = &system.tasks[at];
        let offset = task.offset.filter(|_| task.is_periodic && stream.is_sporadic());
        Self { stream: stream.clone(), offset, jitter: task.closer(), path: Vec::new() }
    }

    /// Of a task that is spawned by jobs of `spawner`, which this is the release of.
    fn spawned(
        &self,
        system: &System,
        spawner: usize,
        Spawn { most, earliest, in_section, .. }: Spawn,
        response: Nanos,
        since_root: Option<Nanos>,
    ) -> Self {
        let end = match self.path.last() {
            None => response,
            Some(&last) => end(system, last, spawner, response, since_root),
        };
        let mut path = self.path.clone();
        path.push(Step { task: spawner, most, earliest, end, in_section });
        Self { stream: self.stream.clone().times(most), path, ..*self }
    }

    /// Without the jitter that a response of the task itself includes.
    pub(crate) fn own(&self) -> Stream {
        self.stream.clone().with_jitter(self.path.last().map_or(0, |last| last.end))
    }

    /// In a busy window of this level of a partition, if the task is spawned.
    fn in_window(&self, system: &System, partition: usize, level: u32) -> Stream {
        let jitter = match self.outside(system, partition, level) {
            Some(last) => self.path[last].end,
            None => self.jitter,
        };
        self.stream.clone().with_jitter(jitter)
    }

    /// The last job of the path that need not be in the busy window in which the job is that it leads to.
    fn outside(&self, system: &System, partition: usize, level: u32) -> Option<usize> {
        let keeps = |step: &&Step| {
            let task = &system.tasks[step.task];
            task.partition == partition && task.level >= level && task.suspension.is_none()
        };
        let kept = self.path.iter().rev().take_while(keeps).count();
        (self.path.len() - kept).checked_sub(1)
    }

    /// The end of the path from a job on that is below the level, if that is the last one outside of the busy window.
    fn path_from_below(&self, system: &System, partition: usize, level: u32) -> Option<&[Step]> {
        let path = &self.path[self.outside(system, partition, level)?..];
        let caller = &system.tasks[path[0].task];
        (caller.partition == partition && caller.level < level).then_some(path)
    }

    /// How long after the instant that counts as its release, in a busy window of a task of this level, a job is spawned at least: jobs
    /// that have to be in the window run first, as far as their spawns.
    pub(crate) fn spawned_after(&self, system: &System, partition: usize, level: u32) -> Nanos {
        let first = self.outside(system, partition, level).map_or(0, |last| last + 1);
        self.path[first..].iter().map(|step| step.earliest).fold(0, Nanos::saturating_add)
    }

    /// The task whose jobs spawn it from below this level of a partition, or begin what leads to it, if they do; and whether they may hold
    /// a resource then.
    pub(crate) fn caller_from_below(
        &self,
        system: &System,
        partition: usize,
        level: u32,
    ) -> Option<(usize, bool)> {
        self.path_from_below(system, partition, level).map(|path| (path[0].task, path[0].in_section))
    }

    /// Who spawns whom until it is released: the root first.
    pub(crate) fn callers(&self) -> impl Iterator<Item = usize> {
        self.path.iter().map(|step| step.task)
    }

    /// Whether its path is that of the other as far as this place and the task there.
    pub(crate) fn comes_like(&self, other: &Self, place: usize) -> bool {
        self.path[..place] == other.path[..place] && self.path[place].task == other.path[place].task
    }

    /// How many jobs the last one leads to for each of this place in the path.
    pub(crate) fn jobs_after(&self, place: usize) -> u64 {
        self.path.iter().skip(place).fold(1, |jobs: u64, step| jobs.saturating_mul(step.most))
    }

    /// Whether all jobs of its path from this place on have to be in the busy window in which the job is.
    pub(crate) fn is_in_window_from(
        &self,
        system: &System,
        partition: usize,
        level: u32,
        place: usize,
    ) -> bool {
        self.outside(system, partition, level).is_none_or(|outside| outside < place)
    }

    /// Whether the root and all that it leads to have to be in the window in which the job is.
    pub(crate) fn is_kept_from_root(&self, system: &System, partition: usize, level: u32) -> bool {
        self.is_spawned() && self.outside(system, partition, level).is_none()
    }

    /// The task that the path begins with, if there is one.
    pub(crate) fn root(&self) -> Option<usize> {
        self.path.first().map(|step| step.task)
    }

    /// The latest end, after the release of the root, of the job that spawns it or begins what leads to it, if that is below this level.
    pub(crate) fn end_of_caller_from_below(
        &self,
        system: &System,
        partition: usize,
        level: u32,
    ) -> Option<Nanos> {
        self.path_from_below(system, partition, level).map(|path| path[0].end)
    }

    /// Whether it and the other are spawned by the same job, which is in the window in which this one is, and spawns no more than the
    /// other's jobs in all: then that job spawns one fewer of them.
    fn is_in_place_of(&self, system: &System, own: usize, other: &Self) -> bool {
        let Task { partition, level, .. } = system.tasks[own];
        let (Some((last, callers)), Some((of_other, its))) =
            (self.path.split_last(), other.path.split_last())
        else {
            return false;
        };
        let is_kept = self.outside(system, partition, level).is_none_or(|outside| outside < callers.len());
        let most = system.tasks[last.task].most_spawns;
        is_kept
            && (last.task, callers) == (of_other.task, its)
            && most.is_some_and(|most| most <= of_other.most)
    }

    /// Whether a job that `path` begins with, which is the end of its own path, has ended before a later job of the root is ready, and
    /// that root is the task `at`.
    fn ends_before_next_of(&self, system: &System, at: usize, path: &[Step]) -> bool {
        let Some(own) = system.tasks[at].arrivals.as_ref().filter(|_| self.path[0].task == at) else {
            return false;
        };
        let next = own.distance(2).map(|next| next.saturating_add(system.tasks[at].delay));
        next.is_some_and(|next| path[0].end <= next)
    }

    /// Whether jobs of the task `at` run on the stack of those that spawn them, so that no thread is switched to.
    pub(crate) fn is_called(&self, system: &System, at: usize) -> bool {
        let (callee, caller) = (&system.tasks[at], self.path.last().map(|last| &system.tasks[last.task]));
        let runs_on_one_cpu =
            !matches!(system.partitions[callee.partition].executor, Executor::Global { .. });
        let calls = |it: &Task| it.partition == callee.partition && it.level < callee.level;
        runs_on_one_cpu && caller.is_some_and(calls)
    }

    pub(crate) fn is_spawned(&self) -> bool {
        !self.path.is_empty()
    }
}

/// Releases of a task, one by one, in a busy window in which the task `own` has jobs; `None` for what is not spawned.
///
/// `own_release`: that of `own`, if it is spawned in one way only and is not this task.
pub(crate) fn in_window(
    system: &System,
    releases: &[Release],
    own: usize,
    own_release: Option<&Release>,
) -> Vec<Option<Stream>> {
    let Task { partition, level, .. } = system.tasks[own];
    let waits = |task: &Task| task.partition == partition && task.level >= level && task.suspension.is_some();
    let is_left_alone =
        system.partitions[partition].executor == Executor::Preemptive && !system.tasks.iter().any(waits);
    let below =
        releases.iter().map(|it| it.path_from_below(system, partition, level).filter(|_| is_left_alone));
    let below: Vec<Option<&[Step]>> = below.collect();
    let mut paths: Vec<Vec<(usize, u64)>> = Vec::new();
    let mut first_from_below = None;
    for (at, path) in below.iter().enumerate() {
        let Some(path) = path else { continue };
        if releases[at].ends_before_next_of(system, own, path) {
            continue;
        }
        first_from_below.get_or_insert(at);
        // One job of a caller takes each way once, whatever its root is.
        let path: Vec<_> = path.iter().map(|step| (step.task, step.most)).collect();
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let jobs = |path: &[(usize, u64)]| path.iter().fold(1, |all: u64, &(_, most)| all.saturating_mul(most));
    let of_caller = |caller: usize| {
        let its = paths.iter().filter(|path| path[0].0 == caller);
        its.fold(0, |sum: u64, path| sum.saturating_add(jobs(path)))
    };
    let most = paths.iter().map(|path| of_caller(path[0].0)).max().unwrap_or(0);
    let in_window = |(at, release): (usize, &Release)| match below[at] {
        _ if !release.is_spawned() => None,
        Some(_) => Some(Stream::in_all(if first_from_below == Some(at) { most } else { 0 })),
        None => {
            let stream = release.in_window(system, partition, level);
            let is_in_place = own_release.is_some_and(|own_release| {
                system.partitions[partition].executor == Executor::Preemptive
                    && own_release.is_in_place_of(system, own, release)
            });
            Some(if is_in_place { stream.one_fewer() } else { stream })
        }
    };
    releases.iter().enumerate().map(in_window).collect()
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
) -> Vec<Result<Releases, NoBound>> {
    let own = |(at, task): (usize, &crate::system::Task)| {
        task.arrivals.as_ref().map(|stream| Ok(Releases::One(Release::of_root(system, at, stream))))
    };
    let mut known: Vec<Option<Result<Releases, NoBound>>> =
        system.tasks.iter().enumerate().map(own).collect();
    // Each pass resolves at least the tasks whose spawners are resolved; who spawns itself never is.
    for _ in 0..system.tasks.len() {
        if known.iter().all(Option::is_some) {
            break;
        }
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
    known: &[Option<Result<Releases, NoBound>>],
    at: usize,
) -> Option<Result<Releases, NoBound>> {
    let mut inherited = Vec::new();
    for (spawner, task) in system.tasks.iter().enumerate() {
        for spawn in task.spawns.iter().filter(|spawn| spawn.task == at) {
            let Ok(releases) = known[spawner].as_ref()? else {
                return Some(Err(NoBound::DependsOn(spawner)));
            };
            let Ok(response) = responses[spawner] else { return Some(Err(NoBound::DependsOn(spawner))) };
            let spawned = |it: &Release| it.spawned(system, spawner, *spawn, response, ends[spawner]);
            inherited.extend(releases.iter().map(spawned));
        }
    }
    Some(if inherited.is_empty() { Err(NoBound::NoArrivals) } else { Ok(Releases::Many(inherited)) })
}

/// The latest end of the last job of a spawned chain, after the nominal release of its first task.
pub(crate) fn end_of_chain(system: &System, tasks: &[usize], bounds: &[&Bound]) -> Nanos {
    let Some((&first, rest)) = tasks.split_first() else { return 0 };
    let step = |task, end| Step { task, most: 1, earliest: 0, end, in_section: true };
    let mut last = step(first, bounds[0].response);
    let is_root = system.tasks[first].arrivals.is_some();
    for (&at, bound) in rest.iter().zip(&bounds[1..]) {
        let since_root = bound.since_root.filter(|_| is_root);
        last = step(at, end(system, last, at, bound.response, since_root));
    }
    last.end
}

#[cfg(test)]
mod tests {
    use crate::bound::Bound;
    use crate::{analyse, schema};

    /// `sample` calls `control`, or leaves it to `filter` to do so, and is later than its period.
    const TASKS: &str = r#"
        schema = "punctual-taskset/1"
        [[task]]
        name = "control"
        level = 4
        execution = "3us"
        [[task]]
        name = "sample"
        level = 3
        execution = "7us"
        period = "100us"
        jitter = "250us"
        sections = [{ resource = "r", hold = "1us" }]
        spawns = [{ task = "control", most = 2 }, { task = "filter", most = 1 }]
        [[task]]
        name = "filter"
        level = 2
        execution = "5us"
        spawns = [{ task = "control", most = 1 }]
        [[resource]]
        name = "r"
    "#;

    fn bounds(text: &str) -> Vec<Bound> {
        let system = schema::read("tasks", text).unwrap();
        analyse(&system).tasks.into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn one_job_below_spawns_all_that_come_from_below() {
        let bounds = bounds(TASKS);
        let control = &bounds[0];
        // Two by a job of `sample`, or one by a job of `filter`, and not all those by all jobs of both.
        assert_eq!((control.own.jobs, control.response), (2, 6_000));
        // At its own level, jobs of `sample` come together if they are late, and each calls two. One may come from `filter`.
        assert_eq!(bounds[1].interference[0].work.jobs, 2 * 3 + 1);
    }

    /// `sample` leaves work to `filter`, which calls `control`, before the next `sample` or not.
    #[test]
    fn what_has_ended_before_the_next_job_of_its_root_does_not_meet_it() {
        let calls = |jitter: &str| {
            let text =
                TASKS.replace("jitter = \"250us\"", jitter).replace("{ task = \"control\", most = 2 }, ", "");
            let interference = &bounds(&text)[1].interference;
            interference.iter().map(|it| it.work.jobs).sum::<u64>()
        };
        assert_eq!(calls(""), 0);
        // `filter` ends within 15 µs of the release of `sample`.
        assert_eq!(calls("jitter = \"85us\""), 0);
        assert_eq!(calls("jitter = \"86us\""), 1);
    }

    #[test]
    fn only_callers_have_locked_what_keeps_called_tasks_waiting() {
        let section = "sections = [{ resource = \"r\", hold = \"1us\" }]";
        let held = |by: &str, text: &str| {
            let (before, after) = text.split_once(&format!("name = \"{by}\"\n")).unwrap();
            format!("{before}name = \"{by}\"\n{section}\n{after}")
        };
        let low = "[[task]]\nname = \"low\"\nlevel = 1\nexecution = \"2us\"\nperiod = \"900us\"\n";
        let text = held("low", &held("control", &format!("{}{low}", TASKS.replace(section, ""))));
        let found = bounds(&text);
        // `sample` would not run if `low` had locked it.
        assert!(found[0].blocking.is_none() && found[1].blocking.is_some());
        let by_caller = bounds(&held("filter", &text));
        assert_eq!(by_caller[0].blocking.map(|it| it.time), Some(1_000));
    }

    #[test]
    fn jobs_from_below_come_again_while_somebody_waits() {
        let waits = TASKS.replace(
            "execution = \"3us\"",
            "execution = \"3us\"\nsuspension = { total = \"1us\", times = 1 }",
        );
        assert!(bounds(&waits)[0].own.jobs > 2, "{:?}", bounds(&waits)[0]);
    }
}

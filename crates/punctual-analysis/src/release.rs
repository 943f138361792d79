//! Releases of tasks, by their own patterns or by the tasks that spawn them.
//!
//! *Tindell & Clark, "Holistic Schedulability Analysis for Distributed Hard Real-Time Systems",
//! Microprocessing and Microprogramming 40, 1994*: a job spawns at any instant from its nominal
//! release to its end, so spawned jobs inherit its response as jitter. Nothing more is known across
//! partitions, or of callers below the level under analysis.
//!
//! Within a partition more is known, *González Harbour & Palencia, "Exploiting Precedence Relations
//! in the Schedulability Analysis of Distributed Real-Time Systems", RTSS 1999*: the busy window of
//! a level does not end before all jobs at or above it have ended. A job spawned by such a job is
//! therefore spawned in the window in which that job became ready, and there are no more of the one
//! than of the other: no jitter is inherited. A called job never competes with an earlier job of
//! its caller. A caller that suspends itself leaves the window, so the argument does not apply to
//! it.
//!
//! A caller below the level, on the same CPU, does not run during the window, unless it holds a
//! resource whose ceiling is not below the level; then no other job below the level has run or will
//! run (Baker 1991). So a window contains the spawns of only one job from below: the one that
//! spawns at its start, or holds a resource there. The analysis assumes the one that spawns most.
//! The argument does not apply to a level if a job at or above it suspends itself, nor to polling
//! partitions.
//!
//! Such a job need not be in the window of the task at its root. If it ends before the root's next
//! job can become ready, no job of the root meets it: its spawns, and the jobs that displace it,
//! end before it does, and so does the window.
//!
//! Assumption: jobs spawn while they run, not through a timer. Sufficient.

use std::ops::Deref;
use std::slice;

use crate::arrival::Stream;
use crate::bound::{Bound, NoBound};
use crate::system::{Executor, Spawn, System, Task};
use crate::time::Nanos;

/// Maximum length of all paths together, because their number may grow exponentially with that of
/// the tasks, and the cost with its square.
const MAX_STEPS: usize = 1 << 16;

/// Releases of a task that originate from one task with independent releases, the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    /// Releases of the root, with the number of jobs that each leads to.
    stream: Stream,
    /// Offset of the root after the start of the app, if known.
    pub(crate) offset: Option<Nanos>,
    /// Amount by which J of the root may bring its jobs closer together.
    jitter: Nanos,
    /// Jobs on the path of spawns, the root first.
    path: Vec<Step>,
}

/// All paths by which a task is released. Most tasks have one, which needs no allocation.
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
    /// Number of jobs of the next step that it spawns.
    most: u64,
    /// Least execution time of its job before the first spawn.
    earliest: Nanos,
    /// Latest end of the job after the nominal release of the root.
    end: Nanos,
    /// True if it may hold a resource at the spawn.
    in_section: bool,
}

impl Release {
    /// Creates the release of a task with its own pattern.
    pub(crate) fn of_root(system: &System, at: usize, stream: &Stream) -> Self {
        let task = &system.tasks[at];
        let offset = task.offset.filter(|_| task.is_periodic && stream.is_sporadic());
        Self { stream: stream.clone(), offset, jitter: task.closer(), path: Vec::new() }
    }

    /// Creates the release of a task spawned by jobs of `spawner`, whose release this is.
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

    /// Returns the stream without the jitter that a response of the task itself includes.
    pub(crate) fn own(&self) -> Stream {
        self.stream.clone().with_jitter(self.path.last().map_or(0, |last| last.end))
    }

    /// Returns the releases in a busy window of this level of a partition, if the task is spawned.
    fn in_window(&self, system: &System, partition: usize, level: u32) -> Stream {
        let jitter = match self.outside(system, partition, level) {
            Some(last) => self.path[last].end,
            None => self.jitter,
        };
        self.stream.clone().with_jitter(jitter)
    }

    /// Returns the last job of the path that need not be in the same busy window as the job that it
    /// leads to.
    fn outside(&self, system: &System, partition: usize, level: u32) -> Option<usize> {
        let keeps = |step: &&Step| {
            let task = &system.tasks[step.task];
            task.partition == partition && task.level >= level && task.suspension.is_none()
        };
        let retained = self.path.iter().rev().take_while(keeps).count();
        (self.path.len() - retained).checked_sub(1)
    }

    /// Returns the end of the path, starting with the last job outside the busy window if that job
    /// is below the level.
    fn path_from_below(&self, system: &System, partition: usize, level: u32) -> Option<&[Step]> {
        let path = &self.path[self.outside(system, partition, level)?..];
        let caller = &system.tasks[path[0].task];
        (caller.partition == partition && caller.level < level).then_some(path)
    }

    /// Returns the least time from the instant that counts as its release, in a busy window of a
    /// task of this level, to the spawn: jobs that must lie in the window first run up to their
    /// spawns.
    pub(crate) fn spawned_after(&self, system: &System, partition: usize, level: u32) -> Nanos {
        let first = self.outside(system, partition, level).map_or(0, |last| last + 1);
        self.path[first..].iter().map(|step| step.earliest).fold(0, Nanos::saturating_add)
    }

    /// Returns the task whose jobs spawn it, or start the path to it, from below this level of a
    /// partition, and whether they may hold a resource at that point.
    pub(crate) fn caller_from_below(
        &self,
        system: &System,
        partition: usize,
        level: u32,
    ) -> Option<(usize, bool)> {
        self.path_from_below(system, partition, level).map(|path| (path[0].task, path[0].in_section))
    }

    /// Returns the tasks of the path, the root first.
    pub(crate) fn callers(&self) -> impl Iterator<Item = usize> {
        self.path.iter().map(|step| step.task)
    }

    /// Returns whether both paths are equal up to this index and the task there.
    pub(crate) fn starts_like(&self, other: &Self, place: usize) -> bool {
        self.path[..place] == other.path[..place] && self.path[place].task == other.path[place].task
    }

    /// Returns the number of final jobs per job at this index of the path.
    pub(crate) fn jobs_after(&self, place: usize) -> u64 {
        self.path.iter().skip(place).fold(1, |jobs: u64, step| jobs.saturating_mul(step.most))
    }

    /// Returns whether all jobs of the path from this index on must lie in the busy window of the
    /// job.
    pub(crate) fn is_in_window_from(
        &self,
        system: &System,
        partition: usize,
        level: u32,
        place: usize,
    ) -> bool {
        self.outside(system, partition, level).is_none_or(|outside| outside < place)
    }

    /// Returns whether the root and all its spawns must lie in the window of the job.
    pub(crate) fn must_lie_in_window(&self, system: &System, partition: usize, level: u32) -> bool {
        self.is_spawned() && self.outside(system, partition, level).is_none()
    }

    /// Returns the task at the start of the path, if any.
    pub(crate) fn root(&self) -> Option<usize> {
        self.path.first().map(|step| step.task)
    }

    /// Returns the latest end, after the release of the root, of the job below this level that
    /// starts the path to it, if any.
    pub(crate) fn latest_end_of_lower_caller(
        &self,
        system: &System,
        partition: usize,
        level: u32,
    ) -> Option<Nanos> {
        self.path_from_below(system, partition, level).map(|path| path[0].end)
    }

    /// Returns whether this and the other task are spawned by the same job, which lies in this
    /// job's window and may not spawn both in full: then that job spawns one fewer of the others.
    fn excludes_spawn_of(&self, system: &System, own: usize, other: &Self) -> bool {
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

    /// Returns whether the job that starts `path`, a suffix of the path of this release, has ended
    /// before a later job of the root is ready, and the root is the task `at`.
    fn ends_before_next_job_of(&self, system: &System, at: usize, path: &[Step]) -> bool {
        let Some(own) = system.tasks[at].arrivals.as_ref().filter(|_| self.path[0].task == at) else {
            return false;
        };
        let next = own.distance(2).map(|next| next.saturating_add(system.tasks[at].delay));
        next.is_some_and(|next| path[0].end <= next)
    }

    /// Returns whether jobs of the task `at` run on the stack of their spawner, without a thread
    /// switch.
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

/// Returns the releases of a task, path by path, in a busy window that contains jobs of the task
/// `own`; `None` for releases that are not spawned.
///
/// `own_release` is the release of `own`, if it is spawned by one path only and differs from this
/// task.
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
        if releases[at].ends_before_next_job_of(system, own, path) {
            continue;
        }
        first_from_below.get_or_insert(at);
        // One job of a caller takes each path once, regardless of its root.
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
                    && own_release.excludes_spawn_of(system, own, release)
            });
            Some(if is_in_place { stream.one_fewer() } else { stream })
        }
    };
    releases.iter().enumerate().map(in_window).collect()
}

/// Returns the latest end of a job of `at`, spawned by `last`, after the nominal release of the
/// root.
fn end(system: &System, last: Step, at: usize, response: Nanos, since_root: Option<Nanos>) -> Nanos {
    let (caller, task) = (&system.tasks[last.task], &system.tasks[at]);
    let runs_on_one_cpu = !matches!(system.partitions[task.partition].executor, Executor::Global { .. });
    // The job is called, and its caller resumes after its end.
    if caller.partition == task.partition && task.level > caller.level && runs_on_one_cpu {
        return last.end;
    }
    last.end.saturating_add(response).min(since_root.unwrap_or(Nanos::MAX))
}

/// Computes the releases of every task, from its own pattern or from its spawners.
pub(crate) fn releases(
    system: &System,
    responses: &[Result<Nanos, NoBound>],
    ends: &[Option<Nanos>],
) -> Vec<Result<Releases, NoBound>> {
    let own = |(at, task): (usize, &Task)| match &task.arrivals {
        Some(stream) => Ok(Releases::One(Release::of_root(system, at, stream))),
        None => Err(NoBound::NoArrivals),
    };
    let mut known: Vec<Result<Releases, NoBound>> = system.tasks.iter().enumerate().map(own).collect();
    let mut spawners: Vec<Vec<(usize, Spawn)>> = vec![Vec::new(); system.tasks.len()];
    // Number of spawns by tasks whose releases are unknown.
    let mut waits_for = vec![0; system.tasks.len()];
    let is_unknown = |at: usize| system.tasks[at].arrivals.is_none();
    for (spawner, task) in system.tasks.iter().enumerate() {
        for spawn in task.spawns.iter().filter(|spawn| is_unknown(spawn.task)) {
            spawners[spawn.task].push((spawner, *spawn));
            waits_for[spawn.task] += usize::from(is_unknown(spawner));
        }
    }
    // A task that spawns itself is never ready.
    let mut ready: Vec<usize> =
        (0..system.tasks.len()).filter(|&at| is_unknown(at) && waits_for[at] == 0).collect();
    let mut steps = 0;
    while let Some(at) = ready.pop() {
        known[at] = inherited(system, responses, ends, &known, &spawners[at], &mut steps);
        for spawn in system.tasks[at].spawns.iter().filter(|spawn| is_unknown(spawn.task)) {
            waits_for[spawn.task] -= 1;
            if waits_for[spawn.task] == 0 {
                ready.push(spawn.task);
            }
        }
    }
    known
}

/// Returns the releases that a task inherits from its spawners. `steps` is the length of all paths
/// so far.
fn inherited(
    system: &System,
    responses: &[Result<Nanos, NoBound>],
    ends: &[Option<Nanos>],
    known: &[Result<Releases, NoBound>],
    spawners: &[(usize, Spawn)],
    steps: &mut usize,
) -> Result<Releases, NoBound> {
    let mut inherited = Vec::new();
    for &(spawner, spawn) in spawners {
        let Ok(releases) = &known[spawner] else { return Err(NoBound::DependsOn(spawner)) };
        let Ok(response) = responses[spawner] else { return Err(NoBound::DependsOn(spawner)) };
        for release in releases {
            *steps += release.path.len() + 1;
            if *steps > MAX_STEPS {
                return Err(NoBound::NoAnalysis(format!(
                    "tasks spawn each other on paths of more than {MAX_STEPS} steps together, which an analysis of each \
                     path excludes; give one of them a `min_interval`, which bounds its releases by any spawner"
                )));
            }
            inherited.push(release.spawned(system, spawner, spawn, response, ends[spawner]));
        }
    }
    if inherited.is_empty() { Err(NoBound::NoArrivals) } else { Ok(Releases::Many(inherited)) }
}

/// Returns the latest end of the last job of a spawned chain after the nominal release of its first
/// task.
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
pub(crate) mod tests {
    use crate::bound::{Bound, NoBound, Outcome};
    use crate::system::System;
    use crate::{analyze, schema};

    /// `sample` calls `control`, or leaves the call to `filter`; its jitter exceeds its period.
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
        analyze(&system).tasks.into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn one_lower_job_spawns_all_callers() {
        let bounds = bounds(TASKS);
        let control = &bounds[0];
        // Two by a job of `sample`, or one by a job of `filter`, but not all calls of all jobs of
        // both.
        assert_eq!((control.own.jobs, control.response), (2, 6_000));
        // At its own level, late jobs of `sample` arrive together, and each calls two. One more may
        // come from `filter`.
        assert_eq!(bounds[1].interference[0].work.jobs, 2 * 3 + 1);
    }

    /// `sample` leaves work to `filter`, which calls `control` before or after the next `sample`.
    #[test]
    fn ended_chain_does_not_meet_next_root_job() {
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
    fn only_callers_hold_locks_that_block_called_tasks() {
        let section = "sections = [{ resource = \"r\", hold = \"1us\" }]";
        let held = |by: &str, text: &str| {
            let (before, after) = text.split_once(&format!("name = \"{by}\"\n")).unwrap();
            format!("{before}name = \"{by}\"\n{section}\n{after}")
        };
        let low = "[[task]]\nname = \"low\"\nlevel = 1\nexecution = \"2us\"\nperiod = \"900us\"\n";
        let text = held("low", &held("control", &format!("{}{low}", TASKS.replace(section, ""))));
        let found = bounds(&text);
        // `sample` would not run if `low` held the lock.
        assert!(found[0].blocking.is_none() && found[1].blocking.is_some());
        let by_caller = bounds(&held("filter", &text));
        assert_eq!(by_caller[0].blocking.map(|it| it.time), Some(1_000));
    }

    /// Returns a set with 2 tasks per level, each of which spawns both of the next level, so that
    /// each level doubles the paths. The tasks of the `periodic` lowest levels have a period.
    pub(crate) fn doubling_paths(partition: &str, levels: u32, periodic: u32) -> System {
        let mut text = format!("schema = \"punctual-taskset/1\"\n{partition}");
        for (level, side) in (1..=levels).flat_map(|level| [(level, 'a'), (level, 'b')]) {
            text += &format!("[[task]]\nname = \"{side}{level}\"\nlevel = {level}\nexecution = \"1ns\"\n");
            if level <= periodic {
                text += "period = \"1s\"\n";
            }
            if level < levels {
                let spawn = |side| format!("{{ task = \"{side}{}\", most = 1 }}", level + 1);
                text += &format!("spawns = [{}, {}]\n", spawn('a'), spawn('b'));
            }
        }
        schema::read("f.toml", &text).unwrap()
    }

    #[test]
    fn limits_paths_of_spawns() {
        let chain = |levels| doubling_paths("", levels, 1);
        assert!(analyze(&chain(6)).tasks.iter().all(Result::is_ok));
        let system = chain(14);
        let outcomes = analyze(&system).tasks;
        let is_limit =
            |outcome: &Outcome| matches!(outcome, Err(NoBound::NoAnalysis(why)) if why.contains("65536"));
        assert!(outcomes.iter().any(is_limit), "{outcomes:?}");
    }

    #[test]
    fn counts_further_lower_jobs_during_suspension() {
        let waits = TASKS.replace(
            "execution = \"3us\"",
            "execution = \"3us\"\nsuspension = { total = \"1us\", times = 1 }",
        );
        assert!(bounds(&waits)[0].own.jobs > 2, "{:?}", bounds(&waits)[0]);
    }
}

//! Branches: jobs that spawn one alternative or another, and never everything that their task may
//! spawn.
//!
//! *Baruah, "Dynamic- and Static-Priority Scheduling of Recurring Real-Time Tasks", Real-Time
//! Systems 24, 2003*: each job of a task with branches takes one of them, so it demands no more
//! than its most demanding branch. Here a branch is a spawned task with its transitive spawns, and
//! a job takes at most a given number of branches.
//!
//! A busy window counts on this limit only if the spawning job and its transitive spawns must lie
//! in the window, and all of them are above the level under analysis: then each branch occurs as
//! often as there are such jobs. For a task that is itself in a branch, the spawning job is known:
//! see [`Release::excludes_spawn_of`].

use crate::demand::Source;
use crate::release::Release;
use crate::system::{Executor, System, Task};
use crate::time::Nanos;

/// Returns the number of spawns of a job in total, if it is below the sum of its spawn limits.
fn limit(system: &System, at: usize) -> Option<u64> {
    let all = system.tasks[at].spawns.iter().fold(0, |sum: u64, spawn| sum.saturating_add(spawn.most));
    system.tasks[at].most_spawns.filter(|&most| most < all)
}

/// A release whose path leads through a limited task.
struct Member<'a> {
    /// Index among the sources.
    at: usize,
    task: usize,
    release: &'a Release,
    /// Index of the limited task in the path.
    place: usize,
}

impl Member<'_> {
    /// Returns the branch that contains the release.
    fn branch(&self) -> usize {
        self.release.callers().nth(self.place + 1).unwrap_or(self.task)
    }
}

/// Removes from the sources of a window of `own` the branches that no job spawns together with the
/// others. `releases` lists the releases of the sources with their tasks.
pub(crate) fn limit_all(system: &System, own: usize, releases: &[(usize, &Release)], sources: &mut [Source]) {
    if system.partitions[system.tasks[own].partition].executor != Executor::Preemptive {
        return;
    }
    for caller in 0..system.tasks.len() {
        let Some(most) = limit(system, caller) else { continue };
        let mut rest: Vec<Member<'_>> = Vec::new();
        for (at, &(task, release)) in releases.iter().enumerate() {
            let positions = release.callers().enumerate().filter(|&(_, it)| it == caller);
            rest.extend(positions.map(|(place, _)| Member { at, task, release, place }));
        }
        // Groups the releases that lead to one job of the caller, by path.
        while let Some(first) = rest.first() {
            let way = (first.release, first.place);
            let (members, others) = rest
                .into_iter()
                .partition::<Vec<_>, _>(|it| it.place == way.1 && it.release.starts_like(way.0, way.1));
            limit_one(system, own, caller, most, &members, sources);
            rest = others;
        }
    }
}

fn limit_one(
    system: &System,
    own: usize,
    caller: usize,
    most: u64,
    members: &[Member<'_>],
    sources: &mut [Source],
) {
    let Task { partition, level, .. } = system.tasks[own];
    let counts = |it: &&Member<'_>| system.tasks[it.task].partition == partition;
    let is_plain = |it: &Member<'_>| {
        let callers = || it.release.callers().skip(it.place + 1);
        system.tasks[it.task].level > level
            && it.task != own
            && it.release.is_in_window_from(system, partition, level, it.place)
            && callers().all(|between| limit(system, between).is_none() && between != own)
    };
    let is_below = |it: &Member<'_>| system.tasks[it.task].level < level;
    if !members.iter().filter(counts).all(|it| is_below(it) || is_plain(it)) {
        return;
    }
    let above = || members.iter().filter(counts).filter(|it| !is_below(it));
    // Cost of one job of a branch with its transitive spawns.
    let cost = |branch: usize| {
        let its = above().filter(|it| it.branch() == branch);
        its.fold(0, |sum: Nanos, it| {
            let jobs = it.release.jobs_after(it.place + 1);
            sum.saturating_add(sources[it.at].cost().saturating_mul(jobs))
        })
    };
    let mut branches: Vec<(usize, u64, Nanos)> =
        system.tasks[caller].spawns.iter().map(|it| (it.task, it.most, cost(it.task))).collect();
    branches.sort_by_key(|&(.., cost)| std::cmp::Reverse(cost));
    let mut left = most;
    for (branch, most, _) in branches {
        let taken = most.min(left);
        left -= taken;
        for it in above().filter(|it| it.branch() == branch) {
            let source = &mut sources[it.at];
            source.own = source.own.clone().share(taken, most);
            source.all = source.all.clone().share(taken, most);
        }
    }
}

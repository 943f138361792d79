//! What a job spawns if it never spawns all that its task may: one thing or the other.
//!
//! *Baruah, "Dynamic- and Static-Priority Scheduling of Recurring Real-Time Tasks", Real-Time Systems 24, 2003*: of a task with branches,
//! each job takes one of them, so it demands no more than the branch that takes longest. Here a branch is what is spawned, with all that
//! it leads to, and a job spawns so many of them at most.
//!
//! Counted on in a busy window only if the job that spawns has to be in the window, with all that it leads to, and all of that is above the
//! level in question: then there are as many of each branch as there are such jobs. For a task that is itself in a branch, its job's own
//! is known: see [`Release::is_in_place_of`].

use crate::demand::Source;
use crate::release::Release;
use crate::system::{Executor, System, Task};
use crate::time::Nanos;

/// How many a job of a task spawns in all, if that is less than its spawns allow.
fn limit(system: &System, at: usize) -> Option<u64> {
    let all = system.tasks[at].spawns.iter().fold(0, |sum: u64, spawn| sum.saturating_add(spawn.most));
    system.tasks[at].most_spawns.filter(|&most| most < all)
}

/// A release that leads through a limited task.
struct Member<'a> {
    /// Its place among the sources.
    at: usize,
    task: usize,
    release: &'a Release,
    /// Where the limited task is in its path.
    place: usize,
}

impl Member<'_> {
    /// The branch that it is in.
    fn branch(&self) -> usize {
        self.release.callers().nth(self.place + 1).unwrap_or(self.task)
    }
}

/// Takes from the sources of a window of `own` what no job spawns beside the rest. `releases` are those of the sources, with their tasks.
pub(crate) fn limit_all(system: &System, own: usize, releases: &[(usize, &Release)], sources: &mut [Source]) {
    if system.partitions[system.tasks[own].partition].executor != Executor::Preemptive {
        return;
    }
    for caller in 0..system.tasks.len() {
        let Some(most) = limit(system, caller) else { continue };
        let mut rest: Vec<Member<'_>> = Vec::new();
        for (at, &(task, release)) in releases.iter().enumerate() {
            let places = release.callers().enumerate().filter(|&(_, it)| it == caller);
            rest.extend(places.map(|(place, _)| Member { at, task, release, place }));
        }
        // Those that lead to one job of the caller, by one way after the other.
        while let Some(first) = rest.first() {
            let way = (first.release, first.place);
            let (members, others) = rest
                .into_iter()
                .partition::<Vec<_>, _>(|it| it.place == way.1 && it.release.comes_like(way.0, way.1));
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
    // What a job of a branch takes, with all that it leads to.
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

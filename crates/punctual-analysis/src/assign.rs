//! Level assignment: finds levels with which every deadline is met, if they exist.
//!
//! *Audsley, "On Priority Assignment in Fixed Priority Scheduling", Information Processing Letters
//! 79(1), 2001* (first 1991): the lowest level goes to any task that meets its deadline there,
//! regardless of the order of the tasks above; then the next. The algorithm is optimal as long as a
//! response depends only on the set of tasks above, and not on their order. Blocking under SRP
//! satisfies this condition: it depends on which tasks are below and which are not.
//!
//! If responses depend on each other (spawns, self-suspension) or the test does (the global
//! executor), levels follow the order of `D − J`, *Leung & Whitehead, "On the Complexity of
//! Fixed-Priority Scheduling of Periodic Real-Time Tasks", Performance Evaluation 2(4), 1982*, a
//! good heuristic.

use std::cmp::Reverse;

use crate::analyze::first_miss;
use crate::system::{Executor, System};
use crate::time::Nanos;
use crate::work;

/// Levels of all tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assignment {
    /// The level of each task, by task index.
    pub levels: Vec<u32>,
    /// True if these levels meet every deadline.
    pub is_schedulable: bool,
    /// True if the search was exhaustive: if these levels fail, all do.
    pub is_optimal: bool,
}

/// Assigns levels, all different within a partition.
#[must_use]
pub fn assign(system: &System) -> Assignment {
    let is_optimal = system.tasks.iter().all(|task| task.suspension.is_none() && task.spawns.is_empty())
        && !system.partitions.iter().any(|partition| matches!(partition.executor, Executor::Global { .. }));
    let mut scratch = system.clone();
    for partition in 0..system.partitions.len() {
        monotonic(&mut scratch, partition);
        if is_optimal {
            audsley(&mut scratch, partition);
        }
    }
    scratch.update_ceilings();
    let levels = scratch.tasks.iter().map(|task| task.level).collect();
    Assignment { levels, is_schedulable: first_miss(&scratch, None).is_none(), is_optimal }
}

/// Returns the tasks of a partition, longest deadline first.
fn by_deadline(system: &System, partition: usize) -> Vec<usize> {
    let mut tasks: Vec<usize> =
        (0..system.tasks.len()).filter(|&at| system.tasks[at].partition == partition).collect();
    let slack = |at: usize| {
        let task = &system.tasks[at];
        task.deadline.map_or(Nanos::MAX, |deadline| deadline.saturating_sub(task.jitter))
    };
    // Ties keep their order.
    tasks.sort_by_key(|&at| (Reverse(slack(at)), system.tasks[at].level));
    tasks
}

fn monotonic(system: &mut System, partition: usize) {
    for (at, task) in by_deadline(system, partition).into_iter().enumerate() {
        system.tasks[task].level = at as u32 + 1;
    }
}

fn audsley(system: &mut System, partition: usize) {
    let mut left = by_deadline(system, partition);
    // The deadlines of other tasks do not affect which task fits at a level.
    let deadlines: Vec<Option<Nanos>> = system.tasks.iter_mut().map(|task| task.deadline.take()).collect();
    let mut level = 1;
    while !left.is_empty() {
        let found = (0..left.len()).find(|&place| {
            work::count(system.resources.len() * system.partitions.len() + system.tasks.len());
            if work::is_exceeded() {
                return true;
            }
            for &task in &left {
                system.tasks[task].level = level + 1;
            }
            let task = left[place];
            system.tasks[task].level = level;
            system.update_ceilings();
            system.tasks[task].deadline = deadlines[task];
            let misses = first_miss(system, Some(task)).is_some();
            system.tasks[task].deadline = None;
            !misses
        });
        // If no task fits here, no assignment exists; the task with the longest deadline comes
        // closest.
        let task = left.remove(found.unwrap_or(0));
        system.tasks[task].level = level;
        level += 1;
    }
    for (task, deadline) in system.tasks.iter_mut().zip(deadlines) {
        task.deadline = deadline;
    }
}

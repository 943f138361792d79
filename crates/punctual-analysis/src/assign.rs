//! Levels with which every deadline is met, if there are any.
//!
//! *Audsley, "On Priority Assignment in Fixed Priority Scheduling", Information Processing Letters 79(1), 2001* (first 1991): the
//! lowest level goes to any task that meets its deadline there, whatever the order of those above; then the next. It finds
//! levels whenever there are some, as long as a response depends on which tasks are above and not on their order. Blocking under
//! SRP is of that kind: it depends on which tasks are below, and on which are not.
//!
//! Where responses depend on each other (spawns, waiting) or the test does (the global executor), levels are in the order of
//! `D − J`, *Leung & Whitehead, "On the Complexity of Fixed-Priority Scheduling of Periodic Real-Time Tasks", Performance
//! Evaluation 2(4), 1982*, which is a good guess.

use std::cmp::Reverse;

use crate::analyse::first_miss;
use crate::system::{Executor, System};
use crate::time::Nanos;

/// Levels for every task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assignment {
    /// By task.
    pub levels: Vec<u32>,
    /// Whether every deadline is met with them.
    pub is_schedulable: bool,
    /// Whether there are no levels if these do not do.
    pub is_optimal: bool,
}

/// Finds levels, all different within a partition.
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

/// The tasks of a partition, those with the longest deadlines first.
fn by_deadline(system: &System, partition: usize) -> Vec<usize> {
    let mut tasks: Vec<usize> =
        (0..system.tasks.len()).filter(|&at| system.tasks[at].partition == partition).collect();
    let slack = |at: usize| {
        let task = &system.tasks[at];
        task.deadline.map_or(Nanos::MAX, |deadline| deadline.saturating_sub(task.jitter))
    };
    // Tasks with the same keep their order.
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
    // Deadlines of others do not matter for the question who may be at a level.
    let deadlines: Vec<Option<Nanos>> = system.tasks.iter_mut().map(|task| task.deadline.take()).collect();
    let mut level = 1;
    while !left.is_empty() {
        let found = (0..left.len()).find(|&place| {
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
        // If nobody can be here, there are no levels for all; the one with the longest deadline is nearest to it.
        let task = left.remove(found.unwrap_or(0));
        system.tasks[task].level = level;
        level += 1;
    }
    for (task, deadline) in system.tasks.iter_mut().zip(deadlines) {
        task.deadline = deadline;
    }
}

//! How far a schedulable system is from one that is not: by bisection, with the same test that gives the verdict.
//!
//! *Bini, Di Natale, Buttazzo, "Sensitivity Analysis for Fixed-Priority Real-Time Systems", Real-Time Systems 39, 2008* says what
//! these margins are good for; they are found there in closed form, for a model without blocking and jitter.
//!
//! Every margin is met: with the value that is given here all deadlines are, and with one that is larger by the resolution,
//! a thousandth of its size, one is missed. That a larger value is never better holds for the tests used here.

use crate::analyse::first_miss;
use crate::arrival::Stream;
use crate::system::System;
use crate::time::{LONGEST, Nanos, Ratio};

/// Nothing is tried beyond this many times its value.
const MOST: u64 = 1_000;

/// The margins of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Margins {
    /// All executions, with all holds.
    pub all: AllExecutions,
    /// Of each task; empty if the system is not schedulable.
    pub tasks: Vec<TaskMargins>,
}

/// How far all executions may grow together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllExecutions {
    /// The largest factor with which all deadlines are met, in thousandths; 0 if they are missed anyhow.
    pub permille: u64,
    /// The task that misses first beyond it; none if the factor is the largest that was tried.
    pub first: Option<usize>,
}

/// How far one value may change while the others stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What it is.
    pub now: Nanos,
    /// What it may become.
    pub until: Nanos,
    /// The resolution: with so much more a deadline is missed.
    pub step: Nanos,
    /// The task that misses first beyond it; none if it may be anything that was tried.
    pub first: Option<usize>,
}

/// The margins of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskMargins {
    /// Its C.
    pub execution: Limit,
    /// The least time between releases, if it has one of its own. It may become smaller.
    pub period: Option<Limit>,
    /// Its J.
    pub jitter: Limit,
    /// The hold of each of its sections; its C grows with it. What is never locked stays 0.
    pub holds: Vec<Limit>,
}

impl AllExecutions {
    /// How much larger than now, in percent; less than 0 if executions have to shrink.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.permille as f64 / 10.0 - 100.0
    }
}

/// How far all executions may grow together.
#[must_use]
pub fn all_executions(system: &System) -> AllExecutions {
    let mut scratch = system.clone();
    let mut last = None;
    let permille = largest(0, MOST * 1_000, 1_000, 1, |permille| {
        scratch.clone_from(system);
        scratch.scale(Ratio { numerator: permille, denominator: 1_000 });
        meets(&scratch, &mut last)
    });
    AllExecutions { permille: permille.unwrap_or(0), first: last }
}

/// All margins.
#[must_use]
pub fn margins(system: &System) -> Margins {
    let all = all_executions(system);
    let is_schedulable = all.permille >= 1_000;
    let tasks = if is_schedulable { 0..system.tasks.len() } else { 0..0 };
    let mut scratch = system.clone();
    Margins { all, tasks: tasks.map(|at| of_task(system, &mut scratch, at)).collect() }
}

fn of_task(system: &System, scratch: &mut System, at: usize) -> TaskMargins {
    let task = &system.tasks[at];
    // Of nothing, a thousandth says nothing.
    let scale = task.deadline.or(task.arrivals.as_ref().map(Stream::window)).unwrap_or(0);
    let step = |now: Nanos| (now.max(scale) / 1_000).max(1);
    let execution =
        grown(scratch, task.execution, step(task.execution), |it, value| it.tasks[at].execution = value);
    let jitter = grown(scratch, task.jitter, step(task.jitter), |it, value| it.tasks[at].jitter = value);
    let holds = task.sections.iter().enumerate().map(|(index, section)| {
        if section.times == 0 {
            return Limit { now: 0, until: 0, step: 1, first: None };
        }
        grown(scratch, section.hold, step(section.hold), |it, value| {
            let longer = (value - section.hold).saturating_mul(section.times);
            it.tasks[at].sections[index].hold = value;
            it.tasks[at].execution = task.execution.saturating_add(longer);
        })
    });
    let holds = holds.collect();
    let period = task.arrivals.as_ref().map(|arrivals| {
        let mut last = None;
        // How many times as often, in thousandths.
        let rate = largest(1_000, MOST * 1_000, 1_000, 1, |rate| {
            scratch.tasks[at].arrivals = Some(arrivals.compressed(1_000, rate));
            meets(scratch, &mut last)
        });
        scratch.tasks[at].arrivals = Some(arrivals.clone());
        let until = arrivals.compressed(1_000, rate.unwrap_or(1_000)).window();
        Limit { now: arrivals.window(), until, step: until.div_ceil(1_000) + 1, first: last }
    });
    TaskMargins { execution, period, jitter, holds }
}

/// The largest value with which all deadlines are met. What `set` has set is as before in the end.
fn grown(scratch: &mut System, now: Nanos, step: Nanos, mut set: impl FnMut(&mut System, Nanos)) -> Limit {
    let mut last = None;
    let until = largest(now, LONGEST, now, step, |value| {
        set(scratch, value);
        meets(scratch, &mut last)
    });
    set(scratch, now);
    Limit { now, until: until.unwrap_or(now), step, first: last }
}

/// Whether all deadlines are met; otherwise notes who misses, to be looked at first the next time.
fn meets(system: &System, last: &mut Option<usize>) -> bool {
    let miss = first_miss(system, *last);
    *last = miss.or(*last);
    miss.is_none()
}

/// The largest value from `low` to `high` that passes, to a `step`; `low` is not tried if `start` passes. None if not even
/// `low` does.
fn largest(low: u64, high: u64, start: u64, step: u64, mut passes: impl FnMut(u64) -> bool) -> Option<u64> {
    let (mut good, mut bad);
    if passes(start) {
        good = start;
        let mut stride = (start / 8).max(step);
        loop {
            let next = good.saturating_add(stride).min(high);
            if next == good {
                return Some(good);
            }
            if !passes(next) {
                bad = next;
                break;
            }
            good = next;
            stride = stride.saturating_mul(2);
        }
    } else if start > low && passes(low) {
        (good, bad) = (low, start);
    } else {
        return None;
    }
    while bad - good > step {
        let middle = good + (bad - good) / 2;
        if passes(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Some(good)
}

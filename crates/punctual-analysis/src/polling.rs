//! A partition whose one thread chooses the next job when one has ended.
//!
//! *Davis, Burns, Bril, Lukkien, "Controller Area Network (CAN) Schedulability Analysis: Refuted, Revisited and Revised",
//! Real-Time Systems 35, 2007*: a job starts at the least instant until which all that goes first has run, and then runs to its
//! end; every job of the busy window has to be looked at, not only the first. Exact for tasks that spawn no higher ones.
//!
//! A job that spawns a higher one of its partition calls it there, and what has become ready meanwhile may run then. Where that
//! is depends on the job, so its bound counts what comes during all of it; a lower job may go on until its end, or that of
//! what it calls. Sufficient.

use crate::system::{Executor, System};
use crate::time::Nanos;

/// Whether a job, once started, is displaced by nothing but interrupts.
pub(crate) fn runs_to_end(system: &System, at: usize) -> bool {
    let task = &system.tasks[at];
    let has_interrupts = || {
        let release = system.partitions[task.partition].overheads.release;
        release > 0 || system.interrupts.iter().any(|interrupt| interrupt.partition == task.partition)
    };
    system.partitions[task.partition].executor == Executor::Polling
        && task.suspension.is_none()
        && !calls(system, at).any(|_| true)
        // An interrupt stops a job in the middle: the sufficient bound counts all of them.
        && !has_interrupts()
}

/// The tasks that jobs of a task run as calls, and how many of each.
fn calls(system: &System, at: usize) -> impl Iterator<Item = (usize, u64)> {
    let caller = &system.tasks[at];
    let is_called = move |callee: usize| {
        let callee = &system.tasks[callee];
        callee.partition == caller.partition && callee.level > caller.level
    };
    caller.spawns.iter().filter(move |spawn| is_called(spawn.task)).map(|spawn| (spawn.task, spawn.most))
}

/// The longest time for which a job and what it calls below `level` may go on. `cost` is that of one job of a task.
pub(crate) fn block(system: &System, at: usize, level: u32, cost: &impl Fn(usize) -> Nanos) -> Nanos {
    let below = calls(system, at).filter(|&(callee, _)| system.tasks[callee].level < level);
    let called = below.map(|(callee, most)| block(system, callee, level, cost).saturating_mul(most));
    called.fold(cost(at), Nanos::saturating_add)
}

//! Analysis of a polling partition, whose single thread selects the next job when one has ended.
//!
//! *Davis, Burns, Bril, Lukkien, "Controller Area Network (CAN) Schedulability Analysis: Refuted,
//! Revisited and Revised", Real-Time Systems 35, 2007*: a job starts at the earliest instant at
//! which all work ahead of it has run, and then runs to completion. Every job of the busy window
//! must be examined, not only the first. Exact for tasks that spawn no higher ones.
//!
//! A job that spawns a higher job of its partition calls it at that point, and jobs that became
//! ready in the meantime may run too. The position of the spawn is unknown, so the bound counts all
//! arrivals during the whole job. A lower job may continue to its end, or to that of the jobs that
//! it calls. Sufficient.

use crate::system::{Executor, System};
use crate::time::Nanos;
use crate::work;

/// Returns whether a started job is displaced only by interrupts.
pub(crate) fn runs_to_end(system: &System, at: usize) -> bool {
    let task = &system.tasks[at];
    let has_interrupts = || {
        let release = system.partitions[task.partition].overheads.release;
        release > 0 || system.interrupts.iter().any(|interrupt| interrupt.partition == task.partition)
    };
    system.partitions[task.partition].executor == Executor::Polling
        && task.suspension.is_none()
        && !calls(system, at).any(|_| true)
        // An interrupt stops a job in the middle; the sufficient bound counts all interrupts.
        && !has_interrupts()
}

/// Returns the tasks that jobs of a task run as calls, with the number of each.
fn calls(system: &System, at: usize) -> impl Iterator<Item = (usize, u64)> {
    let caller = &system.tasks[at];
    let is_called = move |callee: usize| {
        let callee = &system.tasks[callee];
        callee.partition == caller.partition && callee.level > caller.level
    };
    caller.spawns.iter().filter(move |spawn| is_called(spawn.task)).map(|spawn| (spawn.task, spawn.most))
}

/// Returns the longest time for which a job and the jobs that it calls below `level` may run.
/// `cost` is the cost of one job of a task.
pub(crate) fn block(system: &System, at: usize, level: u32, cost: &impl Fn(usize) -> Nanos) -> Nanos {
    // The number of ways to call a job may grow exponentially with that of the tasks.
    work::count(1 + system.tasks[at].spawns.len());
    if work::is_exceeded() {
        return 0;
    }
    let below = calls(system, at).filter(|&(callee, _)| system.tasks[callee].level < level);
    let called = below.map(|(callee, most)| block(system, callee, level, cost).saturating_mul(most));
    called.fold(cost(at), Nanos::saturating_add)
}

#[cfg(test)]
mod tests {
    use crate::analyze;
    use crate::release::tests::doubling_paths;
    use crate::work::{self, TooMuchWork};

    #[test]
    fn limits_work_for_ways_to_call_a_job() {
        let polling = "[[partition]]\nname = \"p\"\nexecutor = \"polling\"\n";
        let system = doubling_paths(polling, 20, 20);
        let limit = 100_000;
        assert_eq!(work::limited(limit, || analyze(&system)), Err(TooMuchWork { limit }));
    }
}

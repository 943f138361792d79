//! Analysis of the global executor: one thread per level, on any CPU.
//!
//! *Bertogna & Cirinei, "Response-Time Analysis for Globally Scheduled Symmetric Multiprocessor
//! Platforms", RTSS 2007*: a job is displaced only while all `m` CPUs run higher jobs, so by at
//! most the `m`th part of what these can run in its window, counting of each no more than displaces
//! it. Sufficient, for sporadic tasks that end before their next release.
//!
//! *Guan, Stigge, Yi, Yu, "New Response Time Bounds for Fixed Priority Multiprocessor Scheduling",
//! RTSS 2009*: a window may be extended to the left for as long as higher jobs keep all CPUs busy.
//! Just before it, one CPU is free, so at most `m` − 1 tasks have a carry-in job; the analysis
//! picks those for which it matters most. All others start with a release in the window. A late
//! release counts from the instant at which the job is ready, so the jobs of a task with jitter J
//! arrive in a window as if it were longer by J.
//!
//! There is no bound for tasks that share locked resources: the executor follows the original
//! Priority Ceiling Protocol on all CPUs at once, with priority inheritance. The published analyses
//! of global locking protocols (PPCP, FMLP, PIP) assume other locking rules, so none of their
//! bounds applies. Bursts, self-suspension and interrupts are not modeled either.

use crate::arrival::Stream;
use crate::bound::{Bound, Exactness, Interference, Interferer, NoBound, Outcome, Work};
use crate::demand::{Source, Steps};
use crate::supply::Supply;
use crate::system::{Protocol, System, Task};
use crate::time::Nanos;

/// Bounds a task; `outcomes` contains those of higher levels.
pub(crate) fn bound(
    system: &System,
    at: usize,
    cpus: u64,
    above_all: &[Source],
    outcomes: &[Outcome],
) -> Outcome {
    let task = &system.tasks[at];
    let none = |reason: String| Err(NoBound::NoAnalysis(reason));
    let partition = &system.partitions[task.partition];
    if partition.supply != Supply::Full {
        return none("the analysis of the global executor knows no CPUs that are partly ours".into());
    }
    if !above_all.is_empty() {
        return none(
            "the analysis of the global executor knows no interrupts and no cost of releases".into(),
        );
    }
    let mut rivals = Vec::new();
    for (other, rival) in system.tasks.iter().enumerate() {
        if rival.partition != task.partition || rival.level < task.level {
            continue;
        }
        if let Some(reason) = unfit(system, rival) {
            return none(format!("`{}` {reason}", rival.name));
        }
        if other != at {
            if rival.level == task.level {
                let names = format!("`{}` and `{}` share a level", task.name, rival.name);
                return none(format!("{names}, and no published analysis fits a queue for each level"));
            }
            let Ok(bound) = &outcomes[other] else { return Err(NoBound::DependsOn(other)) };
            rivals.push((other, bound.response));
        }
    }
    let overhead = partition.overheads.dispatch.saturating_add(partition.overheads.preemption);
    let cost = |at: usize| system.tasks[at].execution.saturating_add(overhead);
    let own = cost(at);
    let mut all = Vec::with_capacity(rivals.len());
    let displaced = |window: Nanos, all: &mut Vec<Displacement>| -> Option<Nanos> {
        let most = window - own + 1;
        all.clear();
        for &(rival, response) in &rivals {
            let task = &system.tasks[rival];
            let period = task.arrivals.as_ref()?.window();
            // Worst case: the first job ends as late as possible and the others arrive as early as
            // possible, or the first arrives at the start.
            let carried =
                workload(window.checked_add(response)?.checked_sub(cost(rival))?, period, cost(rival))?;
            let fresh = workload(window.checked_add(task.jitter)?, period, cost(rival))?;
            let (carried, fresh) = (carried.min(most), fresh.min(most));
            all.push(Displacement { rival, time: fresh, more: carried.saturating_sub(fresh) });
        }
        // These tasks have a carry-in job.
        all.sort_unstable_by_key(|it| std::cmp::Reverse((it.more, it.rival)));
        let carriers = usize::try_from(cpus - 1).unwrap_or(usize::MAX);
        all.iter_mut().take(carriers).for_each(|it| it.time += it.more);
        all.iter().try_fold(0, |sum: Nanos, it| sum.checked_add(it.time))
    };
    let latest = task.arrivals.as_ref().map_or(0, Stream::window);
    let mut window = own;
    let mut steps = Steps::new(rivals.len());
    loop {
        steps.take().ok_or(NoBound::TooLong)?;
        let sum = displaced(window, &mut all).ok_or(NoBound::TooLong)?;
        let next = own.checked_add(sum / cpus).ok_or(NoBound::TooLong)?;
        if next.saturating_add(task.jitter) > latest {
            return none(format!(
                "`{}` may not have ended when it is released again, which the analysis of the global executor excludes",
                task.name
            ));
        }
        if next == window {
            break;
        }
        window = next;
    }
    all.sort_by_key(|it| std::cmp::Reverse(system.tasks[it.rival].level));
    let interference = terms(window - own, cpus, &all);
    Ok(Bound {
        response: window + task.jitter,
        jitter: task.jitter,
        window,
        own: Work { jobs: 1, execution: task.execution, overhead },
        interference,
        exactness: Exactness::Sufficient,
        ..Bound::default()
    })
}

/// Returns why the analysis does not cover a task, if so.
fn unfit(system: &System, task: &Task) -> Option<&'static str> {
    let locks = task.sections.iter().any(|section| {
        let resource = &system.resources[section.resource];
        let is_shared = system
            .tasks
            .iter()
            .filter(|other| other.sections.iter().any(|it| it.resource == section.resource));
        resource.protocol != Protocol::Unlocked && is_shared.count() > 1
    });
    if locks {
        return Some("locks a resource, and no published analysis fits how the global executor locks");
    }
    if task.suspension.is_some() {
        return Some("waits in the middle of its jobs");
    }
    match &task.arrivals {
        Some(arrivals) if arrivals.is_sporadic() => None,
        Some(_) => Some("is released in bursts"),
        None => Some("is released by other tasks"),
    }
}

/// Largest workload of a rival in a window.
struct Displacement {
    rival: usize,
    time: Nanos,
    /// Additional workload if one of its jobs is carried in.
    more: Nanos,
}

/// Returns the largest workload of jobs with one release per period within `span` of the first.
fn workload(span: Nanos, period: Nanos, cost: Nanos) -> Option<Nanos> {
    (span / period).checked_mul(cost)?.checked_add(cost.min(span % period))
}

/// Splits the displacement of a job among its rivals.
fn terms(displaced: Nanos, cpus: u64, rivals: &[Displacement]) -> Vec<Interference> {
    let mut left = displaced;
    let mut carry = 0;
    let mut terms = Vec::new();
    for &Displacement { rival, time, .. } in rivals {
        let all = time + carry;
        carry = all % cpus;
        let share = (all / cpus).min(left);
        left -= share;
        if share > 0 {
            let work = Work { jobs: 0, execution: share, overhead: 0 };
            terms.push(Interference { who: Interferer::Higher(rival), work });
        }
    }
    terms
}

//! The global executor: a thread for each level, on any CPU.
//!
//! *Bertogna & Cirinei, "Response-Time Analysis for Globally Scheduled Symmetric Multiprocessor Platforms", RTSS 2007*: a job is
//! displaced only while all CPUs run higher ones, so by at most the `m`th part of what these can run in its window, of each no
//! more than displaces it. Sufficient, for sporadic tasks that end before their next release.
//!
//! There is no bound for tasks that share locked resources: the executor follows the original Priority Ceiling Protocol on all
//! CPUs at once, with threads that inherit priorities. The published analyses of global locking protocols (PPCP, FMLP, PIP)
//! are of other rules about who may lock when, so none of their bounds holds here. Nor is there one for bursts, waiting, or
//! interrupts, which the analysis does not know.

use crate::arrival::Stream;
use crate::bound::{Bound, Exactness, Interference, NoBound, Outcome, Who, Work};
use crate::demand::{Source, Steps};
use crate::supply::Supply;
use crate::system::{Protocol, System, Task};
use crate::time::Nanos;

/// Bounds a task; `outcomes` has those of higher levels.
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
    let displaced = |window: Nanos, (rival, response): (usize, Nanos)| {
        let most = window - own + 1;
        workload(window, response, cost(rival), system.tasks[rival].arrivals.as_ref())
            .map(|all| all.min(most))
    };
    let latest = task.arrivals.as_ref().map_or(0, Stream::window);
    let mut window = own;
    let mut steps = Steps::new();
    loop {
        steps.take()?;
        let mut sum: Nanos = 0;
        for &rival in &rivals {
            sum = displaced(window, rival).and_then(|it| sum.checked_add(it)).ok_or(NoBound::TooLong)?;
        }
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
    let interference =
        terms(window - own, cpus, rivals.iter().map(|&rival| (rival.0, displaced(window, rival))));
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

/// Why a task is none that the analysis knows.
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

/// The most that jobs of a task can run in a window: the first ends as late as it can, the others come as early as they can.
fn workload(window: Nanos, response: Nanos, cost: Nanos, arrivals: Option<&Stream>) -> Option<Nanos> {
    let period = arrivals?.window();
    let span = window.checked_add(response)?.checked_sub(cost)?;
    let whole = span / period;
    whole.checked_mul(cost)?.checked_add(cost.min(span % period))
}

/// The shares of the rivals in the time for which a job is displaced.
fn terms(
    displaced: Nanos,
    cpus: u64,
    rivals: impl Iterator<Item = (usize, Option<Nanos>)>,
) -> Vec<Interference> {
    let mut left = displaced;
    let mut carry = 0;
    let mut terms = Vec::new();
    for (rival, time) in rivals {
        let all = time.unwrap_or(0) + carry;
        carry = all % cpus;
        let share = (all / cpus).min(left);
        left -= share;
        if share > 0 {
            let work = Work { jobs: 0, execution: share, overhead: 0 };
            terms.push(Interference { who: Who::Higher(rival), work });
        }
    }
    terms
}

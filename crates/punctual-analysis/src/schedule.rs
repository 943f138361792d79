//! Reconstructs the worst busy window of a bound job by job, for a Gantt chart.

use crate::arrival::Stream;
use crate::bound::{Bound, Interferer};
use crate::supply::Supply;
use crate::system::{Executor, System};
use crate::time::Nanos;

/// An interval in which one activity runs, in ns after the start of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Start.
    pub from: Nanos,
    /// End.
    pub to: Nanos,
    /// Activity.
    pub what: What,
}

/// Activity on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The task itself, or an earlier job of it.
    Own,
    /// The blocking section.
    Blocking,
    /// A source that runs first.
    Above(Interferer),
    /// CPU time that is not supplied to the partition.
    NotSupplied,
}

/// Jobs with release instants and remaining execution time.
struct Lane {
    what: What,
    releases: Vec<Nanos>,
    cost: Nanos,
    /// Number of released jobs.
    begun: usize,
    left: Nanos,
}

/// Returns the intervals of the worst busy window of a task in order, or `None` if there are more
/// than `most`, or if the window of the bound is not a sequence of jobs.
#[must_use]
pub fn worst_window(system: &System, at: usize, bound: &Bound, most: usize) -> Option<Vec<Part>> {
    let task = &system.tasks[at];
    let partition = &system.partitions[task.partition];
    let counts_on_offsets = bound.without_offsets.is_some();
    if partition.executor != Executor::Preemptive || partition.supply != Supply::Full || counts_on_offsets {
        return None;
    }
    let mut lanes = Vec::new();
    for term in &bound.interference {
        let jobs = term.work.jobs;
        if jobs == 0 || jobs as usize > most {
            return None;
        }
        let releases = match term.who {
            Interferer::Higher(at) | Interferer::Peer(at) | Interferer::Release(at) => {
                releases(system, at, jobs)?
            }
            Interferer::Interrupt(at) => earliest(&system.interrupts[at].arrivals, jobs)?,
        };
        lanes.push(Lane {
            what: What::Above(term.who),
            releases,
            cost: term.work.time() / jobs,
            begun: 0,
            left: 0,
        });
    }
    let jobs = bound.own.jobs;
    if jobs == 0 || jobs as usize > most {
        return None;
    }
    let releases = match &task.arrivals {
        Some(arrivals) => earliest(arrivals, jobs)?,
        None => releases(system, at, jobs)?,
    };
    let releases = releases.into_iter().map(|release| release.min(bound.released)).collect();
    lanes.push(Lane { what: What::Own, releases, cost: bound.own.time() / jobs, begun: 0, left: 0 });
    let blocking = bound.blocking.map_or(0, |blocking| blocking.time);
    run(lanes, blocking, bound.window, most)
}

/// Returns the earliest release instants of the first jobs of a task, by its own pattern or those
/// of its roots.
fn releases(system: &System, at: usize, jobs: u64) -> Option<Vec<Nanos>> {
    let mut roots = Vec::new();
    add_roots(system, at, 1, system.tasks.len(), &mut roots);
    let mut all = Vec::new();
    for root in roots {
        all.extend(earliest(&root, jobs)?);
    }
    all.sort_unstable();
    all.truncate(usize::try_from(jobs).ok()?);
    (all.len() as u64 == jobs).then_some(all)
}

/// Collects the releases that lead to jobs of a task, with the number of jobs per release; `depth`
/// limits the path.
fn add_roots(system: &System, at: usize, each: u64, depth: usize, roots: &mut Vec<Stream>) {
    let task = &system.tasks[at];
    if let Some(arrivals) = &task.arrivals {
        roots.push(arrivals.clone().with_jitter(task.jitter).times(each));
    } else if depth > 0 {
        for (caller, calling) in system.tasks.iter().enumerate() {
            for spawn in calling.spawns.iter().filter(|spawn| spawn.task == at && spawn.most > 0) {
                add_roots(system, caller, each.saturating_mul(spawn.most), depth - 1, roots);
            }
        }
    }
}

fn earliest(arrivals: &Stream, jobs: u64) -> Option<Vec<Nanos>> {
    (1..=jobs).map(|k| arrivals.distance(k)).collect()
}

fn run(mut lanes: Vec<Lane>, blocking: Nanos, end: Nanos, most: usize) -> Option<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    let mut push = |from: Nanos, to: Nanos, what: What| match parts.last_mut() {
        _ if from == to => {}
        Some(last) if last.what == what && last.to == from => last.to = to,
        _ => parts.push(Part { from, to, what }),
    };
    push(0, blocking, What::Blocking);
    let mut now = blocking;
    let mut steps = 0;
    while now < end {
        steps += 1;
        if steps > 16 * most {
            return None;
        }
        for lane in &mut lanes {
            while lane.releases.get(lane.begun).is_some_and(|&release| release <= now) {
                lane.begun += 1;
                lane.left += lane.cost;
            }
        }
        let next =
            lanes.iter().filter_map(|lane| lane.releases.get(lane.begun)).min().copied().unwrap_or(end);
        let Some(lane) = lanes.iter_mut().find(|lane| lane.left > 0) else {
            now = next.min(end);
            continue;
        };
        let to = next.min(end).min(now + lane.left);
        lane.left -= to - now;
        push(now, to, lane.what);
        now = to;
    }
    (parts.len() <= most).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analyze, schema};

    #[test]
    fn fills_window_with_terms_of_bound() {
        let text = r#"
            schema = "punctual-taskset/1"
            [[resource]]
            name = "r"
            [[task]]
            name = "a"
            level = 3
            period = "7us"
            execution = "3us"
            sections = [{ resource = "r", hold = "1us" }]
            [[task]]
            name = "b"
            level = 2
            period = "40us"
            execution = "5us"
            jitter = "2us"
            [[task]]
            name = "c"
            level = 1
            period = "100us"
            execution = "4us"
            sections = [{ resource = "r", hold = "2us" }]
        "#;
        let system = schema::read("t", text).unwrap();
        let analysis = analyze(&system);
        for (at, outcome) in analysis.tasks.iter().enumerate() {
            let bound = outcome.as_ref().unwrap();
            let parts = worst_window(&system, at, bound, 100).unwrap();
            assert_eq!((parts[0].from, parts.last().unwrap().to), (0, bound.window));
            assert!(parts.windows(2).all(|pair| pair[0].to == pair[1].from), "{parts:?}");
            let own: u64 = parts.iter().filter(|it| it.what == What::Own).map(|it| it.to - it.from).sum();
            assert_eq!(own, bound.own.time());
            assert_eq!(parts.last().unwrap().what, What::Own);
        }
        assert_eq!(worst_window(&system, 2, analysis.tasks[2].as_ref().unwrap(), 2), None);
    }

    #[test]
    fn shows_spawned_tasks_with_root() {
        let text = r#"
            schema = "punctual-taskset/1"
            [[task]]
            name = "called"
            level = 2
            execution = "3us"
            [[task]]
            name = "caller"
            level = 1
            period = "20us"
            execution = "15us"
            spawns = [{ task = "called", most = 1 }]
            jitter = "6us"
        "#;
        let system = schema::read("t", text).unwrap();
        let analysis = analyze(&system);
        let windows = analysis.tasks.iter().enumerate();
        let windows = windows.map(|(at, it)| worst_window(&system, at, it.as_ref().unwrap(), 100).unwrap());
        let [called, caller]: [Vec<Part>; 2] = windows.collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(called, [Part { from: 0, to: 3_000, what: What::Own }]);
        let above = caller.iter().filter(|it| it.what == What::Above(Interferer::Higher(0)));
        assert_eq!(above.map(|it| it.from).collect::<Vec<_>>(), [0, 14_000]);
    }
}

//! The analysis of a whole system: what each task competes with, partition by partition, until nothing changes any more.
//!
//! *Tindell & Clark, "Holistic Schedulability Analysis for Distributed Hard Real-Time Systems", Microprocessing and
//! Microprogramming 40, 1994*: a task that others spawn is released as they are, and later by up to their response. Responses
//! determine releases, and releases responses; both only grow, and the least fixed point bounds them. Sufficient.

use std::cmp::Reverse;

use crate::arrival::Stream;
use crate::blocking::{self, Spinning};
use crate::bound::{Analysis, Blocking, Exactness, NoBound, Outcome, Who};
use crate::demand::{self, Source};
use crate::fraction::Fraction;
use crate::preemptive::Contest;
use crate::supply::Supply;
use crate::system::{Executor, Overheads, Protocol, System};
use crate::time::{LONGEST, Nanos};
use crate::{global, polling, suspension};

/// After so many rounds the responses of tasks that depend on each other are taken to grow without end.
const ROUNDS: usize = 1_000;

/// So many times the longest period or deadline, too.
const LONGEST_RESPONSE: u64 = 64;

/// Bounds every task of a system.
#[must_use]
pub fn analyse(system: &System) -> Analysis {
    let mut responses: Vec<Result<Nanos, NoBound>> = vec![Ok(0); system.tasks.len()];
    let longest = longest_response(system);
    for _ in 0..ROUNDS {
        let tasks = Round::new(system, &responses).bounds();
        let found: Vec<_> = tasks.iter().map(|outcome| response(outcome, longest)).collect();
        if found == responses || !depends_on_responses(system) {
            return Analysis { tasks };
        }
        responses = found;
    }
    Analysis { tasks: vec![Err(NoBound::TooLong); system.tasks.len()] }
}

/// What no response that others depend on is longer than.
fn longest_response(system: &System) -> Nanos {
    let times = system.tasks.iter().map(|task| {
        let window = task.arrivals.as_ref().map_or(0, Stream::window);
        window.max(task.deadline.unwrap_or(0)).max(task.jitter)
    });
    times.max().unwrap_or(0).saturating_mul(LONGEST_RESPONSE).min(LONGEST)
}

fn response(outcome: &Outcome, longest: Nanos) -> Result<Nanos, NoBound> {
    match outcome {
        Ok(bound) if bound.response > longest => Err(NoBound::TooLong),
        Ok(bound) => Ok(bound.response),
        Err(reason) => Err(reason.clone()),
    }
}

/// Whether the response of one task influences that of another.
fn depends_on_responses(system: &System) -> bool {
    system.tasks.iter().any(|task| task.suspension.is_some() || !task.spawns.is_empty())
}

/// A task with a deadline that it misses or has no bound for, if there is one; `first` is looked at first.
///
/// It ends at the first miss, so it is faster than [`analyse`] where there is one.
#[must_use]
pub fn first_miss(system: &System, first: Option<usize>) -> Option<usize> {
    let mut order = first.into_iter().chain(0..system.tasks.len());
    if depends_on_responses(system) {
        let analysis = analyse(system);
        return order.find(|&at| {
            let deadline = system.tasks[at].deadline;
            deadline.is_some() && !analysis.tasks[at].as_ref().is_ok_and(|bound| bound.meets(deadline))
        });
    }
    let responses = vec![Ok(0); system.tasks.len()];
    let round = Round::new(system, &responses);
    let is_global = |at: usize| matches!(round.partition(at).executor, Executor::Global { .. });
    order.find(|&at| {
        let Some(deadline) = system.tasks[at].deadline else { return false };
        let response = match is_global(at) {
            true => round.bound(at, &[]).map(|bound| bound.response),
            false => round.contest(at).and_then(|contest| contest.response(Some(deadline))),
        };
        !response.is_ok_and(|response| response <= deadline)
    })
}

/// One pass over all tasks, with what is known of their responses.
struct Round<'a> {
    system: &'a System,
    responses: &'a [Result<Nanos, NoBound>],
    /// Releases of each task without the jitter that its response includes, or why they are not known.
    arrivals: Vec<Result<Vec<Stream>, NoBound>>,
    spinning: Result<Spinning, NoBound>,
    partitions: Vec<Sources>,
}

/// Sources of a partition.
struct Sources {
    /// Above all levels.
    above_all: Vec<Source>,
    /// Of tasks, highest level first, those of a task together.
    tasks: Vec<Source>,
    /// The task and level of each of `tasks`.
    levels: Vec<(usize, u32)>,
}

impl<'a> Round<'a> {
    fn new(system: &'a System, responses: &'a [Result<Nanos, NoBound>]) -> Self {
        let arrivals = arrivals(system, responses);
        let above: Vec<Vec<Source>> =
            (0..system.partitions.len()).map(|at| above_all(system, at, &arrivals)).collect();
        let spinning = Spinning::new(system, &above);
        let sources = |above_all| Sources { above_all, tasks: Vec::new(), levels: Vec::new() };
        let mut partitions: Vec<Sources> = above.into_iter().map(sources).collect();
        let mut order: Vec<usize> = (0..system.tasks.len()).collect();
        order.sort_by_key(|&at| Reverse(system.tasks[at].level));
        for at in order {
            let task = &system.tasks[at];
            let Sources { tasks, levels, .. } = &mut partitions[task.partition];
            let spin = spinning.as_ref().map_or(0, |spinning| spinning.of_job(system, at));
            let lateness = suspension::lateness(task, &responses[at]);
            let Overheads { dispatch, preemption, .. } = system.partitions[task.partition].overheads;
            for own in arrivals[at].iter().flatten() {
                tasks.push(Source {
                    who: Who::Higher(at),
                    all: own.clone().with_jitter(task.jitter).with_jitter(lateness),
                    own: own.clone(),
                    execution: task.execution.saturating_add(spin),
                    dispatch,
                    preempting: dispatch.saturating_add(preemption),
                });
                levels.push((at, task.level));
            }
        }
        Self { system, responses, arrivals, spinning, partitions }
    }

    fn partition(&self, task: usize) -> &crate::system::Partition {
        &self.system.partitions[self.system.tasks[task].partition]
    }

    fn bounds(&self) -> Vec<Outcome> {
        let mut order: Vec<usize> = (0..self.system.tasks.len()).collect();
        order.sort_by_key(|&at| Reverse(self.system.tasks[at].level));
        let mut outcomes = vec![Err(NoBound::TooLong); order.len()];
        for at in order {
            outcomes[at] = self.bound(at, &outcomes);
        }
        outcomes
    }

    /// Of a task; `higher` are the outcomes of those of higher levels.
    fn bound(&self, at: usize, higher: &[Outcome]) -> Outcome {
        if let Executor::Global { cpus } = self.partition(at).executor {
            self.check(at)?;
            let above_all = &self.partitions[self.system.tasks[at].partition].above_all;
            return match higher {
                // Somebody wants this one only.
                [] => self.bounds().swap_remove(at),
                higher => global::bound(self.system, at, cpus, above_all, higher),
            };
        }
        self.contest(at)?.bound(None)
    }

    /// What a task of a partition with one CPU competes with.
    fn contest(&self, at: usize) -> Result<Contest<'_>, NoBound> {
        self.check(at)?;
        let (task, partition) = (&self.system.tasks[at], self.partition(at));
        let spinning = self.spinning.as_ref().map_err(Clone::clone)?;
        let Sources { above_all, tasks, levels } = &self.partitions[task.partition];
        let from = levels.partition_point(|&(_, level)| level > task.level);
        let to = levels.partition_point(|&(_, level)| level >= task.level);
        let waits = suspension::waits(self.system, task);
        let (level, above) = if waits {
            // A job that waits lets its peers pass, and they let it pass.
            let first = levels.iter().position(|&(other, _)| other == at).unwrap_or(from);
            let last = first + levels[first..].iter().take_while(|&&(other, _)| other == at).count();
            (&tasks[first..last], [above_all.as_slice(), &tasks[..first], &tasks[last..to]])
        } else {
            (&tasks[from..to], [above_all.as_slice(), &tasks[..from], &[]])
        };
        let times = task.suspension.map_or(0, |suspension| suspension.times);
        let mut blocking = blocking::longest(self.system, spinning, at, &self.arrivals);
        if let Some(Blocking { time, times: total, .. }) = &mut blocking {
            *total = times.saturating_add(1);
            *time = time.checked_mul(*total).ok_or(NoBound::TooLong)?;
        }
        let contest = Contest {
            supply: partition.supply,
            task: at,
            jitter: task.jitter,
            suspension: task.suspension.map_or(0, |suspension| suspension.total),
            spinning: spinning.of_job(self.system, at),
            blocking,
            level,
            above,
            exactness: self.exactness(at),
            runs_to_end: polling::runs_to_end(self.system, at),
        };
        self.check_load(&contest, levels[..to].iter().map(|&(task, _)| task))?;
        Ok(contest)
    }

    /// Whether everything that this task's bound depends on has one.
    fn check(&self, at: usize) -> Result<(), NoBound> {
        let task = &self.system.tasks[at];
        if let Err(reason) = &self.arrivals[at] {
            return Err(reason.clone());
        }
        for (other, rival) in self.system.tasks.iter().enumerate() {
            if rival.partition != task.partition || other == at {
                continue;
            }
            let is_unknown = self.arrivals[other].is_err()
                || (rival.suspension.is_some() && self.responses[other].is_err());
            let matters = rival.level >= task.level || self.partition(at).overheads.release > 0;
            if is_unknown && matters {
                return Err(NoBound::DependsOn(other));
            }
        }
        Ok(())
    }

    /// Whether there is a bound at all.
    fn check_load(&self, contest: &Contest<'_>, tasks: impl Iterator<Item = usize>) -> Result<(), NoBound> {
        let above = contest.above.into_iter().flatten();
        let own = contest.suspension;
        // Exact sums take longer than the bound itself, and are needed only where nearly all of the CPU is.
        let share = |source: &Source, cost: Nanos| source.all.rate_estimate() * cost as f64;
        let estimate: f64 = above.clone().map(|source| share(source, source.cost())).sum::<f64>()
            + contest.level.iter().map(|it| share(it, it.peer_cost().saturating_add(own))).sum::<f64>();
        if estimate < 0.999_999 * contest.supply.rate_estimate() {
            return Ok(());
        }
        let utilisation = demand::utilisation(above, Source::cost)
            .plus(demand::utilisation(contest.level, |source| source.peer_cost().saturating_add(own)));
        let supply = contest.supply.rate();
        // Without any reserve, the busy window ends only if nothing delays its first jobs.
        let sources = contest.above.into_iter().flatten().chain(contest.level);
        let is_delayed =
            || contest.blocking.is_some() || sources.clone().any(|source| source.all.jitter() > 0);
        if utilisation < supply || (utilisation == supply && contest.supply == Supply::Full && !is_delayed())
        {
            return Ok(());
        }
        let mut tasks: Vec<usize> = tasks.collect();
        tasks.dedup();
        Err(NoBound::Overload { tasks, utilisation, supply })
    }

    /// Whether a bound of this task is attained.
    fn exactness(&self, at: usize) -> Exactness {
        let (system, own) = (self.system, &self.system.tasks[at]);
        let relevant =
            |task: &&crate::system::Task| task.partition == own.partition && task.level >= own.level;
        let spins = |section: &crate::system::Section| {
            matches!(system.resources[section.resource].protocol, Protocol::Msrp { .. })
        };
        let is_plain = |task: &crate::system::Task| {
            task.arrivals.as_ref().is_some_and(Stream::is_sporadic)
                && task.offset.is_none()
                && task.suspension.is_none()
                && !task.sections.iter().any(spins)
        };
        let partition = self.partition(at);
        let lower_spins = system.tasks.iter().any(|task| {
            task.partition == own.partition && task.level < own.level && task.sections.iter().any(spins)
        });
        // A job that ends while it holds a resource is not displaced at its end.
        let holds = own.sections.iter().map(|section| section.hold.saturating_mul(section.times));
        let holds = holds.fold(0, Nanos::saturating_add);
        let is_called =
            |at: usize| system.tasks.iter().any(|task| task.spawns.iter().any(|spawn| spawn.task == at));
        let is_exact = partition.overheads == Overheads::default()
            && system.tasks.iter().filter(relevant).all(is_plain)
            && !lower_spins
            && (holds == 0 || holds < own.execution)
            && (partition.executor != Executor::Polling
                || !(0..system.tasks.len())
                    .any(|at| system.tasks[at].partition == own.partition && is_called(at)));
        if is_exact { Exactness::Exact } else { Exactness::Sufficient }
    }
}

/// Releases of every task, from its own pattern or from what spawns it.
fn arrivals(system: &System, responses: &[Result<Nanos, NoBound>]) -> Vec<Result<Vec<Stream>, NoBound>> {
    let mut known: Vec<Option<Result<Vec<Stream>, NoBound>>> =
        system.tasks.iter().map(|task| task.arrivals.clone().map(|stream| Ok(vec![stream]))).collect();
    // Each pass resolves at least the tasks whose spawners are resolved; who spawns itself never is.
    for _ in 0..system.tasks.len() {
        for at in 0..system.tasks.len() {
            if known[at].is_none() {
                known[at] = inherited(system, responses, &known, at);
            }
        }
    }
    known.into_iter().map(|streams| streams.unwrap_or(Err(NoBound::NoArrivals))).collect()
}

/// Releases of a task by those that spawn it, if theirs are known.
fn inherited(
    system: &System,
    responses: &[Result<Nanos, NoBound>],
    known: &[Option<Result<Vec<Stream>, NoBound>>],
    at: usize,
) -> Option<Result<Vec<Stream>, NoBound>> {
    let mut streams = Vec::new();
    for (spawner, task) in system.tasks.iter().enumerate() {
        for spawn in task.spawns.iter().filter(|spawn| spawn.task == at) {
            let Ok(releases) = known[spawner].as_ref()? else {
                return Some(Err(NoBound::DependsOn(spawner)));
            };
            let Ok(response) = responses[spawner] else { return Some(Err(NoBound::DependsOn(spawner))) };
            // A job spawns at any instant from its nominal release to its end.
            streams.extend(releases.iter().map(|it| it.clone().times(spawn.most).with_jitter(response)));
        }
    }
    Some(if streams.is_empty() { Err(NoBound::NoArrivals) } else { Ok(streams) })
}

/// What displaces all levels of a partition.
fn above_all(system: &System, partition: usize, arrivals: &[Result<Vec<Stream>, NoBound>]) -> Vec<Source> {
    let source = |who, arrivals: Stream, execution| Source {
        who,
        own: arrivals.clone(),
        all: arrivals,
        execution,
        dispatch: 0,
        preempting: 0,
    };
    let interrupts = system.interrupts.iter().enumerate().filter(|(_, it)| it.partition == partition);
    let interrupts = interrupts.map(|(at, it)| source(Who::Interrupt(at), it.arrivals.clone(), it.execution));
    let mut sources: Vec<Source> = interrupts.collect();
    let release = system.partitions[partition].overheads.release;
    for (at, task) in system.tasks.iter().enumerate() {
        if release > 0 && task.partition == partition && is_released_from_outside(system, at) {
            let streams = arrivals[at].iter().flatten().cloned();
            let releases = streams.map(|it| source(Who::Release(at), it.with_jitter(task.jitter), 0));
            sources.extend(releases.map(|it| Source { preempting: release, ..it }));
        }
    }
    sources
}

/// Whether the kernel has a part in the releases of a task: they are due to the clock, an event or another CPU.
fn is_released_from_outside(system: &System, at: usize) -> bool {
    let own = &system.tasks[at];
    let spawns = |task: &&crate::system::Task| task.spawns.iter().any(|spawn| spawn.task == at);
    own.arrivals.is_some() || system.tasks.iter().filter(spawns).any(|task| task.partition != own.partition)
}

/// What every task of a system needs of the CPUs of its partition.
#[must_use]
pub fn utilisation(system: &System, partition: usize) -> Fraction {
    let responses = vec![Ok(0); system.tasks.len()];
    let round = Round::new(system, &responses);
    let Sources { above_all, tasks, .. } = &round.partitions[partition];
    demand::utilisation(above_all.iter().chain(tasks), Source::cost)
}

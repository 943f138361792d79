//! Activity of threads and handlers while a job was open, from the events captured with it.

use std::collections::{BTreeMap, BTreeSet};

use punctual_trace::event::{Event, Kind, SwitchOut, Tid};
use punctual_trace::jobs::{Actor, Blocking, HolderState, Job, Phase, Segment};
use punctual_trace::stats::CapturedJob;

/// Maximum number of rows in addition to the job's own.
const MAX_ROWS: usize = 7;

/// Maximum nesting depth of handlers on a CPU.
const MAX_NESTED: usize = 8;

/// An interval in which an actor occupied a CPU, or waited for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The CPU; `None` while the actor was ready to run.
    pub(super) cpu: Option<u16>,
    /// Term of the job that this interval contributed to, if it delayed the job.
    pub(super) cost: Option<Phase>,
}

/// An actor involved with the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) actor: Actor,
    pub(super) stretches: Vec<Stretch>,
    /// Intervals in which it held a lock that the job waited for, with the index of the job's wait.
    pub(super) holds: Vec<(u64, u64, usize)>,
}

/// A wake-up of the job: its time, and the waker's row if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wake {
    pub(super) time: u64,
    pub(super) actor: Actor,
    pub(super) row: Option<usize>,
}

/// All actors involved with a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) rows: Vec<Row>,
    pub(super) wakes: Vec<Wake>,
    /// Number of further actors.
    pub(super) left_out: usize,
}

/// Builds the scene. Threads whose switches may be missing have no row, since their running times
/// are unknown.
pub(super) fn scene(captured: &CapturedJob, must_observe: impl Fn(Tid) -> bool) -> Scene {
    let job = &captured.job;
    let mut actors = involved(job);
    actors.retain(|actor| !matches!(actor, Actor::Thread(tid) if !must_observe(*tid)));
    let left_out = actors.len().saturating_sub(MAX_ROWS);
    actors.truncate(MAX_ROWS);
    let mut rows: Vec<Row> =
        actors.into_iter().map(|actor| Row { actor, stretches: Vec::new(), holds: Vec::new() }).collect();
    occupy(captured, &mut rows);
    // A job that starts in the middle of a wait has the lock already, and was woken for it.
    let whole = |(_, wait): &(usize, &Blocking)| wait.woken.is_none_or(|woken| wait.start <= woken);
    let waits = job.blockings.iter().enumerate().filter(whole);
    for (index, wait) in waits.clone() {
        for owner in &wait.owners {
            let row = rows.iter_mut().find(|row| row.actor == Actor::Thread(*owner));
            if let Some(row) = row {
                row.holds.push((wait.start, wait.woken.unwrap_or(wait.end), index));
            }
        }
    }
    let row = |actor| rows.iter().position(|row| row.actor == actor);
    let first = job.waker.map(|waker| (waker.time, waker.actor));
    let wakes = first.into_iter().chain(waits.filter_map(|(_, wait)| wait.woken.zip(wait.waker)));
    let wakes = wakes.map(|(time, actor)| Wake { time, actor, row: row(actor) }).collect();
    Scene { rows, wakes, left_out }
}

/// Returns the actors that the job names: holders of locks it waited for, then by delay caused.
fn involved(job: &Job) -> Vec<Actor> {
    let mut holders: Vec<Actor> = Vec::new();
    let mut others: BTreeMap<Actor, u64> = BTreeMap::new();
    for wait in &job.blockings {
        let owners = wait.owners.iter().copied().chain(wait.shares.iter().filter_map(|share| share.holder));
        for owner in owners.map(Actor::Thread) {
            if !holders.contains(&owner) {
                holders.push(owner);
            }
        }
        for share in &wait.shares {
            if let HolderState::Preempted { by } = share.state {
                *others.entry(by).or_default() += share.ns;
            }
        }
        if let Some(waker) = wait.waker {
            others.entry(waker).or_default();
        }
    }
    for cause in job.interference_causes.iter().chain(&job.jitter_causes) {
        *others.entry(cause.actor).or_default() += cause.ns;
    }
    if let Some(waker) = job.waker {
        // The arrow needs a starting point.
        *others.entry(waker.actor).or_default() += job.end.saturating_sub(job.start);
    }
    let mut others: Vec<(Actor, u64)> = others.into_iter().collect();
    others.sort_by_key(|&(actor, ns)| (std::cmp::Reverse(ns), actor));
    let named = |actor: &Actor| {
        !matches!(
            actor,
            Actor::Thread(0) | Actor::Others | Actor::Unseen | Actor::Throttling | Actor::Task(_)
        ) && *actor != job.actor
    };
    let mut actors: Vec<Actor> = holders;
    for (actor, _) in others {
        if !actors.contains(&actor) {
            actors.push(actor);
        }
    }
    actors.retain(named);
    actors
}

/// Fills the rows with the intervals in which each actor occupied a CPU.
fn occupy(captured: &CapturedJob, rows: &mut [Row]) {
    let job = &captured.job;
    let from = job.woken.unwrap_or(job.start).min(job.start);
    // The time before the first captured event is unknown.
    let from =
        if captured.truncated { captured.events.first().map_or(job.end, |event| event.time) } else { from };
    let cpus = at_first(&captured.events).into_iter().map(|(cpu, stack)| (cpu, (stack, from))).collect();
    let mut replay = Replay { job, rows, cpus, ready: BTreeMap::new() };
    captured.events.iter().for_each(|event| replay.take(event));
    let cpus: Vec<u16> = replay.cpus.keys().copied().collect();
    cpus.into_iter().for_each(|cpu| replay.until(cpu, job.end));
    for (thread, since) in std::mem::take(&mut replay.ready) {
        replay.put(Actor::Thread(thread), (since, job.end), None);
    }
    rows.iter_mut().for_each(|row| row.stretches.sort_by_key(|stretch| stretch.start));
}

/// Returns the actors on each CPU before the first of its events: that event's thread, and the
/// handlers that are exited without having been entered, outermost first.
fn at_first(events: &[Event]) -> BTreeMap<u16, Vec<Actor>> {
    let mut cpus: BTreeMap<u16, Vec<Actor>> = BTreeMap::new();
    let mut entered: BTreeMap<u16, usize> = BTreeMap::new();
    let mut switched: BTreeSet<u16> = BTreeSet::new();
    for event in events {
        let stack = cpus.entry(event.cpu).or_insert_with(|| vec![Actor::Thread(event.by)]);
        let open = entered.entry(event.cpu).or_default();
        match handler(event.kind) {
            Some((_, true)) => *open += 1,
            Some((_, false)) if *open > 0 => *open -= 1,
            Some((actor, false)) if stack.len() <= MAX_NESTED && !switched.contains(&event.cpu) => {
                stack.insert(1, actor);
            }
            _ => {}
        }
        // Handlers do not outlive a switch, and activity in a gap is unknown.
        if matches!(event.kind, Kind::Switch { .. } | Kind::Lost { .. }) {
            switched.insert(event.cpu);
        }
    }
    cpus
}

struct Replay<'a> {
    job: &'a Job,
    rows: &'a mut [Row],
    /// Actors on each CPU, handlers on top of the thread, and the time at which the top one got
    /// there.
    cpus: BTreeMap<u16, (Vec<Actor>, u64)>,
    /// Threads that wait for a CPU, with the start of the wait.
    ready: BTreeMap<Tid, u64>,
}

impl Replay<'_> {
    fn take(&mut self, event: &Event) {
        let Event { time, cpu, kind, .. } = *event;
        let handler = handler(kind);
        match kind {
            Kind::Switch { from, reason, to } => {
                self.until(cpu, time);
                self.cpus.insert(cpu, (vec![Actor::Thread(to.id)], time));
                if reason == SwitchOut::Runnable && from.id != 0 {
                    self.ready.insert(from.id, time);
                }
                if let Some(since) = self.ready.remove(&to.id) {
                    self.put(Actor::Thread(to.id), (since, time), None);
                }
            }
            Kind::Waking { task, .. } | Kind::Wakeup { task, .. } if !self.runs(task.id) => {
                self.ready.entry(task.id).or_insert(time);
            }
            Kind::Lost { .. } => {
                // Any activity there may have ended in the gap.
                self.until(cpu, time);
                self.cpus.insert(cpu, (Vec::new(), time));
            }
            _ => {}
        }
        let Some((actor, enters)) = handler else { return };
        self.until(cpu, time);
        let Some((stack, _)) = self.cpus.get_mut(&cpu) else { return };
        if enters && stack.len() < MAX_NESTED {
            stack.push(actor);
        } else if !enters && let Some(index) = stack.iter().rposition(|other| *other == actor) {
            stack.truncate(index);
        }
    }

    fn runs(&self, thread: Tid) -> bool {
        self.cpus.values().any(|(stack, _)| stack.first() == Some(&Actor::Thread(thread)))
    }

    /// Ends the interval of the actor on top of that CPU.
    fn until(&mut self, cpu: u16, time: u64) {
        let Some((stack, since)) = self.cpus.get_mut(&cpu) else { return };
        let (top, start) = (stack.last().copied(), std::mem::replace(since, time));
        if let Some(actor) = top {
            self.put(actor, (start, time), Some(cpu));
        }
    }

    /// Splits an interval where the job's own phases change, so that each part has one cost to the
    /// job.
    fn put(&mut self, actor: Actor, (start, end): (u64, u64), cpu: Option<u16>) {
        let job = self.job;
        let Some(row) = self.rows.iter_mut().find(|row| row.actor == actor) else { return };
        let mut add = |start: u64, end: u64, cost: Option<Phase>| {
            if start >= end {
                return;
            }
            match row.stretches.last_mut() {
                Some(last) if last.end == start && (last.cpu, last.cost) == (cpu, cost) => last.end = end,
                _ => row.stretches.push(Stretch { start, end, cpu, cost }),
            }
        };
        let Some(cpu) = cpu else { return add(start, end, None) };
        let mut done = start;
        let after = job.segments.partition_point(|segment| segment.end <= start);
        for segment in job.segments[after..].iter().take_while(|segment| segment.start < end) {
            let cost = blamed(job, actor, cpu, segment).then_some(segment.phase);
            let (from, to) = (segment.start.max(done), segment.end.min(end));
            add(done, from, None);
            add(from, to, cost);
            done = to.max(done);
        }
        add(done, end, None);
    }
}

/// Returns whether an actor on that CPU caused the job's phase.
fn blamed(job: &Job, actor: Actor, cpu: u16, segment: &Segment) -> bool {
    match segment.phase {
        Phase::Jitter => cpu == segment.cpu && job.jitter_causes.iter().any(|cause| cause.actor == actor),
        Phase::Interference => {
            cpu == segment.cpu && job.interference_causes.iter().any(|cause| cause.actor == actor)
        }
        Phase::Blocking => job
            .blockings
            .iter()
            .filter(|wait| wait.start < segment.end && segment.start < wait.end)
            .any(|wait| delays(wait, actor)),
        _ => false,
    }
}

/// Returns whether an actor held the awaited lock, or kept its holder from the CPU.
fn delays(wait: &Blocking, actor: Actor) -> bool {
    wait.owners.iter().any(|&owner| Actor::Thread(owner) == actor)
        || wait.shares.iter().any(|share| {
            share.holder.map(Actor::Thread) == Some(actor)
                || share.state == HolderState::Preempted { by: actor }
        })
}

/// Returns the handler of an event, and whether it is entered.
fn handler(kind: Kind) -> Option<(Actor, bool)> {
    Some(match kind {
        Kind::IrqEntry { irq } => (Actor::Irq(irq), true),
        Kind::IrqExit { irq } => (Actor::Irq(irq), false),
        Kind::VectorEntry { vector } => (Actor::Vector(vector), true),
        Kind::VectorExit { vector } => (Actor::Vector(vector), false),
        Kind::SoftirqEntry { softirq } => (Actor::Softirq(softirq), true),
        Kind::SoftirqExit { softirq } => (Actor::Softirq(softirq), false),
        _ => return None,
    })
}

#[cfg(test)]
#[path = "scene_tests.rs"]
pub(super) mod tests;

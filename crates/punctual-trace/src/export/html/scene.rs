//! Who did what while a job was open, from the events that were kept with it.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Event, Kind, SwitchOut, Tid};
use crate::jobs::{Actor, Blocking, HolderState, Job, Phase, Segment};
use crate::stats::CapturedJob;

/// Beside the job's own, so many rows are shown.
const MAX_ROWS: usize = 7;

/// Handlers that may be nested on a CPU.
const MAX_NESTED: usize = 8;

/// A stretch in which somebody had a CPU, or waited for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The CPU it ran on; nothing while it was ready to run.
    pub(super) cpu: Option<u16>,
    /// The term of the job that this went into, if it is to blame for it.
    pub(super) cost: Option<Phase>,
}

/// Somebody who had to do with the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) actor: Actor,
    pub(super) stretches: Vec<Stretch>,
    /// When it held a lock that the job waited for, and which of the job's waits that was.
    pub(super) holds: Vec<(u64, u64, usize)>,
}

/// Who woke the job when, from which row if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wake {
    pub(super) time: u64,
    pub(super) actor: Actor,
    pub(super) row: Option<usize>,
}

/// Everybody who had to do with a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) rows: Vec<Row>,
    pub(super) wakes: Vec<Wake>,
    /// How many more had to do with it.
    pub(super) left_out: usize,
}

/// Sets the scene. Threads that somebody need not have seen have no row: nobody knows when they ran.
pub(super) fn scene(captured: &CapturedJob, must_see: impl Fn(Tid) -> bool) -> Scene {
    let job = &captured.job;
    let mut actors = involved(job);
    actors.retain(|actor| !matches!(actor, Actor::Thread(tid) if !must_see(*tid)));
    let left_out = actors.len().saturating_sub(MAX_ROWS);
    actors.truncate(MAX_ROWS);
    let mut rows: Vec<Row> =
        actors.into_iter().map(|actor| Row { actor, stretches: Vec::new(), holds: Vec::new() }).collect();
    occupy(captured, &mut rows);
    for (index, wait) in job.blockings.iter().enumerate() {
        for owner in &wait.owners {
            let row = rows.iter_mut().find(|row| row.actor == Actor::Thread(*owner));
            if let Some(row) = row {
                row.holds.push((wait.start, wait.woken.unwrap_or(wait.end), index));
            }
        }
    }
    let row = |actor| rows.iter().position(|row| row.actor == actor);
    let first = job.waker.map(|waker| (waker.time, waker.actor));
    let waits = job.blockings.iter().filter_map(|wait| wait.woken.zip(wait.waker));
    let wakes = first.into_iter().chain(waits);
    let wakes = wakes.map(|(time, actor)| Wake { time, actor, row: row(actor) }).collect();
    Scene { rows, wakes, left_out }
}

/// Those the job names: who held what it waited for, then who cost it most.
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
        // The arrow has to begin somewhere.
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

/// Fills the rows with who had which CPU when.
fn occupy(captured: &CapturedJob, rows: &mut [Row]) {
    let job = &captured.job;
    let from = job.woken.unwrap_or(job.start).min(job.start);
    // What was before the first event that is still there, nobody knows.
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

/// Who was on each CPU before the first of its events: the thread of that, and the handlers that are left without having
/// been entered, the outermost first.
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
        // Handlers do not outlive a switch, and what they did in a gap is not known.
        if matches!(event.kind, Kind::Switch { .. } | Kind::Lost { .. }) {
            switched.insert(event.cpu);
        }
    }
    cpus
}

struct Replay<'a> {
    job: &'a Job,
    rows: &'a mut [Row],
    /// Who is on each CPU, handlers on top of the thread, and since when it is the one on top.
    cpus: BTreeMap<u16, (Vec<Actor>, u64)>,
    /// Threads that wait for a CPU, and since when.
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
                // Whatever was going on there may have ended in the gap.
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

    /// Who is on top of that CPU has been there until now.
    fn until(&mut self, cpu: u16, time: u64) {
        let Some((stack, since)) = self.cpus.get_mut(&cpu) else { return };
        let (top, start) = (stack.last().copied(), std::mem::replace(since, time));
        if let Some(actor) = top {
            self.put(actor, (start, time), Some(cpu));
        }
    }

    /// Cuts a stretch where the job's own phases change, so that each stretch says what it cost the job.
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

/// Whether somebody on that CPU is why the job was in that phase.
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

/// Whether somebody held what was waited for, or kept the holder from its CPU.
fn delays(wait: &Blocking, actor: Actor) -> bool {
    wait.owners.iter().any(|&owner| Actor::Thread(owner) == actor)
        || wait.shares.iter().any(|share| {
            share.holder.map(Actor::Thread) == Some(actor)
                || share.state == HolderState::Preempted { by: actor }
        })
}

/// Which handler an event is about, and whether it is entered.
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

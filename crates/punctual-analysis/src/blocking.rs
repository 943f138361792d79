//! Blocking: how long a job of a lower level may keep running although a higher one is ready.
//!
//! *Baker, "Stack-Based Scheduling of Realtime Processes", Real-Time Systems 3(1), 1991*: a job is
//! blocked at most once, before it starts, by one critical section of a lower level whose ceiling
//! is not below the job's own level.
//!
//! *Gai, Lipari, Di Natale, "Minimizing Memory Utilization of Real-Time Task Sets in Single and
//! Multi-Processor Systems-on-a-Chip", RTSS 2001* (MSRP): resources of several partitions are held,
//! and waited for by FIFO spinning, above all levels. A request waits for at most one section of
//! each other partition. With the group locks of *Block, Leontyev, Brandenburg, Anderson, "A
//! Flexible Real-Time Locking Protocol for Multiprocessors", RTCSA 2007*, resources that one job
//! may hold together share one lock, so the sections of the whole group count.
//!
//! A section of one partition may contain requests for resources of several partitions. Its job
//! keeps its ceiling while it spins, so the section lasts longer by the spinning of all requests
//! inside it; the rest of Baker's argument does not depend on the reason for which a section lasts.
//! A request inside a section of its own group does not spin, because the job already holds the
//! lock. A section above all levels waits for nothing, so no other partition spins for longer.
//!
//! Sufficient for MSRP, because every request is assumed to meet the longest section of every
//! partition. Exact for SRP if the lower task may have started just before.

use std::cmp::Reverse;

use crate::bound::{Blocking, NoBound};
use crate::demand::{self, Source, Steps};
use crate::polling;
use crate::release::Releases;
use crate::system::{Executor, Nesting, Protocol, Section, System, Task};
use crate::time::Nanos;

/// Longest spinning time of a request for a resource of a group, by partition and group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spinning {
    groups: usize,
    longest: Vec<Nanos>,
}

impl Spinning {
    /// `above` lists, for each partition, the sources that preempt all levels and therefore also a
    /// lock holder.
    pub(crate) fn new(system: &System, above: &[Vec<Source>]) -> Result<Self, NoBound> {
        let group_of = |section: &Section| system.resources[section.resource].protocol.group();
        let groups = system.resources.iter().filter_map(|resource| Some(resource.protocol.group()? + 1));
        let groups = groups.max().unwrap_or(0);
        let mut held = vec![0; groups * system.partitions.len()];
        let sections = system.tasks.iter().flat_map(|task| task.sections.iter().map(|s| (task.partition, s)));
        for (partition, section) in sections.chain(idle_sections(system)) {
            // A resource that is accessed without locking is never held.
            if let Some(group) = group_of(section).filter(|_| section.times > 0) {
                let overheads = system.partitions[partition].overheads;
                let hold = section.hold.saturating_add(overheads.lock);
                let place = &mut held[partition * groups + group];
                *place = (*place).max(hold);
            }
        }
        // Interrupts of the holder's CPU and its missing supply prolong a hold.
        for (partition, above) in above.iter().enumerate() {
            let supply = system.partitions[partition].supply;
            for hold in &mut held[partition * groups..(partition + 1) * groups] {
                if *hold > 0 {
                    let (sources, steps) = ([above.as_slice(), &[], &[]], &mut Steps::new(above.len()));
                    let end = demand::finish(supply, *hold, sources, *hold, Nanos::MAX, steps);
                    *hold = end.ok_or(NoBound::TooLong)?;
                }
            }
        }
        let mut longest = vec![0_u64; held.len()];
        for (at, spin) in longest.iter_mut().enumerate() {
            let (partition, group) = (at / groups.max(1), at % groups.max(1));
            let others = (0..system.partitions.len()).filter(|&other| other != partition);
            let all = others.map(|other| held[other * groups + group]);
            *spin = all.fold(0, Nanos::saturating_add);
        }
        Ok(Self { groups, longest })
    }

    /// Returns the spinning time of one request from this partition, by a job with the sections
    /// `all`.
    fn of_request(&self, system: &System, partition: usize, section: &Section, all: &[Section]) -> Nanos {
        let group_of = |resource: usize| system.resources[resource].protocol.group();
        let Some(group) = group_of(section.resource) else { return 0 };
        // With unknown nesting, the request may be the outermost one.
        let is_held = |other: &Section| {
            section.nesting != Nesting::Unknown
                && group_of(other.resource) == Some(group)
                && section.is_inside(other.resource, all)
        };
        if all.iter().any(is_held) { 0 } else { self.longest[partition * self.groups + group] }
    }

    /// Returns the spinning time of all requests that a job with the sections `all` may make inside
    /// one of them.
    fn inside(&self, system: &System, partition: usize, section: &Section, all: &[Section]) -> Nanos {
        // A request inside a section of several partitions is one of the same group.
        if self.groups == 0 || system.resources[section.resource].protocol.group().is_some() {
            return 0;
        }
        let inner = all.iter().filter(|inner| inner.is_inside(section.resource, all));
        let spins =
            inner.map(|inner| self.of_request(system, partition, inner, all).saturating_mul(inner.times));
        spins.fold(0, Nanos::saturating_add)
    }

    /// Returns the spinning time of all requests of a job.
    pub(crate) fn of_job(&self, system: &System, task: usize) -> Nanos {
        if self.groups == 0 {
            return 0;
        }
        let Task { partition, sections, .. } = &system.tasks[task];
        let spins = sections.iter().map(|section| {
            self.of_request(system, *partition, section, sections).saturating_mul(section.times)
        });
        spins.fold(0, Nanos::saturating_add)
    }
}

/// A critical section as seen by the tasks that it blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    by: Option<usize>,
    resource: usize,
    /// The section blocks all levels above this one, up to its ceiling.
    level: u32,
    ceiling: u32,
    time: Nanos,
    spin: Nanos,
}

/// Returns the blocking sections of a partition, longest first: those of `idle` and of tasks with
/// known releases.
pub(crate) fn held(
    system: &System,
    spinning: &Spinning,
    partition: usize,
    releases: &[Result<Releases, NoBound>],
) -> Vec<Held> {
    let lock = system.partitions[partition].overheads.lock;
    let held = |by: Option<usize>, level: u32, section: &Section, all: &[Section]| {
        let resource = &system.resources[section.resource];
        let ceiling = match resource.protocol {
            Protocol::Srp => resource.ceilings[partition],
            Protocol::Msrp { .. } => u32::MAX,
            Protocol::Pcp | Protocol::Unlocked => return None,
        };
        let spin = spinning.of_request(system, partition, section, all);
        let spin = spin.saturating_add(spinning.inside(system, partition, section, all));
        let time = spin.saturating_add(section.hold).saturating_add(lock);
        let is_one = section.times > 0 && time > 0 && ceiling > level;
        is_one.then_some(Held { by, resource: section.resource, level, ceiling, time, spin })
    };
    let idle = &system.partitions[partition].idle_sections;
    let sections = system.tasks.iter().map(|task| task.sections.len()).sum::<usize>();
    let mut all: Vec<Held> = Vec::with_capacity(idle.len() + sections);
    all.extend(idle.iter().filter_map(|it| held(None, 0, it, idle)));
    for (at, task) in system.tasks.iter().enumerate() {
        if task.partition == partition && releases[at].is_ok() {
            let sections = &task.sections;
            all.extend(sections.iter().filter_map(|it| held(Some(at), task.level, it, sections)));
        }
    }
    all.sort_by_key(|it| Reverse(it.time));
    all
}

fn idle_sections(system: &System) -> impl Iterator<Item = (usize, &Section)> {
    let partitions = system.partitions.iter().enumerate();
    partitions.flat_map(|(at, partition)| partition.idle_sections.iter().map(move |section| (at, section)))
}

/// Returns the longest blocking of a job before its start. If `callers` is set, only these tasks
/// can hold a lock when the job is spawned. `held` lists the sections of its partition.
pub(crate) fn longest(
    system: &System,
    spinning: &Spinning,
    held: &[Held],
    at: usize,
    releases: &[Result<Releases, NoBound>],
    callers: Option<&[usize]>,
) -> Option<Blocking> {
    let (partition, level) = (system.tasks[at].partition, system.tasks[at].level);
    let is_there = |by: usize| callers.is_none_or(|callers| callers.contains(&by));
    if system.partitions[partition].executor != Executor::Polling {
        let is_by = |by: Option<usize>| by.map_or(callers.is_none(), is_there);
        let blocks = |it: &&Held| it.level < level && level <= it.ceiling && is_by(it.by);
        let &Held { by, resource, time, spin, .. } = held.iter().find(blocks)?;
        return Some(Blocking { time, times: 1, by, resource: Some(resource), spinning: spin });
    }
    let of_idle = held.iter().find(|it| it.by.is_none() && level <= it.ceiling && callers.is_none());
    let mut longest = of_idle.map(|&Held { by, resource, time, spin, .. }| Blocking {
        time,
        times: 1,
        by,
        resource: Some(resource),
        spinning: spin,
    });
    // A polling partition does not preempt: a whole job may have just started.
    let dispatch = system.partitions[partition].overheads.dispatch;
    let cost = |at: usize| {
        let spin = spinning.of_job(system, at);
        spin.saturating_add(system.tasks[at].execution).saturating_add(dispatch)
    };
    for (other, task) in system.tasks.iter().enumerate() {
        let is_lower = task.partition == partition && task.level < level;
        if !is_lower || releases[other].is_err() || !is_there(other) {
            continue;
        }
        let time = polling::block(system, other, level, &cost);
        if time > longest.map_or(0, |longest| longest.time) {
            let spinning = spinning.of_job(system, other);
            longest = Some(Blocking { time, times: 1, by: Some(other), resource: None, spinning });
        }
    }
    longest
}

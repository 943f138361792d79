//! Compares the bounds with Punctual's dispatch code in virtual time: random task sets with jitter,
//! offsets, equal levels, resources, spawned chains, polling and two partitions. No response
//! exceeds its bound. Where a bound is exact, the test constructs its critical instant, and the
//! longest response equals the bound.
//!
//! `PUNCTUAL_TEST_SETS` sets the number of task sets.

mod apps;

use crate::support::Random;
use apps::{Kind, Plan, Planned, Seen, TASKS, Work};
use punctual_analysis::analyze;
use punctual_analysis::bound::{Bound, Exactness};
use punctual_analysis::chain::reaction;
use punctual_analysis::system::{Chain, Executor, Link, Partition, Protocol, Resource, Spawn, System, Task};

/// All times are multiples of this, so that a blocking section can start slightly earlier.
const UNIT: u64 = 1_000;
/// Critical instant.
const START: u64 = 500 * UNIT;
/// End of all releases.
const HORIZON: u64 = 600 * UNIT;

const TOP: usize = 0;
const CALLED: usize = 1;
const CALLER: usize = 5;
const LATER: usize = 7;
/// Possible spawns, as caller and spawned task.
const SPAWNS: [(usize, usize); 2] = [(CALLER, CALLED), (TOP, LATER)];

fn partition_of(kind: Kind, task: usize) -> usize {
    usize::from(kind == Kind::Two && ![TOP, 2, 6].contains(&task))
}

/// Returns the resources that a task of the apps may lock.
fn lockable(task: usize) -> &'static [usize] {
    match task {
        0 => &[1],
        2 => &[0],
        3 => &[2],
        6 => &[0, 1, 2],
        _ => &[],
    }
}

fn random_system(random: &mut Random, kind: Kind) -> System {
    let total = 0.3 + 0.55 * random.fraction();
    let shares = random.utilizations(TASKS.len(), total);
    let has_offsets = random.one_in(3);
    let mut tasks = Vec::new();
    for (at, (name, level)) in TASKS.into_iter().enumerate() {
        // Offsets matter for harmonic periods.
        let period = if has_offsets {
            [20, 40, 60, 120][random.within(0, 3) as usize]
        } else {
            random.log_uniform(10, 200)
        };
        let execution = ((period as f64 * shares[at]) as u64).max(1) * UNIT;
        let mut task = Task {
            partition: partition_of(kind, at),
            ..crate::support::task(name, level, period * UNIT, execution)
        };
        if has_offsets {
            task.offset = Some(random.within(0, period - 1) * UNIT);
        }
        if random.one_in(3) {
            task.jitter = random.within(0, period) * UNIT;
        }
        if let Some(&resource) = lockable(at).get(random.within(0, 3) as usize) {
            let hold = random.within(1, execution / UNIT) * UNIT;
            task.sections.push(crate::support::section(resource, hold));
        }
        tasks.push(task);
    }
    for (spawner, spawned) in SPAWNS {
        let task = &mut tasks[spawned];
        task.jitter = 0;
        if random.one_in(2) {
            task.arrivals = None;
            task.deadline = None;
            task.execution = random.within(1, 6) * UNIT;
            let held: u64 = tasks[spawner].sections.iter().map(|section| section.hold).sum();
            let earliest = random.within(0, (tasks[spawner].execution - held) / UNIT) * UNIT;
            tasks[spawner].spawns = vec![Spawn { task: spawned, most: 1, earliest, in_section: false }];
        } else {
            // The task exists, but is never released.
            task.arrivals = Some(punctual_analysis::arrival::Stream::sporadic(HORIZON));
            task.execution = 0;
        }
    }
    if let Some(&spawn) = tasks[TOP].spawns.first().filter(|_| random.one_in(2)) {
        let called = &mut tasks[CALLED];
        if called.arrivals.take().is_some() {
            (called.deadline, called.execution) = (None, random.within(1, 6) * UNIT);
        }
        // One of both.
        tasks[TOP].spawns.push(Spawn { task: CALLED, ..spawn });
        tasks[TOP].most_spawns = Some(1);
    }
    let executor = if kind == Kind::Polling { Executor::Polling } else { Executor::Preemptive };
    let partition = Partition { executor, ..Partition::default() };
    let protocol =
        |at| if kind == Kind::Two && at == 2 { Protocol::Msrp { group: 0 } } else { Protocol::Srp };
    let resource = |at| Resource { name: format!("r{at}"), protocol: protocol(at), ceilings: Vec::new() };
    let mut system = System {
        partitions: vec![partition; if kind == Kind::Two { 2 } else { 1 }],
        resources: (0..3).map(resource).collect(),
        tasks,
        ..System::default()
    };
    system.update_ceilings();
    // The apps' ceilings cover all tasks that may lock.
    for at in 0..TASKS.len() {
        for &resource in lockable(at) {
            let task = &system.tasks[at];
            let ceiling = &mut system.resources[resource].ceilings[task.partition];
            *ceiling = (*ceiling).max(task.level);
        }
    }
    system
}

/// Creates a job that takes its resource after `before`, or later if it spawns later.
fn work(task: &Task, nominal: u64, before: u64) -> Work {
    let before = task.spawns.iter().fold(before, |before, spawn| before.max(spawn.earliest));
    match task.sections.first() {
        None => Work { nominal, before, after: task.execution - before, ..Work::default() },
        Some(section) => {
            let before = before.min(task.execution - section.hold);
            let hold = Some((section.resource, section.hold));
            Work { nominal, before, hold, after: task.execution - before - section.hold, ..Work::default() }
        }
    }
}

fn period(task: &Task) -> u64 {
    task.arrivals.as_ref().unwrap().window()
}

/// Returns whether jobs of the task are planned rather than spawned.
fn is_planned(at: usize) -> bool {
    SPAWNS.iter().all(|&(_, spawned)| spawned != at)
}

/// Plans a job; `which` selects one of its spawns.
fn planned(system: &System, at: usize, (nominal, ready): (u64, u64), before: u64, which: usize) -> Planned {
    let mut work = work(&system.tasks[at], nominal, before);
    let spawn = system.tasks[at].spawns.iter().cycle().nth(which);
    work.spawns = spawn.map(|spawn| (spawn.task, system.tasks[spawn.task].execution));
    Planned { task: at, ready, work }
}

fn random_plan(random: &mut Random, system: &System) -> Plan {
    let mut plan = Plan::new();
    for (at, task) in system.tasks.iter().enumerate().filter(|(at, _)| is_planned(*at)) {
        let mut nominal = START + task.offset.unwrap_or_else(|| random.within(0, period(task) / UNIT) * UNIT);
        let mut last = 0;
        while nominal < START + HORIZON {
            let late = if random.one_in(2) { task.jitter } else { random.within(0, task.jitter) };
            last = last.max(nominal + late);
            let before = random.within(0, task.execution / UNIT) * UNIT;
            let which = random.within(0, 1) as usize;
            let mut job = planned(system, at, (nominal, last), before, which);
            // In virtual time, a release at the instant at which a job ends displaces it, so all
            // jobs end slightly earlier.
            let Work { before, hold, after, .. } = &mut job.work;
            let spare = match hold {
                _ if *after > 0 => after,
                Some((_, hold)) if *before == 0 => hold,
                _ => before,
            };
            *spare = spare.saturating_sub(1);
            plan.push(job);
            let more = if task.offset.is_some() || random.one_in(2) { 0 } else { random.within(0, 2_000) };
            nominal += period(task) + more;
        }
    }
    plan
}

/// Plans a critical instant: `victim` and all tasks that may displace it are ready at once, with
/// full jitter first and without it later, and the blocking section has started just before.
fn critical_instant(kind: Kind, system: &System, victim: usize, bound: &Bound) -> Plan {
    let mut plan = Plan::new();
    for (at, task) in system.tasks.iter().enumerate().filter(|(at, _)| is_planned(*at)) {
        let own = &system.tasks[victim];
        if task.partition != own.partition || task.level < own.level {
            continue;
        }
        let mut nominal = START - task.jitter;
        while nominal < START + HORIZON {
            plan.push(planned(system, at, (nominal, nominal.max(START)), 0, 0));
            // Other releases come slightly after the instant at which a job may end, or they would
            // displace it. Without preemption they may come at the instant at which it could start.
            nominal += period(task) + u64::from(at != victim && kind != Kind::Polling);
        }
    }
    if let Some(by) = bound.blocking.and_then(|blocking| blocking.by) {
        plan.push(planned(system, by, (START - 1, START - 1), 0, 0));
    }
    plan
}

fn check(kind: Kind, seed: u64) -> (usize, usize) {
    let mut random = Random::new(seed);
    let system = random_system(&mut random, kind);
    let analysis = analyze(&system);
    let plan = random_plan(&mut random, &system);
    let until = START + 4 * HORIZON;
    let seen = apps::run(kind, plan, until);
    let (mut bounded, mut attained) = (0, 0);
    for (spawner, spawned) in SPAWNS {
        let is_only_caller = spawned != CALLED || system.tasks[TOP].spawns.len() < 2;
        if system.tasks[spawner].spawns.is_empty() || !is_only_caller {
            continue;
        }
        let tasks = vec![spawner, spawned];
        let chain = Chain { name: "spawned".into(), tasks, link: Link::Spawned, deadline: None };
        if let Ok(bound) = reaction(&system, &analysis, &chain) {
            let seen = seen.reaction(spawned);
            assert!(
                seen <= bound,
                "{kind:?}, seed {seed}, chain to {spawned}: {seen} > {bound}\n{system:#?}"
            );
        }
    }
    let above = |at: usize, bound: &Bound, seen: &Seen| {
        let seen = seen.response(at);
        assert!(
            seen <= bound.response,
            "{kind:?}, seed {seed}, {}: {seen}\n{bound:?}\n{system:#?}",
            TASKS[at].0
        );
    };
    for (at, outcome) in analysis.tasks.iter().enumerate() {
        let Ok(bound) = outcome else { continue };
        above(at, bound, &seen);
        bounded += 1;
        let has_peers = TASKS.iter().filter(|task| task.1 == TASKS[at].1).count() > 1;
        let is_exact = bound.exactness == Exactness::Exact && bound.window < HORIZON && bound.jitter == 0;
        if !is_exact || has_peers || !is_planned(at) {
            continue;
        }
        let seen = apps::run(kind, critical_instant(kind, &system, at, bound), until);
        above(at, bound, &seen);
        let begun = u64::from(bound.blocking.is_some());
        assert_eq!(
            seen.response(at) + begun,
            bound.response,
            "{kind:?}, seed {seed}, {}: {bound:?}\n{system:#?}",
            TASKS[at].0
        );
        attained += 1;
    }
    (bounded, attained)
}

fn sets(few: u64) -> u64 {
    std::env::var("PUNCTUAL_TEST_SETS").ok().and_then(|sets| sets.parse().ok()).unwrap_or(few)
}

fn check_all(kind: Kind, few: u64) -> (usize, usize) {
    let sets = sets(few);
    let counts = (1..=sets).map(|seed| check(kind, seed));
    let (bounded, attained) = counts.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    println!(
        "{kind:?}: {sets} sets, no response above any of {bounded} bounds, {attained} exact ones attained"
    );
    (bounded, attained)
}

// Only one app runs at a time, so each kind of app has one test.

#[test]
fn preemptive_bounds_hold_and_exact_ones_are_attained() {
    let (bounded, attained) = check_all(Kind::Preemptive, 16);
    assert!(bounded > 40 && attained > 5, "{bounded} {attained}");
}

#[test]
fn polling_bounds_hold_and_exact_ones_are_attained() {
    let (bounded, attained) = check_all(Kind::Polling, 16);
    assert!(bounded > 40 && attained > 0, "{bounded} {attained}");
}

#[test]
fn bounds_hold_for_partitions_with_shared_resource() {
    let (bounded, attained) = check_all(Kind::Two, 16);
    assert!(bounded > 40 && attained > 0, "{bounded} {attained}");
}

//! Compares the bounds with a simulation, whose responses must never exceed a bound and must equal
//! it if it claims to be exact.

use crate::support::Random;
use crate::support::simulator::{Job, Rules, longest_responses};
use crate::support::{resource, section, system, task};
use punctual_analysis::bound::{Bound, Exactness};
use punctual_analysis::system::{Executor, System};

/// Features of random sets.
#[derive(Clone, Copy)]
struct Shape {
    jitter: bool,
    peers: bool,
    sections: bool,
    rules: Rules,
}

fn random_system(random: &mut Random, shape: Shape) -> System {
    let count = random.within(2, 5) as usize;
    let total = 0.35 + 0.6 * random.fraction();
    let shares = random.utilizations(count, total);
    let mut tasks = Vec::new();
    for (at, share) in shares.iter().enumerate() {
        let period = random.log_uniform(4, 80);
        let execution = ((period as f64 * share) as u64).clamp(1, period);
        let level = if shape.peers { random.within(1, 3) } else { at as u64 + 1 };
        let mut task = task(&format!("t{at}"), level as u32, period, execution);
        if shape.jitter && random.one_in(2) {
            task.jitter = random.within(0, period * 2);
        }
        if shape.sections && random.one_in(2) {
            task.sections.push(section(random.within(0, 1) as usize, random.within(1, execution)));
        }
        tasks.push(task);
    }
    let mut system = System { resources: vec![resource("r"), resource("s")], ..system(tasks) };
    if shape.rules == Rules::RunToEnd {
        system.partitions[0].executor = Executor::Polling;
    }
    system.update_ceilings();
    system
}

fn period(system: &System, at: usize) -> i64 {
    system.tasks[at].arrivals.as_ref().unwrap().window() as i64
}

/// The critical instant is simulated in halves of the model's unit, so that blocking can start less
/// than a unit before it.
const PARTS: u64 = 2;

/// Creates a job of a task that holds its resource from `from` executed ticks on.
fn job(system: &System, at: usize, (nominal, ready): (i64, i64), from: u64, rank: usize) -> Job {
    let task = &system.tasks[at];
    let ceilings = task.sections.iter().map(|section| {
        let from = from.min(task.execution - section.hold);
        (from, from + section.hold, system.resources[section.resource].ceilings[0])
    });
    let (level, execution, ceilings) = (task.level, task.execution, ceilings.collect());
    Job { task: at, level, nominal, ready, execution, ceilings, rank }
}

/// Returns the system in parts of its unit.
fn divided(system: &System) -> System {
    let mut divided = system.clone();
    for task in &mut divided.tasks {
        task.execution *= PARTS;
        task.jitter *= PARTS;
        task.arrivals = task.arrivals.as_ref().map(|it| it.compressed(PARTS, 1));
        task.sections.iter_mut().for_each(|section| section.hold *= PARTS);
    }
    divided
}

/// Creates the worst busy window of `victim`. All tasks above, the peers and the victim are late at
/// first and early afterwards, and the victim goes last of its instant. Its first job is ready at
/// `phase`. `blocker` has started just before.
fn critical_instant(
    system: &System,
    victim: usize,
    blocker: Option<usize>,
    phase: i64,
    late: bool,
    until: i64,
) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (at, task) in system.tasks.iter().enumerate() {
        let jitter = task.jitter as i64;
        let first = if at == victim { phase } else { 0 };
        let mut nominal = first - jitter;
        if task.level < system.tasks[victim].level {
            continue;
        }
        while nominal < until {
            let ready = if at == victim && late { nominal + jitter } else { nominal.max(first) };
            jobs.push(job(system, at, (nominal, ready), 0, usize::from(at == victim)));
            nominal += period(system, at);
        }
    }
    jobs.extend(blocker.map(|blocker| job(system, blocker, (-1, -1), 0, 0)));
    jobs
}

fn observed_at_worst(system: &System, victim: usize, bound: &Bound, rules: Rules) -> i64 {
    let system = divided(system);
    let until = (2 * bound.window * PARTS) as i64 + period(&system, victim) + 1;
    let blocker = bound.blocking.and_then(|blocking| blocking.by);
    let phases = (0..period(&system, victim)).step_by(PARTS as usize);
    let runs = phases.flat_map(|phase| [(phase, true), (phase, false)]);
    let observed = runs.filter_map(|(phase, late)| {
        let jobs = critical_instant(&system, victim, blocker, phase, late, until);
        longest_responses(&jobs, rules, system.tasks.len(), until)[victim]
    });
    observed.max().unwrap()
}

fn exact_bounds_are_attained(shape: Shape, sets: u64) {
    let mut compared = 0;
    for seed in 1..=sets {
        let system = random_system(&mut Random::new(seed), shape);
        let analysis = punctual_analysis::analyze(&system);
        for (at, outcome) in analysis.tasks.iter().enumerate() {
            let Ok(bound) = outcome else { continue };
            if bound.exactness != Exactness::Exact || bound.window > 200 {
                continue;
            }
            let observed = observed_at_worst(&system, at, bound, shape.rules);
            // The blocking job has started before, so this part of it has already run.
            let begun = i64::from(bound.blocking.is_some());
            assert_eq!(
                observed + begun,
                (bound.response * PARTS) as i64,
                "seed {seed}, task {at}: {bound:?}\n{system:#?}"
            );
            compared += 1;
        }
    }
    assert!(compared > sets, "only {compared} bounds were compared");
}

const PLAIN: Shape = Shape { jitter: false, peers: false, sections: false, rules: Rules::Preemptive };

#[test]
fn preemptive_bounds_are_attained() {
    exact_bounds_are_attained(PLAIN, 60);
}

#[test]
fn preemptive_bounds_with_jitter_are_attained() {
    exact_bounds_are_attained(Shape { jitter: true, ..PLAIN }, 60);
}

#[test]
fn preemptive_bounds_with_blocking_are_attained() {
    exact_bounds_are_attained(Shape { sections: true, ..PLAIN }, 60);
}

#[test]
fn peer_bounds_are_attained() {
    exact_bounds_are_attained(Shape { peers: true, ..PLAIN }, 60);
}

#[test]
fn bounds_without_preemption_are_attained() {
    exact_bounds_are_attained(Shape { rules: Rules::RunToEnd, ..PLAIN }, 60);
    exact_bounds_are_attained(Shape { rules: Rules::RunToEnd, peers: true, ..PLAIN }, 30);
}

/// Creates random releases: never closer than the period allows, with random lateness.
fn random_jobs(random: &mut Random, system: &System, until: i64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (at, task) in system.tasks.iter().enumerate() {
        let mut nominal = random.within(0, period(system, at) as u64) as i64;
        let strict = random.one_in(2);
        let (mut last, rank) = (i64::MIN, random.within(0, 9) as usize);
        while nominal < until {
            let late = if random.one_in(2) { task.jitter } else { random.within(0, task.jitter) };
            // Jobs of a task become ready in order.
            let ready = (nominal + late as i64).max(last);
            last = ready;
            let from = random.within(0, task.execution);
            jobs.push(job(system, at, (nominal, ready), from, rank));
            nominal += period(system, at) + if strict { 0 } else { random.within(0, 3) as i64 };
        }
    }
    jobs
}

#[test]
fn no_job_exceeds_its_bound() {
    for rules in [Rules::Preemptive, Rules::RunToEnd] {
        let shape = Shape { jitter: true, peers: true, sections: rules == Rules::Preemptive, rules };
        for seed in 1..=400 {
            let mut random = Random::new(seed);
            let system = random_system(&mut random, shape);
            let analysis = punctual_analysis::analyze(&system);
            let jobs = random_jobs(&mut random, &system, 3_000);
            let observed = longest_responses(&jobs, rules, system.tasks.len(), 4_000);
            // The verdict that ends early must equal that of the bounds.
            let misses = punctual_analysis::first_miss(&system, None).is_some();
            assert_eq!(misses, !analysis.is_schedulable(&system), "seed {seed}");
            for (at, outcome) in analysis.tasks.iter().enumerate() {
                let (Ok(bound), Some(observed)) = (outcome, observed[at]) else { continue };
                assert!(
                    observed <= bound.response as i64,
                    "seed {seed}, task {at}: {observed} {bound:?}\n{system:#?}"
                );
            }
        }
    }
}

/// Creates tasks with harmonic periods, some of them with offsets.
fn random_transactions(random: &mut Random) -> System {
    let count = random.within(3, 6) as usize;
    let total = 0.4 + 0.55 * random.fraction();
    let shares = random.utilizations(count, total);
    let mut tasks = Vec::new();
    for (at, share) in shares.iter().enumerate() {
        let period = [12, 24, 48, 30][random.within(0, 3) as usize];
        let execution = ((period as f64 * share) as u64).clamp(1, period);
        let mut task = task(&format!("t{at}"), random.within(1, 5) as u32, period, execution);
        if random.one_in(3) {
            task.jitter = random.within(0, period + period / 2);
        }
        if !random.one_in(5) {
            task.offset = Some(random.within(0, period - 1));
        }
        if random.one_in(3) {
            task.sections.push(section(random.within(0, 1) as usize, random.within(1, execution)));
        }
        tasks.push(task);
    }
    let mut system = System { resources: vec![resource("r"), resource("s")], ..system(tasks) };
    system.update_ceilings();
    system
}

#[test]
fn no_job_exceeds_offset_bound() {
    let (mut shorter, mut attained) = (0, 0);
    for seed in 1..=300 {
        let mut random = Random::new(seed);
        let system = random_transactions(&mut random);
        let analysis = punctual_analysis::analyze(&system);
        let misses = punctual_analysis::first_miss(&system, None).is_some();
        assert_eq!(misses, !analysis.is_schedulable(&system), "seed {seed}");
        let mut jobs = Vec::new();
        for (at, task) in system.tasks.iter().enumerate() {
            let shift = random.within(0, period(&system, at) as u64);
            let mut nominal = task.offset.unwrap_or(shift) as i64;
            let (mut last, rank) = (i64::MIN, random.within(0, 9) as usize);
            while nominal < 4_000 {
                let late = [0, task.jitter, random.within(0, task.jitter)][random.within(0, 2) as usize];
                last = last.max(nominal + late as i64);
                jobs.push(job(&system, at, (nominal, last), random.within(0, task.execution), rank));
                nominal += period(&system, at) + i64::from(task.offset.is_none() && random.one_in(2));
            }
        }
        let observed = longest_responses(&jobs, Rules::Preemptive, system.tasks.len(), 5_000);
        for (at, outcome) in analysis.tasks.iter().enumerate() {
            let (Ok(bound), Some(observed)) = (outcome, observed[at]) else { continue };
            let response = bound.response as i64;
            assert!(observed <= response, "seed {seed}, task {at}: {observed} {bound:?}\n{system:#?}");
            assert_eq!(bound.sum_of_terms(), bound.window, "seed {seed}, task {at}: {bound:?}");
            assert_eq!(
                bound.response + bound.released,
                bound.jitter + bound.window,
                "seed {seed}: {bound:?}"
            );
            shorter += usize::from(bound.without_offsets.is_some());
            attained += usize::from(bound.without_offsets.is_some() && observed == response);
        }
    }
    assert!(shorter > 100 && attained > 30, "{shorter} {attained}");
}

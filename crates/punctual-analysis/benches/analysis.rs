//! Measures the speed of the analysis: bounds with all terms next to the bare bounds of
//! `response-time-analysis`, margins, and level assignment.
#![allow(missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::time::Duration as Time;

use criterion::{Criterion, criterion_group, criterion_main};
use punctual_analysis::assign::assign;
use punctual_analysis::margin::margins;
use punctual_analysis::system::System;
use punctual_analysis::{analyze, first_miss};
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::fixed_priority::floating_nonpreemptive;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;
use support::Random;
use support::{resource, section, system, task};

/// Generates task sets with three resources; nearly all of them meet their deadlines.
fn random_system(random: &mut Random, count: usize, total: f64) -> System {
    let shares = random.utilizations(count, total);
    let mut tasks: Vec<_> = shares
        .iter()
        .enumerate()
        .map(|(at, share)| {
            let period = random.log_uniform(1_000_000, 1_000_000_000);
            let execution = ((period as f64 * share) as u64).max(1);
            let mut task = task(&format!("t{at}"), 1, period, execution);
            task.sections.push(section(at % 3, execution.min(10_000)));
            task
        })
        .collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(task.deadline));
    for (at, task) in tasks.iter_mut().enumerate() {
        task.level = at as u32 + 1;
    }
    let mut system = System { resources: vec![resource("r"), resource("s"), resource("t")], ..system(tasks) };
    system.update_ceilings();
    system
}

fn schedulable(count: usize, total: f64) -> System {
    let mut seeds = 1..;
    loop {
        let system = random_system(&mut Random::new(seeds.next().unwrap()), count, total);
        if first_miss(&system, None).is_none() {
            return system;
        }
    }
}

/// Computes our bounds, and keeps their terms alive for one task set.
fn ours(system: &System) -> u64 {
    let analysis = black_box(analyze(system));
    analysis.tasks.iter().map(|bound| bound.as_ref().unwrap().response).sum()
}

/// Computes the bounds of the other crate from the blocking terms that ours found.
fn theirs(system: &System, blocking: &[u64]) -> u64 {
    let rbf = |at: usize| {
        let task = &system.tasks[at];
        let period = Duration::from(task.arrivals.as_ref().unwrap().window());
        RBF::new(Sporadic::new_zero_jitter(period), Scalar::new(Service::from(task.execution)))
    };
    let all: Vec<_> = (0..system.tasks.len()).map(rbf).collect();
    let bound = |at: usize| {
        let blocking_bound = Service::from(blocking[at].saturating_sub(1));
        let tua = floating_nonpreemptive::TaskUnderAnalysis { rbf: &all[at], blocking_bound };
        let limit = Duration::from(1_u64 << 50);
        u64::from(floating_nonpreemptive::dedicated_uniproc_rta(&tua, &all[at + 1..], limit).unwrap())
    };
    (0..all.len()).map(bound).sum()
}

fn benches(c: &mut Criterion) {
    let systems: Vec<System> = (1..=32).map(|seed| random_system(&mut Random::new(seed), 20, 0.8)).collect();
    let blocking = |system: &System| {
        let tasks = analyze(system).tasks.into_iter();
        tasks.map(|it| it.unwrap().blocking.map_or(0, |it| it.time)).collect::<Vec<u64>>()
    };
    let blocked: Vec<Vec<u64>> = systems.iter().map(blocking).collect();
    let mut group = c.benchmark_group("32 sets of 20 tasks");
    group.bench_function("with all terms", |b| b.iter(|| systems.iter().map(ours).sum::<u64>()));
    group.bench_function("response-time-analysis", |b| {
        b.iter(|| {
            systems.iter().zip(&blocked).map(|(system, blocking)| theirs(system, blocking)).sum::<u64>()
        });
    });
    group.finish();
    let twenty = schedulable(20, 0.7);
    c.bench_function("margins of 20 tasks", |b| b.iter(|| margins(black_box(&twenty))));
    let mut sixty = random_system(&mut Random::new(1), 60, 0.9);
    for task in &mut sixty.tasks {
        let period = task.arrivals.as_ref().unwrap().window();
        (task.jitter, task.deadline) = (period / 5, Some(50 * period));
    }
    c.bench_function("margins of 60 tasks with D = 50 T", |b| b.iter(|| margins(black_box(&sixty))));
    let levels = random_system(&mut Random::new(7), 28, 0.8);
    c.bench_function("levels of 28 tasks", |b| b.iter(|| assign(black_box(&levels))));
    let many: Vec<System> = (1..=10_000).map(|seed| random_system(&mut Random::new(seed), 10, 0.8)).collect();
    c.bench_function("10 000 sets of 10 tasks", |b| {
        b.iter(|| many.iter().filter(|it| first_miss(it, None).is_none()).count())
    });
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(10).measurement_time(Time::from_secs(2)).warm_up_time(Time::from_millis(300));
    targets = benches
}
criterion_main!(all);

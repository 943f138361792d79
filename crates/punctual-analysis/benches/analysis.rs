//! Measures the speed of margins and level assignment. The benchmark `peer` measures bounds.
#![allow(missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::time::Duration as Time;

use criterion::{Criterion, criterion_group, criterion_main};
use punctual_analysis::assign::assign;
use punctual_analysis::first_miss;
use punctual_analysis::margin::margins;
use punctual_analysis::system::System;
use support::{Random, random_system};

fn schedulable(count: usize, total: f64) -> System {
    let mut seeds = 1..;
    loop {
        let system = random_system(&mut Random::new(seeds.next().unwrap()), count, total);
        if first_miss(&system, None).is_none() {
            return system;
        }
    }
}

fn benches(c: &mut Criterion) {
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

//! Helpers shared by several tests: constructors of task sets, random numbers, and a simulator.
#![allow(dead_code)]

pub(crate) mod simulator;

use punctual_analysis::arrival::Stream;
use punctual_analysis::system::{
    Nesting, Observed, Overheads, Partition, Protocol, Resource, Section, System, Task,
};

/// Creates a task of the first partition, released every `period`, with its deadline at the next
/// release.
pub(crate) fn task(name: &str, level: u32, period: u64, execution: u64) -> Task {
    Task {
        name: name.to_owned(),
        partition: 0,
        level,
        execution,
        arrivals: Some(Stream::sporadic(period)),
        is_only_spawned: false,
        grid: None,
        most_spawns: None,
        is_periodic: true,
        jitter: 0,
        delay: 0,
        deadline: Some(period),
        offset: None,
        sections: Vec::new(),
        spawns: Vec::new(),
        suspension: None,
        observed: Observed::default(),
    }
}

/// Creates a system with the tasks in one preemptive partition.
pub(crate) fn system(tasks: Vec<Task>) -> System {
    System { partitions: vec![Partition::default()], tasks, ..System::default() }
}

/// Generates task sets with three resources; nearly all of them meet their deadlines.
pub(crate) fn random_system(random: &mut Random, count: usize, total: f64) -> System {
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

/// Creates a system from `(period, execution)`, from the highest level to the lowest.
pub(crate) fn periodic(tasks: &[(u64, u64)]) -> System {
    let level = |at: usize| (tasks.len() - at) as u32;
    let task = |(at, &(period, execution))| task(&format!("t{at}"), level(at), period, execution);
    system(tasks.iter().enumerate().map(task).collect())
}

/// Creates a resource of one partition.
pub(crate) fn resource(name: &str) -> Resource {
    Resource { name: name.to_owned(), protocol: Protocol::Srp, ceilings: Vec::new() }
}

/// Creates a critical section.
pub(crate) fn section(resource: usize, hold: u64) -> Section {
    Section { resource, hold, times: 1, nesting: Nesting::Outermost }
}

/// Returns overheads with only these terms.
pub(crate) fn overheads(release: u64, dispatch: u64, lock: u64, preemption: u64) -> Overheads {
    Overheads { release, dispatch, lock, preemption }
}

/// Returns the responses, all of which must exist. Also checks that the terms of each add up to it.
pub(crate) fn responses(system: &System) -> Vec<u64> {
    let analysis = punctual_analysis::analyze(system);
    let responses = analysis.tasks.iter().zip(&system.tasks).map(|(outcome, task)| {
        let bound = outcome.as_ref().unwrap_or_else(|error| panic!("{}: {error:?}", task.name));
        assert_eq!(bound.sum_of_terms(), bound.window, "{}: {bound:?}", task.name);
        assert_eq!(bound.response + bound.released, bound.jitter + bound.window, "{}: {bound:?}", task.name);
        bound.response
    });
    responses.collect()
}

/// Reproducible random numbers: xorshift64*; the seed is not 0.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number from `low` to `high`, both included.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns `true` once in `n` times on average.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    /// Returns a number between both, with the same probability for every magnitude.
    pub(crate) fn log_uniform(&mut self, low: u64, high: u64) -> u64 {
        let (from, to) = ((low as f64).ln(), (high as f64).ln());
        (self.fraction().mul_add(to - from, from).exp() as u64).clamp(low, high)
    }

    /// Returns `count` shares, none above 1, with the sum `total`: UUniFast-discard (Davis & Burns,
    /// RTSS 2009).
    pub(crate) fn utilizations(&mut self, count: usize, total: f64) -> Vec<f64> {
        loop {
            let mut left = total;
            let mut shares = Vec::with_capacity(count);
            for others in (1..count).rev() {
                let rest = left * self.fraction().powf(1.0 / others as f64);
                shares.push(left - rest);
                left = rest;
            }
            shares.push(left);
            if shares.iter().all(|&share| share <= 1.0) {
                return shares;
            }
        }
    }
}

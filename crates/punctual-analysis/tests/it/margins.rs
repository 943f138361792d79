//! Tests that the verdict changes at the margins, and that levels are found whenever they exist.

use crate::support::Random;
use crate::support::{overheads, periodic, resource, section, system, task};
use punctual_analysis::assign::assign;
use punctual_analysis::bound::NoBound;
use punctual_analysis::margin::{AllExecutions, all_executions, margins};
use punctual_analysis::system::{Executor, Spawn, Suspension, System};
use punctual_analysis::time::Ratio;
use punctual_analysis::{analyze, first_miss};

fn random_system(random: &mut Random, count: usize, total: f64) -> System {
    let shares = random.utilizations(count, total);
    let tasks = shares.iter().enumerate().map(|(at, share)| {
        let period = random.log_uniform(1_000, 50_000);
        let execution = ((period as f64 * share) as u64).max(1);
        let mut task = task(&format!("t{at}"), at as u32 + 1, period, execution);
        task.deadline = Some(random.within(period / 2, period));
        task.jitter = if random.one_in(3) { random.within(0, period / 4) } else { 0 };
        if random.one_in(2) {
            task.sections.push(section(random.within(0, 1) as usize, random.within(1, execution)));
        }
        task
    });
    let mut system = System { resources: vec![resource("r"), resource("s")], ..system(tasks.collect()) };
    system.update_ceilings();
    system
}

/// If one task spawns another, each trial computes all bounds again, with every job of the window.
/// With a jitter of one hour, this would take hours.
#[test]
fn tries_chain_jitter_up_to_deadline() {
    let mut tasks = vec![task("sample", 2, 1_000, 200), task("act", 1, 1_000, 300)];
    tasks[0].spawns.push(Spawn { task: 1, most: 1, earliest: 0, in_section: true });
    tasks[1].arrivals = None;
    (tasks[0].deadline, tasks[1].deadline) = (Some(1_000), Some(900));
    let jitter = margins(&system(tasks)).tasks[0].jitter;
    assert!(jitter.until < 1_000 && jitter.first.is_some(), "{jitter:?}");
}

/// The verdict takes short cuts when the bound is not requested.
#[test]
fn verdict_follows_bounds() {
    let (mut met, mut missed) = (0, 0);
    for seed in 1..=600 {
        let mut random = Random::new(seed);
        let mut system = random_system(&mut random, 4, if seed > 400 { 0.4 } else { 0.6 });
        if seed > 400 {
            // Responses of other tasks depend on theirs.
            for _ in 0..2 {
                let task = &mut system.tasks[random.within(0, 3) as usize];
                let total = random.within(1, task.deadline.expect("each has one") / 4);
                task.suspension = Some(Suspension { total, times: random.within(1, 2) });
            }
        }
        let analysis = analyze(&system);
        let misses = |at: &usize| {
            let deadline = system.tasks[*at].deadline.expect("each has one");
            !analysis.tasks[*at].as_ref().is_ok_and(|bound| bound.response <= deadline)
        };
        assert_eq!(first_miss(&system, None), (0..system.tasks.len()).find(misses), "seed {seed}");
        for at in 0..system.tasks.len() {
            assert_eq!(first_miss(&system, Some(at)) == Some(at), misses(&at), "seed {seed}, task {at}");
        }
        *if first_miss(&system, None).is_none() { &mut met } else { &mut missed } += 1;
    }
    assert!(met > 100 && missed > 100, "{met} met, {missed} missed");
}

#[test]
fn verdict_changes_at_margin() {
    let mut tried = 0;
    for seed in 1..=40 {
        let mut random = Random::new(seed);
        let mut system = random_system(&mut random, 4, 0.4);
        // The cost of every release changes with T and J, too.
        let partition = &mut system.partitions[0];
        partition.overheads = overheads(random.within(0, 20), random.within(0, 5), 0, random.within(0, 5));
        if seed % 4 == 0 {
            partition.executor = Executor::Polling;
        }
        let found = margins(&system);
        let scaled = |permille: u64| {
            let mut scaled = system.clone();
            scaled.scale(Ratio { numerator: permille, denominator: 1_000 });
            first_miss(&scaled, None)
        };
        assert_eq!(scaled(found.all.permille), None);
        assert!(scaled(found.all.permille + 1).is_some());
        for (at, margins) in found.tasks.iter().enumerate() {
            let with = |change: &dyn Fn(&mut System)| {
                let mut changed = system.clone();
                change(&mut changed);
                first_miss(&changed, None)
            };
            let (c, j) = (margins.execution, margins.jitter);
            assert_eq!(with(&|it| it.tasks[at].execution = c.until), None);
            assert!(with(&|it| it.tasks[at].execution = c.until + c.step).is_some());
            assert_eq!(with(&|it| it.tasks[at].jitter = j.until), None);
            assert!(with(&|it| it.tasks[at].jitter = j.until + j.step).is_some());
            let period = margins.period.unwrap();
            let stream = punctual_analysis::arrival::Stream::sporadic;
            assert_eq!(with(&|it| it.tasks[at].arrivals = Some(stream(period.until))), None);
            let less = period.until - period.step;
            assert!(with(&|it| it.tasks[at].arrivals = Some(stream(less))).is_some(), "seed {seed}");
            for (index, hold) in margins.holds.iter().enumerate() {
                let set = |it: &mut System, value: u64| {
                    it.tasks[at].execution += value - hold.now;
                    it.tasks[at].sections[index].hold = value;
                };
                assert_eq!(with(&|it| set(it, hold.until)), None);
                assert!(with(&|it| set(it, hold.until + hold.step)).is_some());
            }
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
}

/// Almost all of the CPU is used: the busy window of the suspending task has millions of jobs, so
/// its bound exceeds the step limit. The deadline is nevertheless proven.
#[test]
fn margins_accept_deadline_met_in_busy_window_too_long_to_compute() {
    let ms = 1_000_000;
    let (cost, period) = (ms - 1, 2 * ms);
    let mut tasks = vec![task("high", 2, 3 * ms, 3 * ms / 2), task("low", 1, period, cost - 1_000)];
    (tasks[0].jitter, tasks[0].deadline) = (3 * ms, None);
    (tasks[1].suspension, tasks[1].deadline) = (Some(Suspension { total: 1_000, times: 1 }), Some(9 * ms));
    let system = system(tasks);
    // After each hyperperiod of 6 ms, every job of `low` responds 3 ns earlier than before it.
    let response = |jobs: u64| {
        let end = |window: u64| jobs * cost + (window + 3 * ms).div_ceil(3 * ms) * (3 * ms / 2);
        let mut window = 1;
        while end(window) > window {
            window = end(window);
        }
        window - (jobs - 1) * period
    };
    assert_eq!((1..=3).map(response).max(), Some(6 * ms - 2));
    assert!((4..=3_000).all(|jobs| response(jobs) == response(jobs - 3) - 3));
    assert_eq!(analyze(&system).tasks[1], Err(NoBound::TooLong));
    assert_eq!(first_miss(&system, None), None);
    // One more thousandth overloads the CPU.
    assert_eq!(all_executions(&system), AllExecutions { permille: 1_000, first: Some(1) });
}

#[test]
fn reports_negative_margins_of_unschedulable_sets() {
    let system = periodic(&[(100, 52), (140, 52)]);
    let found = margins(&system);
    assert!(found.all.permille < 1_000 && found.tasks.is_empty());
    assert_eq!(found.all.first, Some(1));
    // Both must end before the higher one is released again at 100: C = 50.
    assert_eq!(all_executions(&system).permille, 961);
}

/// Returns all orders of `n` levels.
fn orders(n: u32) -> Vec<Vec<u32>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(n - 1);
    let insert = |order: &Vec<u32>, at: usize| {
        let mut order = order.clone();
        order.insert(at, n);
        order
    };
    shorter.iter().flat_map(|order| (0..=order.len()).map(move |at| insert(order, at))).collect()
}

#[test]
fn assigns_levels_whenever_possible() {
    let (mut with, mut without, mut not_monotonic) = (0, 0, 0);
    for seed in 1..=150 {
        let mut random = Random::new(seed);
        let total = 0.5 + 0.5 * random.fraction();
        let system = random_system(&mut random, 4, total);
        let works = |levels: &[u32]| {
            let mut system = system.clone();
            for (task, &level) in system.tasks.iter_mut().zip(levels) {
                task.level = level;
            }
            system.update_ceilings();
            first_miss(&system, None).is_none()
        };
        let found = assign(&system);
        assert!(found.is_optimal);
        assert_eq!(found.is_schedulable, works(&found.levels), "seed {seed}");
        assert_eq!(found.is_schedulable, orders(4).iter().any(|order| works(order)), "seed {seed}");
        if found.is_schedulable {
            with += 1
        } else {
            without += 1
        }
        let mut by_deadline: Vec<usize> = (0..4).collect();
        by_deadline.sort_by_key(|&at| std::cmp::Reverse(system.tasks[at].deadline));
        let mut monotonic = [0; 4];
        for (level, &at) in by_deadline.iter().enumerate() {
            monotonic[at] = level as u32 + 1;
        }
        not_monotonic += u32::from(found.is_schedulable && !works(&monotonic));
    }
    assert!(with > 20 && without > 20 && not_monotonic > 0, "{with} {without} {not_monotonic}");
}

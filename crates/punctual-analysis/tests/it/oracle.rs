//! Compares the bounds with those of the crate `response-time-analysis`, whose analyses are
//! instances of proofs checked by Coq.
//!
//! That crate computes in discrete time and omits the task's own jitter. A blocking of B there is
//! one of B − 1 that started before, and J is added to its results.

use crate::support::Random;
use crate::support::{resource, section, system, task};
use punctual_analysis::system::{Executor, System};
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::fixed_priority::{floating_nonpreemptive, fully_nonpreemptive, fully_preemptive};
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;
use serde_json::json;

const LIMIT: u64 = 1 << 40;

fn random_system(random: &mut Random, sections: bool) -> System {
    let count = random.within(1, 12) as usize;
    let total = 0.5 + 0.48 * random.fraction();
    let shares = random.utilizations(count, total);
    let tasks = shares.iter().enumerate().map(|(at, share)| {
        let period = random.log_uniform(10_000, 1_000_000);
        let execution = ((period as f64 * share) as u64).max(1);
        let mut task = task(&format!("t{at}"), at as u32 + 1, period, execution);
        if random.one_in(3) {
            task.jitter = random.within(0, period * 2);
        }
        if sections && random.one_in(2) {
            task.sections.push(section(random.within(0, 2) as usize, random.within(1, execution)));
        }
        task
    });
    let tasks = tasks.collect();
    let resources = vec![resource("r"), resource("s"), resource("t")];
    let mut system = System { resources, ..system(tasks) };
    system.update_ceilings();
    system
}

type Demand = RBF<Sporadic, Scalar>;

fn arrivals(system: &System, at: usize) -> Sporadic {
    let task = &system.tasks[at];
    Sporadic::new(Duration::from(task.arrivals.as_ref().unwrap().window()), Duration::from(task.jitter))
}

fn demand(system: &System, at: usize) -> Demand {
    RBF::new(arrivals(system, at), Scalar::new(Service::from(system.tasks[at].execution)))
}

/// Compares all bounds with those of `oracle`, which receives the task, its rivals, and the
/// blocking.
fn compare(system: &System, oracle: impl Fn(usize, &[Demand], u64) -> Option<u64>) -> usize {
    let analysis = punctual_analysis::analyze(system);
    let mut compared = 0;
    for (at, outcome) in analysis.tasks.iter().enumerate() {
        let Ok(bound) = outcome else { continue };
        let higher: Vec<Demand> = (at + 1..system.tasks.len()).map(|other| demand(system, other)).collect();
        let blocking = bound.blocking.map_or(0, |blocking| blocking.time);
        let theirs = oracle(at, &higher, blocking.saturating_sub(1)).expect("a bound exists");
        let ours = bound.response - bound.jitter - u64::from(blocking > 0);
        // With an own jitter of more than a period, the oracle counts jobs as late that cannot be.
        if bound.jitter == 0
            || system.tasks[at].arrivals.as_ref().unwrap().window() > bound.window + bound.jitter
        {
            assert_eq!(ours, theirs, "task {at}: {bound:?}\n{system:#?}");
            compared += 1;
        }
    }
    compared
}

fn nanos(found: Result<Duration, impl std::fmt::Debug>) -> Option<u64> {
    found.ok().map(u64::from)
}

#[test]
fn agrees_on_preemptive_sets() {
    let compared: usize = (1..=300)
        .map(|seed| {
            let system = random_system(&mut Random::new(seed), false);
            compare(&system, |at, higher, _| {
                nanos(fully_preemptive::dedicated_uniproc_rta(
                    &demand(&system, at),
                    higher,
                    Duration::from(LIMIT),
                ))
            })
        })
        .sum();
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn agrees_on_sets_with_blocking() {
    let compared: usize = (1..=300)
        .map(|seed| {
            let system = random_system(&mut Random::new(seed), true);
            compare(&system, |at, higher, blocking| {
                let rbf = &demand(&system, at);
                let tua = floating_nonpreemptive::TaskUnderAnalysis {
                    rbf,
                    blocking_bound: Service::from(blocking),
                };
                nanos(floating_nonpreemptive::dedicated_uniproc_rta(&tua, higher, Duration::from(LIMIT)))
            })
        })
        .sum();
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn agrees_on_sets_without_preemption() {
    let compared: usize = (1..=300)
        .map(|seed| {
            let mut system = random_system(&mut Random::new(seed), false);
            system.partitions[0].executor = Executor::Polling;
            compare(&system, |at, higher, blocking| {
                let tua = fully_nonpreemptive::TaskUnderAnalysis {
                    wcet: Scalar::new(Service::from(system.tasks[at].execution)),
                    arrivals: &arrivals(&system, at),
                    blocking_bound: Service::from(blocking),
                };
                nanos(fully_nonpreemptive::dedicated_uniproc_rta(&tua, higher, Duration::from(LIMIT)))
            })
        })
        .sum();
    assert!(compared > 1_000, "{compared}");
}

/// Writes sets with jitter, and their bounds, into the file that `PUNCTUAL_PYCPA_FILE` names. Omits
/// tasks whose jobs may be late by more than the remaining part of a period: like the other oracle,
/// pyCPA counts more of these jobs as late than possible.
#[test]
#[ignore = "a part of `cargo xtask check pycpa`"]
fn writes_sets_for_pycpa() {
    let path = std::env::var_os("PUNCTUAL_PYCPA_FILE").expect("PUNCTUAL_PYCPA_FILE names a file");
    let sets = (1..=300).map(|seed| {
        let system = random_system(&mut Random::new(seed), false);
        let analysis = punctual_analysis::analyze(&system);
        let tasks = system.tasks.iter().zip(&analysis.tasks).rev().map(|(task, outcome)| {
            let (period, jitter) = (task.arrivals.as_ref().unwrap().window(), task.jitter);
            let bound = outcome.as_ref().ok().filter(|it| jitter == 0 || period > it.window + jitter);
            let bound = bound.map(|bound| bound.response);
            let execution = task.execution;
            json!({ "period": period, "jitter": jitter, "execution": execution, "bound": bound })
        });
        tasks.collect::<Vec<_>>()
    });
    std::fs::write(path, json!(sets.collect::<Vec<_>>()).to_string()).expect("the file can be written");
}

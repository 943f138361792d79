//! Bounds of the global executor: at least the responses in a simulation of several CPUs, and at
//! most the bounds of 2007.

use crate::support::Random;
use crate::support::{system, task};
use punctual_analysis::analyze;
use punctual_analysis::system::{Executor, Partition, System};

const CPUS: usize = 2;

fn global(random: &mut Random) -> System {
    let count = random.within(4, 8) as usize;
    let mut tasks = Vec::new();
    for at in 0..count {
        let period = random.within(8, 40);
        let execution = random.within(1, period / 2);
        let mut task = task(&format!("t{at}"), (count - at) as u32, period, execution);
        task.jitter = if random.one_in(3) { random.within(0, period / 4) } else { 0 };
        tasks.push(task);
    }
    let partition = Partition { executor: Executor::Global { cpus: CPUS as u64 }, ..Partition::default() };
    System { partitions: vec![partition], ..system(tasks) }
}

/// Simulates a run with sporadic releases; returns the longest response of each task, by level.
fn simulated(system: &System, random: &mut Random) -> Vec<u64> {
    struct State {
        nominal: u64,
        ready: u64,
        left: u64,
        longest: u64,
    }
    let period = |at: usize| system.tasks[at].arrivals.as_ref().unwrap().window();
    let late = |at: usize, random: &mut Random| random.within(0, 1) * system.tasks[at].jitter;
    let mut states: Vec<State> = (0..system.tasks.len())
        .map(|at| {
            let nominal = random.within(0, 3) * period(at) / 3;
            State { nominal, ready: nominal + late(at, random), left: system.tasks[at].execution, longest: 0 }
        })
        .collect();
    for now in 0..4_000 {
        let running: Vec<usize> =
            (0..states.len()).filter(|&at| states[at].ready <= now).take(CPUS).collect();
        for at in running {
            let state = &mut states[at];
            state.left -= 1;
            if state.left == 0 {
                state.longest = state.longest.max(now + 1 - state.nominal);
                // Mostly the earliest release, which is the worst for others.
                let more = if random.one_in(6) { random.within(0, period(at)) } else { 0 };
                state.nominal += period(at) + more;
                state.ready = (state.nominal + late(at, random)).max(now + 1);
                state.left = system.tasks[at].execution;
            }
        }
    }
    states.into_iter().map(|state| state.longest).collect()
}

/// Computes the formulas of the papers for a number of tasks with a carry-in job: all of them in
/// Bertogna & Cirinei 2007, and one per CPU except one in Guan et al. 2009. Ends with `None` at the
/// first task that may not have ended at its next release.
fn by_formula(system: &System, carriers: usize) -> Vec<Option<u64>> {
    let mut found: Vec<Option<u64>> = Vec::new();
    for (at, task) in system.tasks.iter().enumerate() {
        let period = |at: usize| system.tasks[at].arrivals.as_ref().unwrap().window();
        let bound = found.iter().copied().collect::<Option<Vec<u64>>>().and_then(|higher| {
            let mut window = task.execution;
            loop {
                let most = window - task.execution + 1;
                let work = |other: usize, span: u64| {
                    let cost = system.tasks[other].execution;
                    (span / period(other) * cost + cost.min(span % period(other))).min(most)
                };
                let fresh = |other: usize| work(other, window + system.tasks[other].jitter);
                let carried =
                    |other: usize| work(other, window + higher[other] - system.tasks[other].execution);
                let mut more: Vec<u64> =
                    (0..at).map(|other| carried(other).saturating_sub(fresh(other))).collect();
                more.sort_unstable();
                let all = (0..at).map(fresh).sum::<u64>() + more.iter().rev().take(carriers).sum::<u64>();
                let next = task.execution + all / CPUS as u64;
                if next + task.jitter > period(at) {
                    return None;
                }
                if next == window {
                    return Some(window + task.jitter);
                }
                window = next;
            }
        });
        found.push(bound);
    }
    found
}

#[test]
fn bounds_hold_and_improve_on_2007() {
    let mut random = Random::new(2009);
    let (mut compared, mut shorter, mut attained, mut only_now) = (0, 0, 0, 0);
    for _ in 0..400 {
        let system = global(&mut random);
        let analysis = analyze(&system);
        let seen = simulated(&system, &mut random);
        let found: Vec<Option<u64>> =
            analysis.tasks.iter().map(|it| it.as_ref().ok().map(|it| it.response)).collect();
        assert_eq!(found, by_formula(&system, CPUS - 1), "{system:?}");
        for ((outcome, before), seen) in analysis.tasks.iter().zip(by_formula(&system, usize::MAX)).zip(seen)
        {
            let Ok(bound) = outcome else {
                assert_eq!(before, None, "{outcome:?}");
                // Lower tasks are not checked, because a job may have found its predecessor
                // unfinished.
                break;
            };
            assert!(seen <= bound.response, "seen {seen}, {bound:?} in {system:?}");
            assert_eq!(bound.sum_of_terms(), bound.window, "{bound:?}");
            compared += 1;
            attained += u32::from(seen == bound.response);
            match before {
                Some(before) => {
                    assert!(bound.response <= before, "{bound:?} and {before} in {system:?}");
                    shorter += u32::from(bound.response < before);
                }
                None => only_now += 1,
            }
        }
    }
    assert!(compared > 1_000 && shorter > 15 && only_now > 3, "{compared} {shorter} {only_now}");
    assert!(attained > compared / 3, "{attained} of {compared}");
}

#[test]
fn single_cpu_has_no_carry_in() {
    // On one CPU there is no carry-in: the bound of Joseph & Pandya.
    let mut system = crate::support::periodic(&[(7, 3), (20, 5)]);
    system.partitions[0].executor = Executor::Global { cpus: 1 };
    assert_eq!(crate::support::responses(&system), [3, 11]);
}

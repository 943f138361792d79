//! Answers that are printed in papers and textbooks.

mod support;

use punctual_analysis::bound::{Exactness, NoBound};
use punctual_analysis::system::{Executor, System};
use support::{periodic, resource, responses, section, system, task};

/// Audsley, Burns, Richardson, Tindell, Wellings 1993; Burns & Wellings, *Real-Time Systems and Programming Languages*, 4th ed.,
/// table 11.7.
#[test]
fn burns_wellings_three_tasks() {
    assert_eq!(responses(&periodic(&[(7, 3), (12, 3), (20, 5)])), [3, 6, 20]);
}

/// Burns & Wellings, table 11.5: schedulable although all of the CPU is used.
#[test]
fn burns_wellings_full_utilisation() {
    assert_eq!(responses(&periodic(&[(20, 5), (40, 10), (80, 40)])), [5, 15, 80]);
}

/// Lehoczky, Sha, Ding, "The Rate Monotonic Scheduling Algorithm: Exact Characterization and Average Case Behavior", RTSS 1989,
/// the worked example.
#[test]
fn lehoczky_sha_ding() {
    assert_eq!(responses(&periodic(&[(100, 40), (150, 40), (350, 100)])), [40, 80, 300]);
}

/// Lehoczky 1990, example 1: the fifth job of the lower task is the worst.
#[test]
fn lehoczky_fifth_job_is_worst() {
    let system = periodic(&[(70, 26), (100, 62)]);
    assert_eq!(responses(&system), [26, 118]);
    let bound = punctual_analysis::analyse(&system).tasks[1].clone().unwrap();
    assert_eq!((bound.own.jobs, bound.released, bound.window), (5, 400, 518));
}

/// Lehoczky 1990, example 2, in both orders.
#[test]
fn lehoczky_either_order() {
    assert_eq!(responses(&periodic(&[(100, 52), (140, 52)])), [52, 156]);
    assert_eq!(responses(&periodic(&[(140, 52), (100, 52)])), [52, 108]);
}

/// Liu & Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment", JACM 20(1), 1973, section 4: two
/// tasks at the bound of utilisation, T = 2 and 5, C = 1 and 1, and then C₂ raised to 2, which just fits.
#[test]
fn liu_layland_two_tasks() {
    assert_eq!(responses(&periodic(&[(2, 1), (5, 1)])), [1, 2]);
    assert_eq!(responses(&periodic(&[(2, 1), (5, 2)])), [1, 4]);
}

/// Davis, Burns, Bril, Lukkien 2007, table 4: the second job of message C is the worst, which the older analysis overlooks.
/// In tenths of the paper's unit.
#[test]
fn davis_second_message_is_worst() {
    let mut system = periodic(&[(25, 10), (35, 10), (35, 10)]);
    system.partitions[0].executor = Executor::Polling;
    system.tasks[1].deadline = Some(33);
    system.tasks[2].deadline = Some(33);
    assert_eq!(responses(&system), [20, 30, 35]);
    assert_eq!(punctual_analysis::first_miss(&system, None), Some(2));
}

/// Buttazzo, *Hard Real-Time Computing Systems*, 3rd ed., section 4.5.2: the response-time test of four tasks.
#[test]
fn buttazzo_four_tasks() {
    assert_eq!(responses(&periodic(&[(4, 1), (5, 1), (6, 2), (11, 1)])), [1, 2, 4, 10]);
}

/// Sha, Rajkumar, Lehoczky, "Priority Inheritance Protocols", IEEE Transactions on Computers 39(9), 1990, section VI: with the
/// ceiling protocol a task is blocked by one critical section of all lower ones, the longest with a high enough ceiling.
#[test]
fn one_section_blocks_and_only_one() {
    let mut tasks = vec![task("a", 3, 100, 40), task("b", 2, 150, 40), task("c", 1, 350, 100)];
    tasks[0].sections = vec![section(0, 10)];
    tasks[1].sections = vec![section(0, 5), section(1, 12)];
    tasks[2].sections = vec![section(0, 10), section(1, 20)];
    let mut system = System { resources: vec![resource("s1"), resource("s2")], ..system(tasks) };
    system.update_ceilings();
    // B = 10, 20, 0: the ceiling of s2 is not above b, so it does not block a.
    assert_eq!(responses(&system), [50, 100, 300]);
}

/// No bound exists if a level and what is above it need more than the CPU.
#[test]
fn overload_names_tasks() {
    let analysis = punctual_analysis::analyse(&periodic(&[(10, 6), (20, 6), (40, 8)]));
    assert!(analysis.tasks[1].is_ok());
    let Err(NoBound::Overload { tasks, utilisation, .. }) = &analysis.tasks[2] else {
        panic!("{analysis:?}")
    };
    assert_eq!((tasks.as_slice(), utilisation.as_f64()), ([0, 1, 2].as_slice(), 1.1));
}

/// With full utilisation any delay at all lasts for ever.
#[test]
fn full_utilisation_with_jitter_has_no_bound() {
    let mut system = periodic(&[(20, 5), (40, 10), (80, 40)]);
    system.tasks[0].jitter = 1;
    let analysis = punctual_analysis::analyse(&system);
    assert!(matches!(analysis.tasks[2], Err(NoBound::Overload { .. })));
    assert_eq!(analysis.tasks[0].as_ref().unwrap().exactness, Exactness::Exact);
}

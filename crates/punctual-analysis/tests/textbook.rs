//! Answers that are printed in papers and textbooks.

mod support;

use punctual_analysis::arrival::Stream;
use punctual_analysis::bound::{Exactness, NoBound};
use punctual_analysis::chain::reaction;
use punctual_analysis::system::{
    Chain, Executor, Link, Partition, Protocol, Resource, Spawn, Suspension, System, Task,
};
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

/// Burns & Wellings, *Real-Time Systems and Programming Languages*, the example of deadline monotonic levels: D < T, and a set that no
/// rate monotonic order makes schedulable.
#[test]
fn burns_wellings_deadline_monotonic() {
    let with_deadline = |level, (period, deadline, execution)| Task {
        deadline: Some(deadline),
        ..task("", level, period, execution)
    };
    let set = [(20, 5, 3), (15, 7, 3), (10, 10, 4), (20, 20, 3)];
    let system =
        system(set.into_iter().zip((1..=4).rev()).map(|(it, level)| with_deadline(level, it)).collect());
    assert_eq!(responses(&system), [3, 6, 10, 20]);
    assert_eq!(punctual_analysis::first_miss(&system, None), None);
    let mut monotonic = system.clone();
    for (task, level) in monotonic.tasks.iter_mut().zip([1, 3, 4, 2]) {
        task.level = level;
    }
    assert_eq!(punctual_analysis::first_miss(&monotonic, None), Some(0));
    assert!(punctual_analysis::assign::assign(&monotonic).is_schedulable);
}

/// J. W. S. Liu, *Real-Time Systems*, 2000, section 6.5.2: time-demand functions of four tasks. In hundredths of the book's unit.
#[test]
fn liu_time_demand() {
    let system = periodic(&[(300, 100), (500, 150), (700, 125), (900, 50)]);
    assert_eq!(responses(&system), [100, 250, 475, 900]);
}

/// Chen et al., "Many Suspensions, Many Problems", Real-Time Systems 55, 2019, on jitter as long as the waiting, which gives 15 for the
/// lowest task: there is a schedule in which it takes 22. That is what R − C as jitter gives, too.
#[test]
fn chen_waiting_is_no_jitter_of_its_length() {
    let mut system = periodic(&[(2, 1), (20, 5), (50, 1)]);
    system.tasks[1].suspension = Some(Suspension { total: 5, times: 1 });
    assert_eq!(responses(&system), [1, 20, 22]);
}

/// The example of Palencia & González Harbour, RTSS 1998, as public implementations of its authors' group have it: two chains over two
/// processors and a network, here a third. By the holistic analysis they end after 42 and 30.
#[test]
fn palencia_gonzalez_harbour_two_chains() {
    let place = |name, level, period, execution, partition, spawns: Option<usize>| Task {
        partition,
        arrivals: (period > 0).then(|| Stream::sporadic(period)),
        deadline: None,
        is_periodic: period > 0,
        spawns: spawns.into_iter().map(|task| Spawn { task, most: 1 }).collect(),
        ..task(name, level, 1, execution)
    };
    let tasks = vec![
        place("a1", 2, 30, 5, 0, Some(1)),
        place("a2", 1, 0, 2, 1, Some(2)),
        place("a3", 1, 0, 20, 2, None),
        place("a4", 2, 40, 5, 2, Some(4)),
        place("a5", 2, 0, 10, 1, Some(5)),
        place("a6", 1, 0, 10, 0, None),
    ];
    let system = System { partitions: vec![Partition::default(); 3], ..system(tasks) };
    let analysis = punctual_analysis::analyse(&system);
    let end = |tasks: [usize; 3]| {
        let chain = Chain { name: "".into(), tasks: tasks.into(), link: Link::Spawned, deadline: None };
        reaction(&system, &analysis, &chain)
    };
    assert_eq!((end([0, 1, 2]), end([3, 4, 5])), (Ok(42), Ok(30)));
}

/// Two tasks of one period that are half of it apart never meet: worked by hand after Palencia & González Harbour 1998, equations for
/// one transaction. Late by more than the distance, they do.
#[test]
fn offsets_keep_tasks_apart() {
    let mut system = periodic(&[(20, 6), (20, 8), (40, 3)]);
    (system.tasks[0].offset, system.tasks[1].offset) = (Some(0), Some(10));
    // The lowest has no offset: it begins with the second, and meets the first before it ends.
    assert_eq!(responses(&system), [6, 8, 17]);
    let bound = punctual_analysis::analyse(&system).tasks[1].clone().unwrap();
    assert_eq!((bound.without_offsets, bound.exactness), (Some(14), Exactness::Sufficient));
    // If the first is up to 12 late, one that should have come 10 before the second comes with it, and the next 10 after.
    system.tasks[0].jitter = 12;
    assert_eq!(responses(&system)[..2], [18, 20]);
    // With an offset of 2 the lowest meets both, but not the second job of either.
    system.tasks[0].jitter = 0;
    system.tasks[2].offset = Some(2);
    assert_eq!(responses(&system), [6, 8, 7]);
}

/// A caller and what it calls are one job of both to all below them: worked by hand after González Harbour & Palencia 1999. By the
/// holistic analysis the callee is up to 9 late, and two of its jobs are in the way of `low`.
#[test]
fn called_task_competes_with_its_caller_only_once() {
    let mut tasks = vec![task("called", 3, 20, 4), task("caller", 2, 20, 5), task("low", 1, 40, 4)];
    (tasks[0].arrivals, tasks[0].deadline) = (None, None);
    tasks[1].spawns = vec![Spawn { task: 0, most: 1 }];
    assert_eq!(responses(&system(tasks)), [4, 9, 13]);
}

/// Gai, Lipari, Di Natale, RTSS 2001 (MSRP), worked by hand: each request spins for at most one section of the other partition.
#[test]
fn spinning_is_part_of_execution() {
    let place = |name, partition, execution, hold| Task {
        partition,
        sections: vec![section(0, hold)],
        ..task(name, 1, 100, execution)
    };
    let tasks = vec![place("a", 0, 10, 4), place("b", 1, 20, 6)];
    let shared = Resource { protocol: Protocol::Msrp { group: 0 }, ..resource("r") };
    let mut system =
        System { partitions: vec![Partition::default(); 2], resources: vec![shared], ..system(tasks) };
    system.update_ceilings();
    assert_eq!(responses(&system), [10 + 6, 20 + 4]);
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

//! Task sets of papers and textbooks, with their results.
//!
//! Sets and citations are quoted from memory, so a table may have another number. No result is
//! taken on trust: those of independent periodic tasks are checked by simulating the set tick by
//! tick from the critical instant (`played`); all others were computed by hand from the equations
//! of the source.

use crate::support::simulator::{Job, Rules, longest_responses};
use crate::support::{overheads, periodic, resource, responses, section, system, task};
use punctual_analysis::arrival::Stream;
use punctual_analysis::bound::{Exactness, NoBound};
use punctual_analysis::chain::reaction;
use punctual_analysis::system::{
    Chain, Executor, Link, Partition, Protocol, Resource, Spawn, Suspension, System, Task,
};

/// Returns the bounds of `(period, execution)`, highest level first, which must equal the longest
/// responses in a run with all tasks released at once and then at every period.
fn played(tasks: &[(u64, u64)]) -> Vec<u64> {
    let bounds = responses(&periodic(tasks));
    let until = tasks.iter().map(|&(period, _)| period as i64).max().unwrap() * 10;
    let jobs_of = |(at, &(period, execution)): (usize, &(u64, u64))| {
        let level = (tasks.len() - at) as u32;
        let releases = (0..until).step_by(period as usize);
        releases.map(move |ready| Job {
            task: at,
            level,
            nominal: ready,
            ready,
            execution,
            ceilings: Vec::new(),
            rank: 0,
        })
    };
    let jobs: Vec<Job> = tasks.iter().enumerate().flat_map(jobs_of).collect();
    let seen = longest_responses(&jobs, Rules::Preemptive, tasks.len(), until);
    assert_eq!(seen, bounds.iter().map(|&bound| Some(bound as i64)).collect::<Vec<_>>());
    bounds
}

/// Audsley, Burns, Richardson, Tindell, Wellings 1993; Burns & Wellings, *Real-Time Systems and
/// Programming Languages*, 4th ed., table 11.7.
#[test]
fn burns_wellings_three_tasks() {
    assert_eq!(played(&[(7, 3), (12, 3), (20, 5)]), [3, 6, 20]);
}

/// Burns & Wellings, table 11.5: schedulable at full utilization of the CPU.
#[test]
fn burns_wellings_full_utilization() {
    assert_eq!(played(&[(20, 5), (40, 10), (80, 40)]), [5, 15, 80]);
}

/// Lehoczky, Sha, Ding, "The Rate Monotonic Scheduling Algorithm: Exact Characterization and
/// Average Case Behavior", RTSS 1989, the worked example.
#[test]
fn lehoczky_sha_ding() {
    assert_eq!(played(&[(100, 40), (150, 40), (350, 100)]), [40, 80, 300]);
}

/// Lehoczky 1990, example 1: the fifth job of the lower task is the worst.
#[test]
fn lehoczky_fifth_job_is_worst() {
    let set = [(70, 26), (100, 62)];
    let system = periodic(&set);
    assert_eq!(played(&set), [26, 118]);
    let bound = punctual_analysis::analyze(&system).tasks[1].clone().unwrap();
    assert_eq!((bound.own.jobs, bound.released, bound.window), (5, 400, 518));
}

/// Lehoczky 1990, example 2, in both orders.
#[test]
fn lehoczky_either_order() {
    assert_eq!(played(&[(100, 52), (140, 52)]), [52, 156]);
    assert_eq!(played(&[(140, 52), (100, 52)]), [52, 108]);
}

/// Liu & Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment",
/// JACM 20(1), 1973, section 4: two tasks at the bound of utilization, T = 2 and 5, C = 1 and 1,
/// and then C₂ raised to 2, which just fits.
#[test]
fn liu_layland_two_tasks() {
    assert_eq!(played(&[(2, 1), (5, 1)]), [1, 2]);
    assert_eq!(played(&[(2, 1), (5, 2)]), [1, 4]);
}

/// Davis, Burns, Bril, Lukkien 2007, table 4: the second job of message C is the worst, which the
/// older analysis overlooks. In tenths of the paper's unit.
#[test]
fn davis_second_message_is_worst() {
    let mut system = periodic(&[(25, 10), (35, 10), (35, 10)]);
    system.partitions[0].executor = Executor::Polling;
    system.tasks[1].deadline = Some(33);
    system.tasks[2].deadline = Some(33);
    assert_eq!(responses(&system), [20, 30, 35]);
    assert_eq!(punctual_analysis::first_miss(&system, None), Some(2));
}

/// Buttazzo, *Hard Real-Time Computing Systems*, 3rd ed., section 4.5.2: the response-time test of
/// four tasks.
#[test]
fn buttazzo_four_tasks() {
    assert_eq!(played(&[(4, 1), (5, 1), (6, 2), (11, 1)]), [1, 2, 4, 10]);
}

/// Sha, Rajkumar, Lehoczky, "Priority Inheritance Protocols", IEEE Transactions on Computers 39(9),
/// 1990, section VI: under the ceiling protocol, a task is blocked by one critical section of all
/// lower tasks, the longest with a high enough ceiling.
#[test]
fn one_critical_section_blocks() {
    let mut tasks = vec![task("a", 3, 100, 40), task("b", 2, 150, 40), task("c", 1, 350, 100)];
    tasks[0].sections = vec![section(0, 10)];
    tasks[1].sections = vec![section(0, 5), section(1, 12)];
    tasks[2].sections = vec![section(0, 10), section(1, 20)];
    let mut system = System { resources: vec![resource("s1"), resource("s2")], ..system(tasks) };
    system.update_ceilings();
    // B = 10, 20, 0: the ceiling of s2 is not above b, so it does not block a.
    assert_eq!(responses(&system), [50, 100, 300]);
}

/// Burns & Wellings, *Real-Time Systems and Programming Languages*, the example of deadline
/// monotonic levels: D < T, and a set that no rate monotonic order makes schedulable.
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

/// J. W. S. Liu, *Real-Time Systems*, 2000, section 6.5.2: time-demand functions of four tasks. In
/// hundredths of the book's unit.
#[test]
fn liu_time_demand() {
    assert_eq!(played(&[(300, 100), (500, 150), (700, 125), (900, 50)]), [100, 250, 475, 900]);
}

/// Chen et al., "Many Suspensions, Many Problems", Real-Time Systems 55, 2019, on jitter as long as
/// the suspension, which the paper refutes: it gives 12 for the lowest task, 1 + ⌈12 / 2⌉ + ⌈(12 +
/// 5) / 20⌉ · 5. With R − C = 15 as jitter, the bound is 1 + ⌈22 / 2⌉ + ⌈(22 + 15) / 20⌉ · 5.
#[test]
fn chen_suspension_is_not_jitter() {
    let mut system = periodic(&[(2, 1), (20, 5), (50, 1)]);
    system.tasks[1].suspension = Some(Suspension { total: 5, times: 1 });
    assert_eq!(responses(&system), [1, 20, 22]);
}

/// The example of Palencia & González Harbour, RTSS 1998, as in public implementations by the
/// authors' group: two chains over two processors and a network, here a third processor. By the
/// holistic analysis, they end after 42 and 30.
#[test]
fn palencia_gonzalez_harbour_two_chains() {
    let place = |name, level, period, execution, partition, spawns: Option<usize>| Task {
        partition,
        arrivals: (period > 0).then(|| Stream::sporadic(period)),
        deadline: None,
        is_periodic: period > 0,
        spawns: spawns
            .into_iter()
            .map(|task| Spawn { task, most: 1, earliest: 0, in_section: true })
            .collect(),
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
    let analysis = punctual_analysis::analyze(&system);
    let end = |tasks: [usize; 3]| {
        let chain = Chain { name: "".into(), tasks: tasks.into(), link: Link::Spawned, deadline: None };
        reaction(&system, &analysis, &chain)
    };
    assert_eq!((end([0, 1, 2]), end([3, 4, 5])), (Ok(42), Ok(30)));
}

/// Two tasks of equal period, half a period apart, never meet: computed by hand after Palencia &
/// González Harbour 1998, equations for one transaction. With a lateness of more than that
/// distance, they meet.
#[test]
fn offsets_separate_tasks() {
    let mut system = periodic(&[(20, 6), (20, 8), (40, 3)]);
    (system.tasks[0].offset, system.tasks[1].offset) = (Some(0), Some(10));
    // The lowest task has no offset: it starts with the second and meets the first before it ends.
    assert_eq!(responses(&system), [6, 8, 17]);
    let bound = punctual_analysis::analyze(&system).tasks[1].clone().unwrap();
    assert_eq!((bound.without_offsets, bound.exactness), (Some(14), Exactness::Sufficient));
    // If the first is up to 12 late, a job due 10 before the second is ready with it, and the next
    // job 10 after.
    system.tasks[0].jitter = 12;
    assert_eq!(responses(&system)[..2], [18, 20]);
    // With an offset of 2, the lowest task meets both, but not the second job of either.
    system.tasks[0].jitter = 0;
    system.tasks[2].offset = Some(2);
    assert_eq!(responses(&system), [6, 8, 7]);
}

/// For all tasks below, a caller and its callee act as one job of both: computed by hand after
/// González Harbour & Palencia 1999. By the holistic analysis, the callee is up to 9 late, and two
/// of its jobs displace `low`.
#[test]
fn counts_called_task_once_with_caller() {
    let mut tasks = vec![task("called", 3, 20, 4), task("caller", 2, 20, 5), task("low", 1, 40, 4)];
    (tasks[0].arrivals, tasks[0].deadline) = (None, None);
    tasks[1].spawns = vec![Spawn { task: 0, most: 1, earliest: 0, in_section: true }];
    assert_eq!(responses(&system(tasks)), [4, 9, 13]);
}

/// Tindell & Clark 1994, computed by hand: a job of `caller`, which ends up to 15 after its
/// release, may spawn at its very end, and the next one at its start, 5 later. So `low` meets two
/// of them, 6 + ⌈(14 + 15) / 20⌉ · 4, not one.
#[test]
fn remote_spawn_inherits_response_of_caller() {
    let mut tasks = vec![task("caller", 1, 20, 15), task("spawned", 2, 20, 4), task("low", 1, 40, 6)];
    tasks[0].spawns = vec![Spawn { task: 1, most: 1, earliest: 0, in_section: true }];
    (tasks[1].arrivals, tasks[1].deadline) = (None, None);
    tasks[1..].iter_mut().for_each(|task| task.partition = 1);
    let mut system = System { partitions: vec![Partition::default(); 2], ..system(tasks) };
    assert_eq!(responses(&system), [15, 4, 14]);
    // Both are released there, and `low` once.
    system.partitions[1].overheads = overheads(1, 0, 0, 0);
    assert_eq!(responses(&system), [15, 4 + 3, 14 + 3]);
}

/// Gai, Lipari, Di Natale, RTSS 2001 (MSRP), computed by hand: each request spins for at most one
/// section of the other partition.
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

/// No bound exists if the tasks at and above a level need more than the CPU.
#[test]
fn names_overloaded_tasks() {
    let analysis = punctual_analysis::analyze(&periodic(&[(10, 6), (20, 6), (40, 8)]));
    assert!(analysis.tasks[1].is_ok());
    let Err(NoBound::Overload { tasks, utilization, .. }) = &analysis.tasks[2] else {
        panic!("{analysis:?}")
    };
    assert_eq!((tasks.as_slice(), utilization.as_f64()), ([0, 1, 2].as_slice(), 1.1));
}

/// Percentages that are equal after rounding do not explain an overload.
#[test]
fn explains_overload_below_precision() {
    let why = |tasks: &[(u64, u64)]| {
        let system = periodic(tasks);
        let Err(reason) = punctual_analysis::analyze(&system).tasks.pop().expect("there are tasks") else {
            panic!("{system:?}")
        };
        punctual_analysis::explain::why_none(&system, tasks.len() - 1, &reason)
    };
    let slight = why(&[(10_000, 1), (10_000, 10_000)]);
    assert!(slight.ends_with("need 100.0 % of the CPU, slightly more than there is."), "{slight}");
    let clear = why(&[(10_000, 10), (10_000, 10_000)]);
    assert!(clear.ends_with("need 100.1 % of the CPU, and there are 100.0 %."), "{clear}");
}

/// `position` overloads the CPU, and all others depend on it in the end. `position` must not be
/// reported as depending on them.
#[test]
fn names_overload_of_mutually_spawning_tasks() {
    let mut tasks =
        vec![task("sample", 2, 100, 60), task("position", 1, 100, 50), task("current", 3, 100, 1)];
    (tasks[1].arrivals, tasks[2].arrivals) = (None, None);
    tasks[0].spawns = vec![
        Spawn { task: 1, most: 1, earliest: 0, in_section: true },
        Spawn { task: 2, most: 1, earliest: 0, in_section: true },
    ];
    tasks[1].spawns = vec![Spawn { task: 2, most: 1, earliest: 0, in_section: true }];
    let analysis = punctual_analysis::analyze(&system(tasks));
    assert!(matches!(analysis.tasks[1], Err(NoBound::Overload { .. })), "{analysis:?}");
    assert!(matches!(analysis.tasks[2], Err(NoBound::DependsOn(1))), "{analysis:?}");
}

/// A called job runs on its caller's stack. A job released by the clock takes the CPU from another
/// thread.
#[test]
fn called_task_costs_no_preemption() {
    let mut tasks = vec![task("called", 3, 40, 4), task("caller", 2, 40, 5), task("low", 1, 40, 3)];
    (tasks[0].arrivals, tasks[0].deadline) = (None, None);
    tasks[1].spawns = vec![Spawn { task: 0, most: 1, earliest: 0, in_section: true }];
    let mut system = system(tasks);
    system.partitions[0].overheads = overheads(0, 0, 0, 2);
    assert_eq!(responses(&system), [4, 5 + 4, 3 + (5 + 2) + 4]);
}

/// Suspension is not demand on the CPU: `a` executes for 20 % of its period and waits for 90 %.
#[test]
fn suspension_is_not_reported_as_demand() {
    let with = |above: Vec<punctual_analysis::system::Task>| {
        let mut own = task("a", 1, 1_000, 200);
        own.suspension = Some(Suspension { total: 900, times: 1 });
        own.deadline = Some(5_000);
        let system = system([vec![own], above].concat());
        let analysis = punctual_analysis::analyze(&system);
        punctual_analysis::explain::explain(&system, &analysis, 0).concat()
    };
    assert_eq!(with(vec![]), "`a` has no bound: it executes and waits for 110.0 % of its period.");
    assert_eq!(
        with(vec![task("b", 2, 1_000, 300)]),
        "`a` has no bound: it executes and waits for 110.0 % of its period, and `b` takes 30.0 % of the \
         CPU; the sum must stay below 100.0 %."
    );
    assert!(with(vec![task("b", 2, 1_000, 850)]).contains("`b` and `a` need"));
}

/// Each of many tasks may have such a sentence.
#[test]
fn names_a_few_of_the_tasks_that_overload_the_cpu() {
    let why = |count: u32| {
        let tasks = (1..=count).map(|at| task(&format!("t{at}"), at, 10, 9)).collect();
        let system = system(tasks);
        let analysis = punctual_analysis::analyze(&system);
        punctual_analysis::explain::explain(&system, &analysis, 0).concat()
    };
    let all = why(8);
    assert!((1..=8).all(|at| all.contains(&format!("`t{at}`"))), "{all}");
    let some = why(20);
    assert_eq!(some.matches('`').count(), 2 * 8, "{some}");
    assert!(some.contains(" and 13 more tasks need 1800.0 % of the CPU"), "{some}");
}

/// At full utilization, any delay lasts forever.
#[test]
fn full_utilization_with_jitter_is_unbounded() {
    let mut system = periodic(&[(20, 5), (40, 10), (80, 40)]);
    system.tasks[0].jitter = 1;
    let analysis = punctual_analysis::analyze(&system);
    assert!(matches!(analysis.tasks[2], Err(NoBound::Overload { .. })));
    let why = punctual_analysis::explain::explain(&system, &analysis, 2).concat();
    assert!(why.contains("need 100.0 % of the CPU, which leaves no time to catch up"), "{why}");
    assert_eq!(analysis.tasks[0].as_ref().unwrap().exactness, Exactness::Exact);
}

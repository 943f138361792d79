//! Builds a system for the analysis from observations, and lists the threads that cannot be
//! analyzed.
//!
//! R of a job is the sum of its observed lateness, execution, waiting, suspension and displacement.
//! In the system, lateness becomes J, execution becomes C, and waiting and suspension become
//! self-suspension; each is the largest of all jobs. Displacement is computed from the releases and
//! execution times of the sources that displace. So a bound is below an observation only if a
//! source displaced more often, or for longer, than its model allows.
//!
//! If long jobs do not follow each other, each job takes the usual execution time, and the excess
//! of the long ones is a separate task (or interrupt), `fast, long`, released as often as they may
//! occur. It has the same level, so it runs before the job that it is part of, and counts in R of
//! the thread itself too.
//!
//! Rare long waits are separated in the same way, as `fast, long wait`. There, waiting counts as
//! execution, which is sufficient: *Chen et al., "Many Suspensions, Many Problems: A Review of
//! Self-Suspending Tasks in Real-Time Systems", Real-Time Systems 55, 2019*.
//!
//! CPUs between which a thread migrated are analyzed as one: while the thread is ready and does not
//! run, something that is not below it runs on one of them. That is sufficient, and needs no
//! assumption on when the kernel migrates threads.

use std::collections::BTreeMap;

use super::curves::Curves;
use super::executions::{Executions, Split};
use super::periodic::Periodic;
use super::thread::{Reading, Seen, Thread};
use crate::arrival::Stream;
use punctual_report::format::format_part;

use crate::system::{Interrupt, Observed, Partition, Suspension, System, Task};
use crate::time::{MAX_TIME, Nanos};

/// Number of releases computed past the observed curve; the pattern then repeats.
const EXTENDED: u64 = 256;

/// A thread with its jobs and further known properties.
#[derive(Debug, Clone)]
pub struct InferredThread {
    /// Unique name.
    pub name: String,
    /// Urgency; larger is more urgent.
    pub urgency: i64,
    /// CPUs on which it ran.
    pub cpus: Vec<u32>,
    /// Its jobs.
    pub thread: Thread,
    /// Interpretation of its sleeps.
    pub reading: Reading,
    /// D in ns, if known.
    pub deadline: Option<Nanos>,
    /// True if threads of equal priority displaced it out of FIFO order, as under SCHED_RR.
    pub is_unordered: bool,
    /// C in ns from another source, if longer than observed; it then applies to every job.
    pub execution: Option<Nanos>,
    /// Reason why a property is unknown, if so: a sentence without its subject.
    pub unknown: Option<String>,
}

impl InferredThread {
    /// Returns the observations under the thread's interpretation.
    #[must_use]
    pub fn seen(&self) -> &Seen {
        self.thread.seen(self.reading)
    }
}

/// An interrupt on a CPU.
#[derive(Debug, Clone)]
pub struct Handler {
    /// Name, unique together with the CPU.
    pub name: String,
    /// CPU that handles it.
    pub cpu: u32,
    /// Distances between its runs.
    pub curves: Curves,
    /// Execution times, without other interrupts nested in it.
    pub executions: Executions,
    /// True if the execution time of some run is unknown.
    pub is_unknown: bool,
}

/// The part of a recording that can be analyzed, and the rest.
#[derive(Debug, Clone, Default)]
pub struct Inferred {
    /// Threads whose bounds can be computed, and the sources that displace them.
    pub system: System,
    /// Index of the thread of each task. Tasks past the end of this list model the excess of long
    /// jobs.
    pub threads: Vec<usize>,
    /// Threads without a bound, by index, each with the reason as a sentence.
    pub unbounded: Vec<(usize, String)>,
}

/// Builds the system. `length` is the duration of the recording, in ns.
#[must_use]
pub fn system(name: &str, threads: &[InferredThread], handlers: &[Handler], length: Nanos) -> Inferred {
    let mut inferred = Inferred::default();
    inferred.system.name = name.to_owned();
    let partitions = partitions(threads);
    let cpus_of = |partition: usize| {
        let cpus = partitions.iter().filter(|&(_, &of)| of == partition).map(|(cpu, _)| *cpu);
        cpus.collect::<Vec<u32>>()
    };
    let count = partitions.values().max().map_or(0, |last| last + 1);
    for partition in 0..count {
        let cpus = cpus_of(partition);
        let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let name = format!("CPU {}", list.join("+"));
        if cpus.len() > 1 {
            inferred.system.assumptions.push(format!(
                "Threads moved between CPUs {}: they are analyzed as one CPU, so whatever ran on any of them displaces whatever \
                 is below it on all.",
                list.join(" and ")
            ));
        }
        let cpu = if let [cpu] = cpus[..] { Some(cpu) } else { None };
        inferred.system.partitions.push(Partition { name, cpu, ..Partition::default() });
    }
    let mut urgencies: Vec<i64> = threads.iter().map(|thread| thread.urgency).collect();
    urgencies.sort_unstable();
    urgencies.dedup();
    let level = |urgency: i64| urgencies.partition_point(|&other| other <= urgency) as u32;

    let mut stray = vec![None; count];
    for handler in handlers {
        let Some(&partition) = partitions.get(&handler.cpu) else { continue };
        let name = format!("{}, CPU {}", handler.name, handler.cpu);
        if handler.is_unknown {
            stray[partition] = Some(name);
            continue;
        }
        interrupts(&mut inferred.system, partition, name, handler, length);
    }
    // Nothing below a thread with an unknown property has a bound.
    let mut lowest: Vec<Option<(u32, &str)>> = vec![None; count];
    let mut built: Vec<Option<Built>> = vec![None; threads.len()];
    let mut order: Vec<usize> = (0..threads.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(threads[at].urgency));
    for &at in &order {
        let thread = &threads[at];
        let Some(&partition) = thread.cpus.first().and_then(|cpu| partitions.get(cpu)) else { continue };
        let found = task(thread, partition, level(thread.urgency), length, &mut inferred.system.assumptions);
        if found.is_err() && !once(&mut inferred.system, partition, thread, length) {
            let seen = lowest[partition].get_or_insert((0, &thread.name));
            if level(thread.urgency) > seen.0 {
                *seen = (level(thread.urgency), &thread.name);
            }
        }
        built[at] = Some(found);
    }
    let mut longs = Vec::new();
    for (at, found) in built.into_iter().enumerate() {
        let (thread, Some(found)) = (&threads[at], found) else { continue };
        match found {
            Err(why) => inferred.unbounded.push((at, format!("`{}` has no bound: {why}.", thread.name))),
            Ok((task, long)) => {
                let above = lowest[task.partition].filter(|&(level, _)| level >= task.level);
                let why = match (&stray[task.partition], above) {
                    (Some(handler), _) => Some(format!("the duration of `{handler}` is unknown")),
                    (None, Some((_, above))) => Some(format!("`{above}`, which is not below it, has none")),
                    (None, None) => None,
                };
                match why {
                    Some(why) => {
                        inferred.unbounded.push((at, format!("`{}` has no bound: {why}.", thread.name)));
                    }
                    None => {
                        inferred.threads.push(at);
                        inferred.system.tasks.push(task);
                        longs.extend(long.into_iter().flatten());
                    }
                }
            }
        }
    }
    inferred.system.tasks.extend(longs);
    inferred
}

/// Maps each CPU to a partition; CPUs that share a thread share a partition.
fn partitions(threads: &[InferredThread]) -> BTreeMap<u32, usize> {
    let mut group: BTreeMap<u32, u32> = BTreeMap::new();
    for thread in threads {
        let Some(&first) = thread.cpus.first() else { continue };
        for &cpu in &thread.cpus {
            let (one, other) = (*group.entry(first).or_insert(first), *group.entry(cpu).or_insert(cpu));
            let (from, to) = (one.max(other), one.min(other));
            group.values_mut().filter(|of| **of == from).for_each(|of| *of = to);
        }
    }
    let mut names: Vec<u32> = group.values().copied().collect();
    names.sort_unstable();
    names.dedup();
    group.into_iter().map(|(cpu, of)| (cpu, names.partition_point(|&name| name < of))).collect()
}

/// Task of a thread and the tasks of its long jobs and waits, or the reason why none exists.
type Built = Result<(Task, [Option<Task>; 2]), String>;

/// Builds the task of a thread and those of the excess of its long jobs and waits.
fn task(
    thread: &InferredThread,
    partition: usize,
    level: u32,
    length: Nanos,
    assumptions: &mut Vec<String>,
) -> Built {
    if let Some(why) = &thread.unknown {
        return Err(why.clone());
    }
    let seen = thread.seen();
    if seen.executions.max().is_none() {
        return Err("no job of it both begins and ends in the recording".into());
    }
    let arrivals = match seen.curves.releases() {
        0 => return Err("the releases of its jobs were not recorded".into()),
        1 => {
            assumptions.push(format!(
                "`{}` was released once: that is taken for once in {}, as long as the recording is.",
                thread.name,
                format_part(length)
            ));
            Stream::sporadic(length.clamp(1, MAX_TIME))
        }
        _ => arrivals(&seen.curves, seen.periodic()).ok_or(
            "its releases are known only within windows that overlap, so their distances are unknown",
        )?,
    };
    let (usual_away, long_away) = split(&seen.aways, &arrivals);
    let away = Suspension { total: usual_away, times: seen.waits.saturating_add(seen.suspensions) };
    let (usual, long) = match thread.execution {
        Some(longer) => (longer.max(seen.executions.max().unwrap_or(0)).min(MAX_TIME), None),
        None => split(&seen.executions, &arrivals),
    };
    let is_away = away.total > 0 || long_away.is_some() || thread.is_unordered;
    let task = |name: String, execution: Nanos, arrivals: Stream| Task {
        name,
        partition,
        level,
        execution,
        arrivals: Some(arrivals),
        is_only_spawned: false,
        grid: None,
        most_spawns: None,
        is_periodic: false,
        jitter: seen.lateness.ns.min(MAX_TIME),
        delay: 0,
        deadline: None,
        offset: None,
        sections: Vec::new(),
        spawns: Vec::new(),
        // The excess is displaced, and displaces, like the job that it is part of.
        suspension: is_away.then_some(away),
        observed: Observed::default(),
    };
    let excess = [("long", long), ("long wait", long_away)].map(|(what, excess)| {
        let (execution, arrivals) = excess?;
        Some(task(format!("{}, {what}", thread.name), execution, arrivals))
    });
    let task = Task {
        deadline: thread.deadline,
        observed: Observed {
            response: seen.slowest.and_then(|job| job.response()),
            jobs: Some(seen.jobs),
            misses: None,
        },
        ..task(thread.name.clone(), usual, arrivals)
    };
    Ok((task, excess))
}

/// Splits execution times into the usual one and the excess of long jobs with its arrivals. Returns
/// no excess if the split gains nothing.
fn split(executions: &Executions, arrivals: &Stream) -> (Nanos, Option<(Nanos, Stream)>) {
    let Split { usual, most, every } = executions.split();
    let (usual, most) = (usual.min(MAX_TIME), most.min(MAX_TIME));
    if every == 1 || most == usual {
        return (most, None);
    }
    let gaps = |nth: u64| arrivals.distance(nth * every + 1).map(|ns| ns.min(MAX_TIME));
    let rare: Option<Vec<Nanos>> = (1..=(EXTENDED / every).max(1)).map(gaps).collect();
    match rare.filter(|rare| rare.last().is_some_and(|&last| last > 0)) {
        Some(rare) => (usual, Some((most - usual, Stream::distances(rare)))),
        None => (most, None),
    }
}

/// Returns releases as dense as observed, and past the observed curve no denser than the periodic
/// model allows. `None` if no distance is known.
fn arrivals(curves: &Curves, periodic: Option<Periodic>) -> Option<Stream> {
    let least = curves.least_of_many();
    // The periodic model explains a single stretch only.
    let periodic = periodic.filter(|_| curves.stretches() == 1);
    let (&last, count) = (least.last()?, least.len() as u64);
    let extended = |gaps: u64| {
        let within = if gaps.is_multiple_of(count) { 0 } else { least[(gaps % count) as usize - 1] };
        (gaps / count).saturating_mul(last).saturating_add(within)
    };
    let grid = |gaps: u64| periodic.map_or(0, |it| it.period.saturating_mul(gaps).saturating_sub(it.jitter));
    let distances: Vec<Nanos> =
        (1..=count.max(EXTENDED)).map(|gaps| extended(gaps).max(grid(gaps))).collect();
    let distances: Vec<Nanos> = distances.into_iter().map(|ns| ns.min(MAX_TIME)).collect();
    (*distances.last()? > 0).then(|| Stream::distances(distances))
}

/// Adds a thread with one observed job whose release was not observed. The thread has no bound, but
/// displaced others once, which counts as an interrupt. Returns whether the thread is of this kind.
fn once(system: &mut System, partition: usize, thread: &InferredThread, length: Nanos) -> bool {
    let seen = thread.seen();
    let (true, 1, 0, Some(execution)) =
        (thread.unknown.is_none(), seen.jobs, seen.curves.releases(), seen.executions.max())
    else {
        return false;
    };
    let name = thread.name.clone();
    let arrivals = Stream::sporadic(length.clamp(1, MAX_TIME));
    system.assumptions.push(format!(
        "`{name}` ran once: that is taken for once in {}, as long as the recording is.",
        format_part(length)
    ));
    system.interrupts.push(Interrupt { name, partition, execution: execution.min(MAX_TIME), arrivals });
    true
}

/// Adds a thread above all tasks of a partition, as an interrupt.
///
/// # Errors
/// Returns the property that is unknown.
pub fn displace(
    system: &mut System,
    partition: usize,
    thread: &InferredThread,
    length: Nanos,
) -> Result<(), String> {
    if once(system, partition, thread, length) {
        return Ok(());
    }
    let mut assumptions = std::mem::take(&mut system.assumptions);
    let found = task(thread, partition, 0, length, &mut assumptions);
    system.assumptions = assumptions;
    // While it waits, it displaces nothing.
    let (task, [long, _]) = found?;
    for Task { name, execution, jitter, arrivals, .. } in [Some(task), long].into_iter().flatten() {
        if let Some(arrivals) = arrivals {
            let arrivals = arrivals.with_jitter(jitter);
            system.interrupts.push(Interrupt { name, partition, execution, arrivals });
        }
    }
    Ok(())
}

/// Adds an interrupt: one source with its usual execution time, and one with the excess of the long
/// runs.
pub fn interrupts(system: &mut System, partition: usize, name: String, handler: &Handler, length: Nanos) {
    if handler.curves.releases() == 0 {
        return;
    }
    let arrivals = arrivals(&handler.curves, None).unwrap_or_else(|| {
        system.assumptions.push(format!(
            "`{name}` came once: that is taken for once in {}, as long as the recording is.",
            format_part(length)
        ));
        Stream::sporadic(length.clamp(1, MAX_TIME))
    });
    let (usual, long) = split(&handler.executions, &arrivals);
    if let Some((execution, arrivals)) = long {
        let name = format!("{name}, long");
        system.interrupts.push(Interrupt { name, partition, execution, arrivals });
    }
    system.interrupts.push(Interrupt { name, partition, execution: usual, arrivals });
}

#[cfg(test)]
mod tests {
    use super::super::thread::Observation;
    use super::*;
    use crate::analyze;

    fn thread(name: &str, urgency: i64, cpu: u32, (period, execution): (Nanos, Nanos)) -> InferredThread {
        let mut thread = Thread::default();
        for number in 0..50 {
            let released = 10_000 + number * period;
            thread.push(&Observation {
                number,
                released: Some((released, released)),
                by_timer: true,
                end: released + execution + 2,
                lateness: 2,
                execution,
                waiting: 0,
                waits: 0,
                suspended: 0,
                suspensions: 0,
                displaced: 0,
            });
        }
        thread.finish();
        InferredThread {
            name: name.into(),
            urgency,
            cpus: vec![cpu],
            thread,
            reading: Reading::Sleeps,
            deadline: None,
            is_unordered: false,
            execution: None,
            unknown: None,
        }
    }

    fn handler(cpu: u32, every: Nanos, execution: Nanos) -> Handler {
        let (mut curves, mut executions) = (Curves::new(8), Executions::new(8));
        for at in 0..100 {
            curves.push((at * every, at * every));
            executions.push(execution);
        }
        Handler { name: "timer".into(), cpu, curves, executions, is_unknown: false }
    }

    /// By hand: J is 2 each; ⌈(w + 2) / 100⌉ jobs of `high` and ⌈w / 50⌉ interrupts of 3 displace
    /// `low`.
    #[test]
    fn bounds_observed_threads() {
        let threads = [thread("low", 10, 0, (1_000, 50)), thread("high", 20, 0, (100, 30))];
        let Inferred { system, threads, unbounded } = system("t", &threads, &[handler(0, 50, 3)], 50_000);
        assert_eq!((threads, unbounded.len()), (vec![0, 1], 0));
        let bounds = analyze(&system).tasks;
        let [low, high] = &bounds[..] else { panic!("{bounds:?}") };
        assert_eq!(high.as_ref().unwrap().response, 2 + 30 + 3);
        // 50 + 30 + 3 + 3 = 86; 86 + 2 < 100, so no further job arrives.
        assert_eq!(low.as_ref().unwrap().response, 2 + 86);
    }

    #[test]
    fn leaves_threads_below_unknown_one_unbounded() {
        let mut threads = [
            thread("low", 10, 0, (1_000, 50)),
            thread("lost", 20, 0, (100, 30)),
            thread("high", 30, 0, (100, 3)),
            thread("elsewhere", 5, 1, (100, 30)),
        ];
        threads[1].unknown = Some("nobody knows".into());
        let Inferred { system, threads, unbounded } = system("t", &threads, &[], 50_000);
        assert_eq!(threads, [2, 3]);
        assert_eq!(system.partitions.len(), 2);
        let why: Vec<&str> = unbounded.iter().map(|(_, why)| why.as_str()).collect();
        assert_eq!(
            why,
            [
                "`low` has no bound: `lost`, which is not below it, has none.",
                "`lost` has no bound: nobody knows."
            ]
        );
    }

    /// Its release was before the recording, or is missing.
    #[test]
    fn counts_single_run_once() {
        let mut once = thread("once", 30, 0, (100, 7));
        once.thread = Thread::default();
        once.thread.push(&Observation {
            number: 0,
            released: None,
            by_timer: false,
            end: 9,
            lateness: 0,
            execution: 7,
            waiting: 0,
            waits: 0,
            suspended: 0,
            suspensions: 0,
            displaced: 0,
        });
        let found = system("t", &[thread("low", 10, 0, (1_000, 50)), once], &[], 50_000);
        assert_eq!(found.threads, [0]);
        assert_eq!(
            found.unbounded,
            [(1, "`once` has no bound: the releases of its jobs were not recorded.".to_owned())]
        );
        assert_eq!(analyze(&found.system).tasks[0].as_ref().unwrap().response, 2 + 50 + 7);
    }

    #[test]
    fn interrupt_of_unknown_length_leaves_cpu_unbounded() {
        let threads = [thread("here", 10, 0, (1_000, 50)), thread("there", 10, 1, (1_000, 50))];
        let stray = Handler { is_unknown: true, ..handler(0, 50, 3) };
        let found = system("t", &threads, &[stray], 50_000);
        assert_eq!(found.threads, [1]);
        assert!(found.unbounded[0].1.contains("the duration of `timer, CPU 0` is unknown"));
    }

    /// A job of 300 waits for nine tenths of the period. Sums between powers of two are upper
    /// limits, so the usual wait is 10 instead of 5.
    #[test]
    fn rare_long_wait_is_a_separate_source() {
        let mut one = thread("one", 20, 0, (1_000, 200));
        one.thread = Thread::default();
        for number in 0..300 {
            let (released, waiting) = (1_000 + number * 1_000, if number == 150 { 900 } else { 5 });
            one.thread.push(&Observation {
                number,
                released: Some((released, released)),
                by_timer: true,
                end: released + 200 + waiting,
                lateness: 0,
                execution: 200,
                waiting,
                waits: 1,
                suspended: 0,
                suspensions: 0,
                displaced: 0,
            });
        }
        let found = system("t", &[one, thread("below", 10, 0, (4_000, 100))], &[], 300_000);
        assert!(found.unbounded.is_empty(), "{:?}", found.unbounded);
        let names: Vec<&str> = found.system.tasks.iter().map(|task| task.name.as_str()).collect();
        assert_eq!(names, ["one", "below", "one, long wait"]);
        let [one, _, long] = &found.system.tasks[..] else { panic!("{names:?}") };
        assert_eq!((one.suspension.unwrap().total, long.execution), (10, 890));
        let bounds = analyze(&found.system).tasks;
        let responses: Vec<u64> = bounds.iter().map(|bound| bound.as_ref().unwrap().response).collect();
        assert!(responses[0] >= 1_100 && responses[0] < 2_000, "{responses:?}");
        // To the thread below, the long wait counts as execution.
        assert!(responses[1] < 2_500, "{responses:?}");
    }

    #[test]
    fn merges_cpus_connected_by_migration() {
        let mut threads = [
            thread("a", 30, 0, (1_000, 50)),
            thread("b", 20, 1, (1_000, 50)),
            thread("c", 10, 2, (1_000, 50)),
        ];
        threads[1].cpus = vec![1, 0];
        let Inferred { system, .. } = system("t", &threads, &[handler(7, 9, 1)], 50_000);
        let names: Vec<&str> = system.partitions.iter().map(|partition| partition.name.as_str()).collect();
        assert_eq!(names, ["CPU 0+1", "CPU 2"]);
        assert_eq!(system.tasks.iter().map(|task| task.partition).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(system.interrupts, []);
        assert_eq!(system.assumptions.len(), 1);
    }

    /// One job of five takes 50 instead of 10; ten in a row would exceed the CPU.
    #[test]
    fn long_jobs_keep_observed_rate() {
        let mut one = thread("one", 20, 0, (40, 10));
        one.thread = Thread::default();
        for number in 0..60 {
            let released = 1_000 + number * 40;
            let execution = if number % 5 == 2 { 50 } else { 10 };
            one.thread.push(&Observation {
                number,
                released: Some((released, released)),
                by_timer: true,
                end: released + execution,
                lateness: 0,
                execution,
                waiting: 0,
                waits: 0,
                suspended: 0,
                suspensions: 0,
                displaced: 0,
            });
        }
        let threads = [one, thread("below", 10, 0, (1_000, 20))];
        let Inferred { system, threads, .. } = system("t", &threads, &[], 10_000);
        assert_eq!(threads, [0, 1]);
        let [one, _, long] = &system.tasks[..] else { panic!("{system:?}") };
        assert_eq!((one.execution, long.name.as_str(), long.execution), (10, "one, long", 40));
        assert_eq!(long.arrivals.as_ref().unwrap().distance(2), Some(200));
        let bounds = analyze(&system).tasks;
        // The long job delays the next one: 40 + 10, and then 10 that wait for 10.
        assert_eq!(bounds[0].as_ref().unwrap().response, 50);
        assert_eq!(bounds[1].as_ref().unwrap().response, 2 + 20 + 40 + 2 * 10);
    }

    /// For many releases, the period is stricter than a curve of few observed releases.
    #[test]
    fn arrivals_follow_curve_then_period() {
        let mut curves = Curves::new(3);
        let mut grid = super::super::periodic::Grid::default();
        for at in 0..40_u64 {
            let late = if at % 10 == 9 { 30 } else { 0 };
            curves.push((at * 100 + late, at * 100 + late));
            grid.push((at * 100 + late, at * 100 + late));
        }
        let stream = arrivals(&curves, grid.certain()).unwrap();
        assert_eq!(
            (stream.distance(2), stream.distance(3), stream.distance(101)),
            (Some(70), Some(170), Some(9_970))
        );
        let alone = arrivals(&curves, None).unwrap();
        // Three times 32 gaps, and five: four of them, and one.
        assert_eq!(alone.distance(102), Some(3 * 3_200 + 370 + 70));
    }
}

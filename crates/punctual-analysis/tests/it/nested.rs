//! Nested critical sections on several partitions: compares the bounds with a simulation that
//! shares no code with the analysis.
//!
//! Each partition has one CPU under the Stack Resource Policy. A request for a resource of several
//! partitions raises the partition above all levels and spins in order of arrival.
//!
//! `PUNCTUAL_TEST_SETS` sets the number of task sets.

use std::collections::VecDeque;

use crate::support::Random;
use crate::support::{section, system, task};
use punctual_analysis::analyze;
use punctual_analysis::margin::margins;
use punctual_analysis::system::{Nesting, Partition, Protocol, Resource, Section, System};

/// Number of resources of each partition.
const LOCAL: usize = 2;
/// Groups of the resources of several partitions.
const GROUPS: [usize; 3] = [0, 1, 1];
/// Time after which no job is released.
const HORIZON: u64 = 1_000;

/// A step of a job. Only `Run` takes time, in ticks.
#[derive(Debug, Clone, Copy)]
enum Step {
    Run(u64),
    Lock(usize),
    Unlock(usize),
}

struct Job {
    task: usize,
    released: u64,
    steps: VecDeque<Step>,
    held: Vec<usize>,
}

/// A CPU with its started jobs, the running one last, and the ready ones in order of release.
#[derive(Default)]
struct Cpu {
    started: Vec<Job>,
    ready: VecDeque<Job>,
    /// Group that the running job waits for.
    spins: Option<usize>,
}

struct Machine<'a> {
    system: &'a System,
    cpus: Vec<Cpu>,
    /// CPUs that hold or request each group, the holder first.
    queues: Vec<VecDeque<usize>>,
    longest: Vec<u64>,
}

fn group(system: &System, resource: usize) -> Option<usize> {
    match system.resources[resource].protocol {
        Protocol::Msrp { group } => Some(group),
        _ => None,
    }
}

impl Machine<'_> {
    fn level(&self, cpu: usize) -> u32 {
        let of = |job: &Job| {
            let ceiling = |&resource: &usize| match group(self.system, resource) {
                Some(_) => u32::MAX,
                None => self.system.resources[resource].ceilings[cpu],
            };
            job.held.iter().map(ceiling).max().unwrap_or(0).max(self.system.tasks[job.task].level)
        };
        self.cpus[cpu].started.iter().map(of).max().unwrap_or(0)
    }

    /// Performs the steps of the running job that take no time, up to the first lock unless it
    /// `may_lock`.
    fn advance(&mut self, at: usize, now: u64, may_lock: bool) {
        let Self { system, cpus, queues, longest } = self;
        let Cpu { started, spins, .. } = &mut cpus[at];
        while let Some(job) = started.last_mut() {
            if spins.is_some_and(|group| queues[group].front() != Some(&at)) {
                return;
            }
            *spins = None;
            let is_only = |held: &[usize], of| held.iter().all(|&other| group(system, other) != Some(of));
            match job.steps.front().copied() {
                Some(Step::Run(left)) if left > 0 => return,
                Some(Step::Lock(_)) if !may_lock => return,
                None => {
                    longest[job.task] = longest[job.task].max(now - job.released);
                    started.pop();
                    continue;
                }
                Some(Step::Run(_)) => {}
                Some(Step::Lock(resource)) => {
                    if let Some(of) = group(system, resource).filter(|&of| is_only(&job.held, of)) {
                        queues[of].push_back(at);
                        *spins = Some(of);
                    }
                    job.held.push(resource);
                }
                Some(Step::Unlock(resource)) => {
                    assert_eq!(job.held.pop(), Some(resource));
                    if let Some(of) = group(system, resource).filter(|&of| is_only(&job.held, of)) {
                        assert_eq!(queues[of].pop_front(), Some(at));
                    }
                }
            }
            job.steps.pop_front();
        }
    }

    /// Starts the ready job with the highest level, if that is above the partition's.
    fn dispatch(&mut self, at: usize) {
        let level = self.level(at);
        let Cpu { started, ready, .. } = &mut self.cpus[at];
        let of = |job: &Job| self.system.tasks[job.task].level;
        let Some(highest) = ready.iter().map(of).max().filter(|&highest| highest > level) else { return };
        let place = ready.iter().position(|job| of(job) == highest);
        started.extend(place.and_then(|place| ready.remove(place)));
    }

    /// Runs all jobs to their ends.
    fn run(&mut self, random: &mut Random, mut jobs: Vec<Job>) {
        jobs.sort_by_key(|job| job.released);
        let mut jobs = VecDeque::from(jobs);
        let mut now = 0;
        while !jobs.is_empty() || self.cpus.iter().any(|cpu| cpu.started.len() + cpu.ready.len() > 0) {
            // Of requests at one instant, any may be the first.
            let first = random.within(0, self.cpus.len() as u64 - 1) as usize;
            let order: Vec<usize> = (0..self.cpus.len()).map(|at| (first + at) % self.cpus.len()).collect();
            // A running job may lock slightly before a release of the same tick.
            order.iter().for_each(|&at| self.advance(at, now, true));
            while let Some(job) = jobs.pop_front_if(|job| job.released <= now) {
                self.cpus[self.system.tasks[job.task].partition].ready.push_back(job);
            }
            for &at in &order {
                self.dispatch(at);
                self.advance(at, now, true);
            }
            now += 1;
            for cpu in self.cpus.iter_mut().filter(|cpu| cpu.spins.is_none()) {
                let step = cpu.started.last_mut().and_then(|job| job.steps.front_mut());
                if let Some(Step::Run(left)) = step {
                    *left -= 1;
                }
            }
            for &at in &order {
                self.advance(at, now, false);
                self.dispatch(at);
            }
        }
    }
}

/// Creates the sections of a job, each inside the one before, and the steps of one pass.
fn nested(random: &mut Random, chain: &[usize], longest: u64) -> (Vec<Section>, Vec<Step>) {
    let (mut sections, mut before, mut after) = (Vec::new(), Vec::new(), VecDeque::new());
    let (mut hold, mut nesting) = (longest, Nesting::Outermost);
    for (place, &resource) in chain.iter().enumerate() {
        sections.push(Section { nesting, ..section(resource, hold) });
        before.push(Step::Lock(resource));
        let inner = if place + 1 < chain.len() { random.within(1, hold) } else { 0 };
        let first = random.within(0, hold - inner);
        before.push(Step::Run(first));
        after.push_front(Step::Unlock(resource));
        after.push_front(Step::Run(hold - inner - first));
        (hold, nesting) = (inner, Nesting::Inside(resource));
    }
    before.extend(after);
    (sections, before)
}

/// Creates a system, and the steps of a job of each task.
fn random_system(random: &mut Random) -> (System, Vec<Vec<Step>>) {
    let partitions = random.within(2, 3) as usize;
    let global = |at: usize| partitions * LOCAL + at;
    let (mut tasks, mut steps) = (Vec::new(), Vec::new());
    for partition in 0..partitions {
        let count = random.within(2, 3) as usize;
        for (at, share) in random.utilizations(count, 0.45).into_iter().enumerate() {
            let period = random.log_uniform(20, 300);
            let execution = ((period as f64 * share) as u64).max(2);
            let mut task = task(&format!("t{partition}{at}"), at as u32 + 1, period, execution);
            task.partition = partition;
            let (one, other) = (partition * LOCAL, partition * LOCAL + 1);
            let chain = match random.within(0, 8) {
                0 => vec![],
                1 => vec![one],
                2 => vec![global(0)],
                3 => vec![one, global(0)],
                4 => vec![other, global(1)],
                5 => vec![one, other, global(0)],
                6 => vec![global(1), global(2)],
                7 => vec![other, global(2), global(1)],
                _ => vec![global(0), one],
            };
            let times = random.within(1, 2).min(execution / 2);
            let (mut sections, pass) = nested(random, &chain, random_hold(execution / times));
            sections.iter_mut().for_each(|section| section.times = times);
            let held = sections.first().map_or(0, |section| section.hold * times);
            let first = if random.one_in(2) { 0 } else { random.within(0, execution - held) };
            let mut job = vec![Step::Run(first)];
            (0..times).for_each(|_| job.extend(&pass));
            job.push(Step::Run(execution - held - first));
            task.sections = sections;
            tasks.push(task);
            steps.push(job);
        }
    }
    let resource = |name: String, protocol| Resource { name, protocol, ceilings: Vec::new() };
    let local = (0..partitions * LOCAL).map(|at| resource(format!("l{at}"), Protocol::Srp));
    let shared = GROUPS.iter().map(|&group| resource(format!("g{group}"), Protocol::Msrp { group }));
    let mut system = System {
        resources: local.chain(shared).collect(),
        partitions: vec![Partition::default(); partitions],
        ..system(tasks)
    };
    system.update_ceilings();
    (system, steps)
}

fn random_hold(most: u64) -> u64 {
    most.clamp(1, 12)
}

fn random_jobs(random: &mut Random, system: &System, steps: &[Vec<Step>]) -> Vec<Job> {
    let (mut jobs, at_once) = (Vec::new(), random.one_in(2));
    for (task, steps) in steps.iter().enumerate() {
        let period = system.tasks[task].arrivals.as_ref().unwrap().window();
        // If all begin within a few ticks, jobs of other CPUs meet more often in their sections.
        let mut released = random.within(0, if at_once { 6 } else { period });
        while released < HORIZON {
            jobs.push(Job { task, released, steps: steps.iter().copied().collect(), held: Vec::new() });
            released += period + if random.one_in(3) { random.within(0, 9) } else { 0 };
        }
    }
    jobs
}

fn bounds(system: &System) -> Vec<Option<u64>> {
    analyze(system).tasks.iter().map(|outcome| outcome.as_ref().ok().map(|bound| bound.response)).collect()
}

#[test]
fn no_simulated_job_exceeds_bound() {
    let sets = std::env::var("PUNCTUAL_TEST_SETS").ok().and_then(|sets| sets.parse().ok()).unwrap_or(1_000);
    let (mut compared, mut tight, mut beyond_flat) = (0, 0, 0);
    for seed in 1..=sets {
        let mut random = Random::new(seed);
        let (system, steps) = random_system(&mut random);
        let bounds_of_set = bounds(&system);
        // As if no section were inside another one.
        let mut flat = system.clone();
        let sections = flat.tasks.iter_mut().flat_map(|task| &mut task.sections);
        sections.for_each(|section| section.nesting = Nesting::Outermost);
        let flat = bounds(&flat);
        let mut machine = Machine {
            system: &system,
            cpus: system.partitions.iter().map(|_| Cpu::default()).collect(),
            queues: vec![VecDeque::new(); GROUPS.len()],
            longest: vec![0; system.tasks.len()],
        };
        let jobs = random_jobs(&mut random, &system, &steps);
        machine.run(&mut random, jobs);
        for (at, &seen) in machine.longest.iter().enumerate() {
            let Some(bound) = bounds_of_set[at] else { continue };
            assert!(seen <= bound, "seed {seed}, task {at}: {seen} > {bound}\n{system:#?}\n{steps:?}");
            compared += 1;
            tight += u64::from(seen * 5 >= bound * 4);
            beyond_flat += u64::from(flat[at].is_some_and(|flat| seen > flat));
        }
    }
    assert!(compared > sets * 4 && tight > sets, "{compared} compared, {tight} tight");
    assert!(beyond_flat > sets / 500, "nesting mattered in {beyond_flat} jobs of {compared}");
}

/// By hand: `low` holds `l` for 10 and requests `g` inside, which the other partition holds for 7.
/// `high` waits for all of that.
#[test]
fn counts_spinning_inside_local_section() {
    let (mut low, mut high, mut far) =
        (task("low", 1, 1_000, 20), task("high", 2, 1_000, 5), task("far", 1, 1_000, 9));
    low.sections = vec![section(0, 10), Section { nesting: Nesting::Inside(0), ..section(1, 2) }];
    high.sections = vec![section(0, 1)];
    far.sections = vec![section(1, 7)];
    far.partition = 1;
    let resource = |name: &str, protocol| Resource { name: name.into(), protocol, ceilings: Vec::new() };
    let mut system = System {
        resources: vec![resource("l", Protocol::Srp), resource("g", Protocol::Msrp { group: 0 })],
        partitions: vec![Partition::default(); 2],
        ..system(vec![low, high, far])
    };
    system.update_ceilings();
    // `far` spins for 2, `low` for 7, and is displaced by `high`.
    assert_eq!(bounds(&system), [Some(20 + 7 + 5), Some(5 + 10 + 7), Some(9 + 2)]);
    let blocking = analyze(&system).tasks[1].as_ref().unwrap().blocking.unwrap();
    assert_eq!((blocking.resource, blocking.time, blocking.spinning), (Some(0), 17, 7));
    // The longer `g` is held, the longer is `l`, by as much.
    system.tasks[1].deadline = Some(30);
    let holds = margins(&system).tasks[0].holds.iter().map(|limit| limit.until).collect::<Vec<_>>();
    assert_eq!(holds, [18, 10]);
    // With unknown nesting, the request may lie inside.
    system.tasks[0].sections[1].nesting = Nesting::Unknown;
    assert_eq!(bounds(&system)[1], Some(5 + 10 + 7));
}

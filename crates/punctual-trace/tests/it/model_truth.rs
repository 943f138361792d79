//! Random legal schedules, traced by a model and decomposed: every term equals the model's
//! observation.

use crate::model;

use std::collections::BTreeMap;

use crate::model::{HandlerTruth, Machine, Random, Style, Truth};
use crate::random::inputs;
use punctual_trace::event::{Event, Kind};
use punctual_trace::jobs::{Actor, Bounds, Cause, Config, Decomposer, HolderState, Job};

/// Returns the number of schedules.
fn seeds() -> u64 {
    inputs(100)
}

fn style(random: &mut Random) -> Style {
    Style {
        cpus: random.range(1, 2) as usize,
        threads: random.range(2, 6) as usize,
        locks: random.range(0, 3) as usize,
        edges: random.once_in(2),
        interrupts: !random.once_in(4),
        timers: random.once_in(2),
    }
}

fn decompose(events: &[Event]) -> Vec<Job> {
    decompose_as(events, Config { monotonic: true, segments: true, ..Config::default() })
}

fn decompose_as(events: &[Event], config: Config) -> Vec<Job> {
    let mut decomposer = Decomposer::new(config);
    let mut jobs = Vec::new();
    events.iter().for_each(|event| decomposer.feed(event, &mut |job| jobs.push(job.clone())));
    jobs
}

fn causes(causes: &[Cause]) -> BTreeMap<Actor, u64> {
    causes.iter().map(|cause| (cause.actor, cause.ns)).collect()
}

fn check_terms(truth: &Truth, job: &Job, exact: bool) {
    assert_eq!(job.check(), Ok(()));
    assert_eq!(job.response, Bounds::Exact(truth.end - truth.release), "R");
    assert_eq!(job.jitter, Bounds::Exact(truth.start - truth.release), "J");
    assert_eq!(job.window, Bounds::Exact(truth.end - truth.start), "W");
    assert_eq!(job.blocking, Bounds::Exact(truth.blocking), "B");
    assert_eq!(job.interference, Bounds::Exact(truth.interference), "I");
    if exact {
        assert_eq!(job.overhead, Bounds::Exact(truth.overhead), "SS");
        assert_eq!(job.execution, Bounds::Exact(truth.execution), "C");
    }
    assert!(job.overhead.allows(truth.overhead), "SS");
    assert!(job.execution.allows(truth.execution), "C");
}

/// Returns the number of waits that were compared share by share.
fn check_blame(truth: &Truth, job: &Job) -> usize {
    assert_eq!(causes(&job.jitter_causes), truth.jitter_causes, "who delayed the start");
    assert_eq!(causes(&job.interference_causes), truth.interference_causes, "who displaced it");
    let total: u64 = job.segments.iter().map(|segment| segment.end - segment.start).sum();
    assert_eq!(total, truth.end - truth.release, "segments cover the job");
    assert_eq!(job.blockings.len(), truth.waits.len());
    let mut compared = 0;
    for (wait, true_wait) in job.blockings.iter().zip(&truth.waits) {
        assert_eq!((wait.start, wait.end), (true_wait.start, true_wait.end));
        assert_eq!(wait.shares.iter().map(|share| share.ns).sum::<u64>(), wait.ns());
        let forgotten = wait.shares.iter().any(|share| share.state == HolderState::Unseen);
        if true_wait.passed_on || forgotten {
            continue;
        }
        compared += 1;
        assert_eq!(wait.owners.first(), Some(&true_wait.owner));
        let mut shares: Vec<_> = wait.shares.iter().map(|s| (s.depth, s.holder, s.state, s.ns)).collect();
        let mut true_shares = true_wait.shares.clone();
        shares.sort_by_key(|share| format!("{share:?}"));
        true_shares.sort_by_key(|share| format!("{share:?}"));
        assert_eq!(shares, true_shares, "what the holders did");
    }
    compared
}

#[test]
fn decomposes_every_job_like_model() {
    let (mut jobs, mut waits, mut nested) = (0, 0, 0);
    for seed in 0..seeds() {
        let style = style(&mut Random::new(seed));
        let mut machine = Machine::new(seed, style);
        machine.run(3_000);
        let found = decompose(&machine.events);
        assert_eq!(found.len(), machine.truths.len(), "seed {seed} {style:?}");
        for (truth, job) in machine.truths.iter().zip(&found) {
            let context = std::panic::catch_unwind(|| {
                assert!(job.complete());
                assert_eq!(job.actor, Actor::Thread(truth.tid));
                check_terms(truth, job, style.edges);
                check_blame(truth, job)
            });
            waits += context.unwrap_or_else(|_| panic!("seed {seed} {style:?}\n{truth:#?}\n{job:#?}"));
            nested +=
                job.blockings.iter().flat_map(|wait| &wait.shares).filter(|share| share.depth > 0).count();
            jobs += 1;
        }
    }
    assert!(
        jobs > 25 * seeds() && waits > 5 * seeds() as usize && nested > seeds() as usize / 4,
        "{jobs} jobs, {waits} waits, {nested} nested shares"
    );
}

#[test]
fn decomposes_handlers_as_jobs() {
    let mut count = 0;
    for seed in 0..seeds() {
        let style = Style { interrupts: true, ..style(&mut Random::new(seed)) };
        let mut machine = Machine::new(seed, style);
        machine.run(1_000);
        let config = Config { handlers: true, ..Config::default() };
        let jobs = decompose_as(&machine.events, config);
        let handlers: Vec<&Job> = jobs.iter().filter(|job| !matches!(job.actor, Actor::Thread(_))).collect();
        assert_eq!(handlers.len(), machine.handlers.len());
        for (truth, job) in machine.handlers.iter().zip(handlers) {
            assert!(job.complete() && job.check().is_ok());
            let found = HandlerTruth {
                actor: job.actor,
                start: job.start,
                end: job.end,
                interference: truth.interference,
            };
            assert_eq!(&found, truth);
            assert_eq!(job.interference, Bounds::Exact(truth.interference), "seed {seed}");
            let causes: u64 = job.interference_causes.iter().map(|cause| cause.ns).sum();
            assert_eq!(causes, truth.interference);
            count += 1;
        }
    }
    assert!(count > 25 * seeds(), "{count}");
}

/// In the model no entry or exit takes more than three ticks. With this assumption, the bounds are
/// closer and still hold.
#[test]
fn narrows_bounds_by_assumed_scheduler_time() {
    let (mut wide, mut narrow) = (0, 0);
    for seed in 0..seeds() {
        let style = Style { edges: false, ..style(&mut Random::new(seed)) };
        let mut machine = Machine::new(seed, style);
        machine.run(1_000);
        let config = Config { longest_schedule: Some(3 * model::TICK), monotonic: true, ..Config::default() };
        let width = |job: &Job| job.execution.hi().unwrap_or(0) - job.execution.lo().unwrap_or(0);
        wide += decompose(&machine.events).iter().map(width).sum::<u64>();
        for (truth, job) in machine.truths.iter().zip(decompose_as(&machine.events, config)) {
            check_terms(truth, &job, false);
            narrow += width(&job);
        }
    }
    assert!(narrow < wide * 3 / 4, "{narrow} of {wide}");
}

/// Some events of a CPU are lost: jobs still reported as complete are as correct as before.
#[test]
fn keeps_complete_jobs_correct_despite_losses() {
    let (mut complete, mut flawed) = (0, 0);
    for seed in 0..seeds() {
        let mut random = Random::new(seed);
        let style = style(&mut random);
        let mut machine = Machine::new(seed, style);
        machine.run(3_000);
        let truths: BTreeMap<_, _> = machine.truths.iter().map(|t| ((t.tid, t.end), t)).collect();
        let events = lose(&machine.events, &mut random, style.cpus);
        for job in decompose(&events) {
            if !job.complete() {
                flawed += 1;
                continue;
            }
            let Actor::Thread(tid) = job.actor else { panic!("only threads are wanted") };
            let truth =
                truths.get(&(tid, job.end)).unwrap_or_else(|| panic!("seed {seed}: no such job: {job:#?}"));
            std::panic::catch_unwind(|| check_terms(truth, &job, style.edges))
                .unwrap_or_else(|_| panic!("seed {seed} {style:?}\n{truth:#?}\n{job:#?}"));
            complete += 1;
        }
    }
    assert!(complete > 12 * seeds() && flawed > seeds() / 4, "{complete} complete, {flawed} flawed");
}

/// Removes intervals from one CPU's events at a time, each reported when its first event is missed.
fn lose(events: &[Event], random: &mut Random, cpus: usize) -> Vec<Event> {
    let mut retained = Vec::new();
    let mut losing: Option<u16> = None;
    for event in events {
        if losing.is_none() && random.once_in(150) && cpus > usize::from(event.cpu) {
            losing = Some(event.cpu);
            retained.push(Event { kind: Kind::Lost { count: 0 }, ..*event });
        }
        if losing == Some(event.cpu) {
            if !random.once_in(12) {
                continue;
            }
            losing = None;
        }
        retained.push(*event);
    }
    retained
}

/// Some kernels trace no switch from the idle thread: the test removes all of these, or every
/// third. The true terms are within the bounds of each job, no job is missing, and unaffected jobs
/// stay exact.
#[test]
fn bounds_jobs_without_the_switches_from_idle() {
    let (mut jobs, mut bounded, mut exact) = (0, 0, 0);
    for seed in 0..seeds() {
        let style = style(&mut Random::new(seed));
        let mut machine = Machine::new(seed, style);
        machine.run(2_000);
        let is_from_idle =
            |event: &Event| matches!(event.kind, Kind::Switch { from, to, .. } if from.id == 0 && to.id != 0);
        for every in [1, 3] {
            let mut count = 0;
            let mut events = machine.events.clone();
            events.retain(|event| {
                count += usize::from(is_from_idle(event));
                !is_from_idle(event) || count % every != 0
            });
            let found = decompose(&events);
            assert_eq!(found.len(), machine.truths.len(), "seed {seed} {style:?}");
            for (truth, job) in machine.truths.iter().zip(&found) {
                let is_true = std::panic::catch_unwind(|| {
                    assert!(job.complete());
                    assert_eq!(job.check(), Ok(()));
                    assert_eq!(job.response, Bounds::Exact(truth.end - truth.release), "R");
                    assert!(job.jitter.allows(truth.start - truth.release), "J");
                    assert!(job.window.allows(truth.end - truth.start), "W");
                    assert!(job.blocking.allows(truth.blocking), "B");
                    assert!(job.interference.allows(truth.interference), "I");
                    assert!(job.overhead.allows(truth.overhead), "SS");
                    assert!(job.execution.allows(truth.execution), "C");
                    if job.bounded_switches == 0 {
                        check_terms(truth, job, style.edges);
                    }
                });
                is_true.unwrap_or_else(|_| panic!("seed {seed} {style:?}\n{truth:#?}\n{job:#?}"));
                jobs += 1;
                bounded += usize::from(job.bounded_switches > 0);
                exact += usize::from(matches!(job.jitter, Bounds::Exact(_)));
            }
        }
    }
    assert!(bounded > jobs / 10 && exact > jobs / 10, "{bounded} bounded, {exact} exact of {jobs}");
}

//! Chains of tasks: exactly the critical path.

use crate::support::{IDLE, Script, task};
use punctual_trace::chains::{Chain, Finder};
use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
use punctual_trace::event::{Kind, Task, Tid};
use punctual_trace::explain;
use punctual_trace::jobs::{Actor, Bounds, Config, Job, Phase};
use punctual_trace::names::Names;

const IRQ: Task = task(24, 5);
const READER: Task = task(7, 20);
const CONTROL: Task = task(8, 10);
const OTHER: Task = task(9, 15);

/// An interrupt thread wakes the reader, which wakes the control loop and continues while that runs
/// on another CPU.
fn crossing(s: &mut Script, t: u64) {
    s.at(t, 0, Kind::IrqEntry { irq: 24 }).waking(t + 2, 0, IRQ, 0).at(t + 5, 0, Kind::IrqExit { irq: 24 });
    s.switch(t + 12, 0, Runnable, IRQ);
    s.waking(t + 30, 0, READER, 0);
    s.switch(t + 40, 0, Sleeping, READER);
    // Another thread displaces the reader before it wakes the next.
    s.waking(t + 100, 0, OTHER, 0).switch(t + 105, 0, Runnable, OTHER).switch(t + 155, 0, Sleeping, READER);
    s.waking(t + 200, 0, CONTROL, 1);
    s.switch(t + 220, 1, Runnable, CONTROL).switch(t + 300, 1, Sleeping, IDLE);
    s.waking(t + 310, 0, OTHER, 0).switch(t + 315, 0, Runnable, OTHER).switch(t + 415, 0, Sleeping, READER);
    s.switch(t + 500, 0, Sleeping, IDLE);
}

fn chain(jobs: &[Job], threads: &[Tid]) -> Chain {
    let mut chain = Chain::new(threads.len());
    for job in jobs {
        chain.job(job, |stage| job.actor == Actor::Thread(threads[stage]), &mut |_| {});
    }
    chain
}

fn jobs(s: &Script) -> Vec<Job> {
    s.jobs(Config { segments: true, ..Config::default() })
}

#[test]
fn stages_sum_to_response() {
    let mut s = Script::new();
    crossing(&mut s, 1_000);
    let chain = chain(&jobs(&s), &[24, 7, 8]);
    let longest = &chain.longest()[0];
    assert_eq!(longest.latency, Bounds::Exact(300 - 2));
    assert_eq!(longest.stages.iter().map(|stage| stage.ns()).collect::<Vec<_>>(), [28, 170, 100]);
    for stage in &longest.stages {
        assert_eq!(stage.parts.iter().map(|part| part.ns).sum::<u64>(), stage.ns(), "{stage:?}");
    }
    let reader = &longest.stages[1];
    assert_eq!(
        (reader.part(Phase::Jitter), reader.part(Phase::Interference)),
        (10, 50),
        "not the 100 after it"
    );
    assert_eq!((chain.latency().max, chain.latency().count, chain.unmatched()), (298, 1, 0));
}

#[test]
fn explains_delay_of_each_stage() {
    let mut s = Script::new();
    crossing(&mut s, 1_000);
    let chain = chain(&jobs(&s), &[24, 7, 8]);
    let mut names = Names::new();
    let named = [(24, "irq/24-eth0"), (7, "reader"), (8, "control"), (9, "other")];
    named.into_iter().for_each(|(tid, name)| names.thread(tid, name));
    let sentences = explain::crossing(&chain.longest()[0], &names);
    assert_eq!(sentences.len(), 3);
    assert_eq!(
        sentences[1],
        "reader/7 took 170 ns (57 %) until it woke control/8: C or SS 110 ns, I 50 ns, J 10 ns; before it ran, irq/24-eth0/24 took \
         10 ns of the CPU; displaced by other/9 for 150 ns until its end."
    );
}

#[test]
fn counts_jobs_woken_from_outside_the_chain() {
    let mut s = Script::new();
    crossing(&mut s, 1_000);
    // Once by an interrupt, once by a thread outside the chain.
    s.at(2_000, 1, Kind::IrqEntry { irq: 3 }).waking(2_002, 1, CONTROL, 1).at(
        2_005,
        1,
        Kind::IrqExit { irq: 3 },
    );
    s.switch(2_010, 1, Runnable, CONTROL).switch(2_100, 1, Sleeping, IDLE);
    s.waking(2_200, 0, OTHER, 0).switch(2_210, 0, Runnable, OTHER).waking(2_220, 0, CONTROL, 1);
    s.switch(2_230, 1, Runnable, CONTROL).switch(2_300, 1, Sleeping, IDLE).switch(2_310, 0, Sleeping, IDLE);
    crossing(&mut s, 3_000);
    let chain = chain(&jobs(&s), &[7, 8]);
    assert_eq!((chain.latency().count, chain.unmatched()), (2, 2));
}

#[test]
fn omits_crossings_with_lost_events() {
    let mut s = Script::new();
    crossing(&mut s, 1_000);
    crossing(&mut s, 2_000);
    let at = s.events.iter().position(|event| event.time == 2_155).unwrap();
    let lost = punctual_trace::event::Event { kind: Kind::Lost { count: 3 }, ..s.events[at] };
    s.events.insert(at, lost);
    let chain = chain(&jobs(&s), &[7, 8]);
    assert_eq!((chain.latency().count, chain.flawed() + chain.unmatched()), (1, 1));
}

#[test]
fn infers_chains_from_wakeups() {
    let mut s = Script::new();
    (1..6).for_each(|n| crossing(&mut s, n * 1_000));
    let mut finder = Finder::default();
    jobs(&s).iter().for_each(|job| finder.job(job));
    assert_eq!(finder.chains(), [vec![24, 7, 8], vec![24, 7, 9]]);
    assert!(Finder::default().chains().is_empty());
}

/// Jobs in any order: memory stays bounded and nothing fails.
#[test]
fn survives_inconsistent_jobs() {
    let mut s = Script::new();
    (1..60).for_each(|n| crossing(&mut s, n * 1_000));
    let mut jobs = jobs(&s);
    jobs.reverse();
    let jobs: Vec<Job> = jobs.iter().cycle().take(2_000).cloned().collect();
    let same = chain(&jobs, &[7, 7, 7]);
    assert!(same.latency().count <= 2_000);
    let none = chain(&jobs, &[]);
    assert_eq!(none.latency().count, 0);
}

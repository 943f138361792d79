//! Events between the scheduler's entry and exit that look as if a thread had left it.
//!
//! Each scene runs with and without entry and exit events. The exact values with them have to lie
//! within the bounds without them.

use crate::support::{IDLE, Script, jobs, of, task};
use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
use punctual_trace::event::{Event, Kind, Task};
use punctual_trace::jobs::{Actor, Bounds, Config, Job};

const HIGH: Task = task(7, 10);
const LOW: Task = task(9, 30);
const MIGRATION: Task = task(20, 0);
const KSOFTIRQD: Task = task(21, 120);
/// `LCB_F_SPIN`
const RUN_QUEUE: Kind = Kind::ContentionBegin { lock: 0xff00, flags: 1 };
const HAS_RUN_QUEUE: Kind = Kind::ContentionEnd { lock: 0xff00 };
/// `LCB_F_MUTEX`
const MUTEX: Kind = Kind::ContentionBegin { lock: 0xaa00, flags: 32 };
const HAS_MUTEX: Kind = Kind::ContentionEnd { lock: 0xaa00 };

/// A thread has been switched in at 100 and left the scheduler at 120.
fn scene() -> Script {
    let mut s = Script::new();
    s.waking(90, 0, HIGH, 0).switch(100, 0, Runnable, HIGH).scheduled(120, 0);
    s
}

/// Returns the first job with the entry and exit events, and without.
fn both(s: &Script) -> [Job; 2] {
    let is_call = |event: &&Event| matches!(event.kind, Kind::ScheduleEnter | Kind::ScheduleExit);
    let without: Vec<_> = s.events.iter().filter(|event| !is_call(event)).copied().collect();
    let config = Config { segments: true, ..Config::default() };
    let both = [s.jobs(config.clone()), jobs(config, &without)].map(|jobs| of(&jobs, 7)[0].clone());
    let [with, without] = &both;
    assert!(with.complete() && without.complete());
    let exact = |value: Bounds| if let Bounds::Exact(ns) = value { ns } else { panic!("{value:?}") };
    assert!(without.overhead.allows(exact(with.overhead)), "{:?} {:?}", with.overhead, without.overhead);
    assert!(without.execution.allows(exact(with.execution)), "{:?} {:?}", with.execution, without.execution);
    both
}

#[test]
fn counts_run_queue_contention_as_scheduling() {
    let mut s = scene();
    s.at(500, 0, Kind::SyscallEnter { number: 1 }).schedule(510, 0);
    s.at(520, 0, RUN_QUEUE).at(550, 0, HAS_RUN_QUEUE).switch(560, 0, Sleeping, IDLE);
    let [with, without] = both(&s);
    assert_eq!((with.overhead_exit, with.blocking), (Bounds::Exact(20), Bounds::Exact(30)));
    assert_eq!(without.overhead_exit, Bounds::Between { lo: 0, hi: 30 });

    // A mutex that it does not acquire.
    let mut s = scene();
    s.at(500, 0, Kind::SyscallEnter { number: 1 }).at(520, 0, MUTEX).at(550, 0, HAS_MUTEX);
    s.schedule(555, 0).switch(560, 0, Sleeping, IDLE);
    assert_eq!(both(&s)[1].overhead_exit, Bounds::Between { lo: 0, hi: 10 });
}

#[test]
fn counts_interrupts_in_scheduler_as_interference() {
    let mut s = scene();
    s.at(500, 0, Kind::SyscallEnter { number: 1 }).schedule(510, 0);
    s.at(520, 0, Kind::VectorEntry { vector: 253 }).at(522, 0, Kind::VectorExit { vector: 253 });
    s.switch(560, 0, Sleeping, IDLE);
    let [with, without] = both(&s);
    assert_eq!(with.overhead_exit, Bounds::Exact(48));
    assert_eq!(without.overhead_exit, Bounds::Between { lo: 0, hi: 58 });
}

#[test]
fn ignores_wake_ups_of_migration_threads_in_scheduler() {
    let mut s = Script::new();
    s.waking(90, 0, HIGH, 0).switch(100, 0, Runnable, HIGH).waking(110, 0, MIGRATION, 1);
    s.scheduled(120, 0).at(500, 0, Kind::SyscallEnter { number: 1 }).schedule(510, 0);
    s.switch(560, 0, Sleeping, IDLE);
    let [with, without] = both(&s);
    assert_eq!(with.overhead_entry, Bounds::Exact(20));
    assert_eq!(without.overhead_entry, Bounds::Between { lo: 0, hi: 400 });
}

#[test]
fn wake_ups_after_handler_prove_nothing() {
    let mut s = Script::new();
    s.waking(90, 0, HIGH, 0).switch(100, 0, Runnable, HIGH);
    s.at(104, 0, Kind::VectorEntry { vector: 236 }).at(107, 0, Kind::VectorExit { vector: 236 });
    s.waking(110, 0, KSOFTIRQD, 0).scheduled(120, 0);
    s.at(500, 0, Kind::SyscallEnter { number: 1 }).schedule(510, 0).switch(560, 0, Sleeping, IDLE);
    let [with, without] = both(&s);
    assert_eq!(with.overhead_entry, Bounds::Exact(17));
    assert_eq!(without.overhead_entry, Bounds::Between { lo: 0, hi: 397 });
}

#[test]
fn attributes_contention_after_switch_event_to_leaving_thread() {
    let mut s = scene();
    s.schedule(510, 0).switch(560, 0, Sleeping, LOW);
    // The CPU still belongs to the old thread.
    for (time, kind) in [(562, RUN_QUEUE), (565, HAS_RUN_QUEUE)] {
        s.events.push(Event { time, cpu: 0, by: HIGH.id, kind });
    }
    s.scheduled(580, 0).waking(600, 0, HIGH, 0).schedule(605, 0).switch(610, 0, Runnable, HIGH);
    s.scheduled(620, 0).schedule(700, 0).switch(720, 0, Sleeping, IDLE);
    both(&s);
    let jobs = s.jobs(Config::default());
    let high = of(&jobs, 7);
    assert!(jobs.iter().all(|job| job.complete()));
    assert_eq!(high.iter().map(|job| job.overhead).collect::<Vec<_>>(), [70, 30].map(Bounds::Exact));
    assert_eq!(high[1].jitter_causes.iter().map(|cause| cause.actor).collect::<Vec<_>>(), [Actor::Thread(9)]);
}

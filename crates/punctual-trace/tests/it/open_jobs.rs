//! Jobs that do not end: deadlocks, threads that never sleep, threads that never get a CPU.

use crate::support::{IDLE, Script, task};
use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
use punctual_trace::event::{Kind, Task};
use punctual_trace::explain;
use punctual_trace::export::json;
use punctual_trace::jobs::{Actor, Bounds, Config, Decomposer, Flaw, Job, JobKind, Select};
use punctual_trace::names::Names;
use punctual_trace::stats::{Key, Watch};

const HIGH: Task = task(7, 10);
const LOW: Task = task(9, 30);
const HOG: Task = task(5, 50);

/// HIGH waits for a lock of LOW, which does not release it before 9 000.
fn deadlock() -> Script {
    let mut s = Script::new();
    s.waking(100, 1, LOW, 1).switch(110, 1, Runnable, LOW);
    s.waking(200, 0, HIGH, 0).switch(210, 0, Runnable, HIGH);
    s.at(300, 0, Kind::FutexEnter { word: 0x1000, operation: 6 | 128, value: 0 });
    s.at(305, 0, Kind::Inherit { task: 9, old: 30, new: 10 }).switch(310, 0, Sleeping, IDLE);
    s
}

fn unended(events: &Script, select: Select) -> Vec<Job> {
    let mut decomposer = Decomposer::new(Config { select, ..Config::default() });
    let mut jobs = Vec::new();
    events.events.iter().for_each(|event| decomposer.feed(event, &mut |job| jobs.push(job.clone())));
    assert!(jobs.is_empty(), "{jobs:?}");
    decomposer.finish(&mut |job| jobs.push(job.clone()));
    assert_eq!(decomposer.counters().flawed, jobs.len() as u64);
    jobs
}

#[test]
fn raises_alarm_while_job_lasts_and_when_it_ends() {
    let mut watch = Watch::new(Config::default(), 1);
    watch.default_deadline(Some(1_000));
    let mut script = deadlock();
    script
        .events
        .iter()
        .for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| panic!("nothing has ended")));
    let mut overdue = |now| {
        let mut alarms = Vec::new();
        watch.overdue(now, &mut |late| alarms.push(late.job.clone()));
        alarms.into_iter().filter(|job| job.actor == Actor::Thread(7)).collect::<Vec<_>>()
    };
    assert!(overdue(1_100).is_empty());
    let late = overdue(1_300);
    assert_eq!((late.len(), late[0].response, late[0].flaw), (1, Bounds::AtLeast(1_100), Some(Flaw::Cut)));
    assert_eq!(
        (late[0].blocking, late[0].blockings[0].owners.as_slice()),
        (Bounds::AtLeast(1_000), &[9][..])
    );
    assert!(overdue(5_000).is_empty(), "once is enough");
    let said = explain::job(&late[0], &Names::new());
    assert!(said[0].starts_with("It had not ended;") && said[1].contains("at least 1.1 µs"), "{said:?}");

    let fed = script.events.len();
    script.waking(9_000, 1, HIGH, 0).switch(9_010, 0, Runnable, HIGH);
    script.at(9_020, 0, Kind::FutexExit { result: 0 }).switch(9_100, 0, Sleeping, IDLE);
    let mut ends = Vec::new();
    for event in &script.events[fed..] {
        watch.feed(event, &mut |_| {}, &mut |late| ends.push(late.job.response));
    }
    assert_eq!(ends, [Bounds::Exact(8_900)]);
}

#[test]
fn returns_open_jobs_with_terms_so_far() {
    let jobs = unended(deadlock().at(2_000, 1, Kind::IrqEntry { irq: 1 }), Select::real_time());
    assert_eq!(jobs.len(), 2);
    let high = jobs.iter().find(|job| job.actor == Actor::Thread(7)).unwrap();
    assert_eq!((high.response, high.jitter), (Bounds::AtLeast(1_800), Bounds::Exact(10)));
    assert_eq!((high.window, high.blocking), (Bounds::AtLeast(1_790), Bounds::AtLeast(1_700)));
    let object: serde_json::Value = serde_json::from_str(&json(high, &Names::new())).unwrap();
    assert_eq!((&object["flaw"], &object["terms"]["R"]["min_ns"]), (&"cut".into(), &1_800.into()));
    assert!(object["terms"]["R"]["max_ns"].is_null());
}

#[test]
fn returns_job_that_never_ran() {
    let mut s = Script::new();
    s.waking(100, 0, HOG, 0).switch(110, 0, Runnable, HOG);
    s.waking(200, 0, LOW, 0).at(7_000, 0, Kind::IrqEntry { irq: 1 });
    let select = Select::thread(9);
    let jobs = unended(&s, select);
    assert_eq!((jobs.len(), jobs[0].started, jobs[0].flaw), (1, false, Some(Flaw::Cut)));
    assert_eq!((jobs[0].response, jobs[0].jitter), (Bounds::AtLeast(6_800), Bounds::AtLeast(6_800)));
    let who: Vec<_> = jobs[0].jitter_causes.iter().map(|cause| (cause.actor, cause.ns)).collect();
    assert!(who.contains(&(Actor::Thread(5), 6_800)), "{who:?}");
    let said = explain::job(&jobs[0], &Names::new()).join("\n");
    assert!(said.contains("it has not run"), "{said}");
}

/// It runs from before the first event until after the last one.
#[test]
fn names_thread_that_runs_through_whole_recording() {
    let mut s = Script::new();
    s.switch(100, 0, Sleeping, IDLE);
    s.events.clear();
    for time in [1_000, 2_000, 3_000] {
        let by = HOG.id;
        s.events.push(punctual_trace::event::Event { time, cpu: 0, by, kind: Kind::IrqEntry { irq: 3 } });
        s.events.push(punctual_trace::event::Event {
            time: time + 5,
            cpu: 0,
            by,
            kind: Kind::IrqExit { irq: 3 },
        });
    }
    let jobs = unended(&s, Select::real_time());
    assert_eq!(jobs.len(), 1);
    assert_eq!((jobs[0].actor, jobs[0].response), (Actor::Thread(5), Bounds::AtLeast(2_005)));
    // Its activity is unknown, except that it did not sleep.
    assert_eq!((jobs[0].execution, jobs[0].jitter), (Bounds::Unknown, Bounds::Unknown));
    // Another thread is not selected.
    assert!(unended(&s, Select::thread(7)).is_empty());
}

/// A thread displaced occasionally shows its priority, and ordinary ones are not selected.
#[test]
fn names_thread_that_never_slept_by_its_priority() {
    let ordinary = task(3, 120);
    let mut s = Script::new();
    s.switch(100, 0, Sleeping, HOG).switch(900, 0, Runnable, ordinary).switch(950, 0, Runnable, HOG);
    s.at(5_000, 0, Kind::IrqEntry { irq: 3 });
    s.events.remove(0);
    let jobs = unended(&s, Select::real_time());
    assert_eq!(jobs.iter().map(|job| job.actor).collect::<Vec<_>>(), [Actor::Thread(5)]);
    assert_eq!(jobs[0].response, Bounds::AtLeast(4_100));
}

#[test]
fn counts_deadline_that_passed_while_job_lasted() {
    let mut watch = Watch::new(Config::default(), 1);
    let key = Key { kind: JobKind::Thread, actor: Actor::Thread(7) };
    watch.deadline(key, 1_000);
    let mut script = deadlock();
    script.at(2_000, 1, Kind::IrqEntry { irq: 1 });
    script.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
    watch.finish(&mut |_| {});
    let task = watch.tasks().iter().find(|task| task.key() == key).unwrap();
    assert_eq!((task.misses(), task.jobs(), task.unended().len()), (1, 0, 1));
}

//! Grouping of jobs into tasks.

use crate::support::{IDLE, Script, task};
use punctual_trace::event::SwitchOut::{Gone, Runnable, Sleeping};
use punctual_trace::event::{Comm, Event, Kind, Task};
use punctual_trace::jobs::{Actor, Config, Counters, Decomposer, Select};
use punctual_trace::names::Names;
use punctual_trace::stats::{Term, Watch};

const CONTROL: Task = task(7, 10);
const BEFORE: Task = task(7, 120);

fn job(s: &mut Script, start: u64, task: Task, length: u64) {
    s.waking(start, 0, task, 0).switch(start + 10, 0, Runnable, task);
    s.switch(start + length, 0, Sleeping, IDLE);
}

/// Result of a watch: for each task the thread's reuse count, whether it is ordinary, its jobs and
/// the longest of them.
fn found(select: Select, script: &Script) -> Vec<(u32, bool, u64, u64)> {
    let mut watch = Watch::new(Config { select, ..Config::default() }, 1);
    watch.name(7, "control");
    script.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
    let tasks = watch.tasks().iter();
    tasks
        .map(|task| (task.id().life, task.id().ordinary, task.jobs(), task.summary(Term::Response).max))
        .collect()
}

/// A thread starts at an ordinary priority, and returns to it.
#[test]
fn every_selection_gives_same_jobs_of_task() {
    let mut s = Script::new();
    for (time, task, length) in
        [(1_000, BEFORE, 8_187), (20_000, CONTROL, 2_918), (40_000, CONTROL, 500), (60_000, BEFORE, 9_000)]
    {
        job(&mut s, time, task, length);
    }
    let real_time = (0, false, 2, 2_918);
    assert_eq!(found(Select::real_time(), &s), [real_time]);
    let ordinary = (0, true, 2, 9_000);
    for select in [Select::thread(7), Select { names: vec!["control".into()], ..Select::default() }] {
        assert_eq!(found(select, &s), [ordinary, real_time]);
    }
}

#[test]
fn distinguishes_threads_with_reused_id() {
    let mut s = Script::new();
    let mut watch = Watch::new(Config::default(), 1);
    for life in 0..10 {
        let start = 1_000 + life * 10_000;
        s.at(start, 0, Kind::Wakeup { task: CONTROL, cpu: 0, new: true }).switch(
            start + 10,
            0,
            Runnable,
            CONTROL,
        );
        s.switch(start + 100 + life, 0, Sleeping, IDLE);
        s.waking(start + 1_000, 0, CONTROL, 0).switch(start + 1_010, 0, Runnable, CONTROL);
        s.switch(start + 2_000 + life, 0, Gone, IDLE);
    }
    let mut names = Names::new();
    for (index, event) in s.events.iter().enumerate() {
        if index % 6 == 1 {
            let name = Comm::new(&format!("worker-{}", index / 6));
            let named = Event { kind: Kind::Named { thread: 7, name }, ..*event };
            names.see(&named);
            watch.feed(&named, &mut |_| {}, &mut |_| {});
        }
        watch.feed(event, &mut |_| {}, &mut |_| {});
    }
    let tasks = watch.tasks();
    assert_eq!(tasks.len(), 10);
    for (life, task) in (0..).zip(tasks) {
        assert_eq!((task.jobs(), task.id().life), (2, life));
        assert_eq!(task.summary(Term::Response).max, 1_000 + u64::from(life));
        assert_eq!(task.names(&names).of(Actor::Thread(7)), format!("worker-{life}/7"));
    }
}

#[test]
fn keeps_range_of_job_priorities() {
    let mut s = Script::new();
    for (time, priority) in [(1_000, 40), (20_000, 10), (40_000, 60)] {
        job(&mut s, time, task(7, priority), 500);
    }
    let mut watch = Watch::new(Config::default(), 1);
    s.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
    assert_eq!(watch.tasks().len(), 1);
    assert_eq!(watch.tasks()[0].priorities(), Some((10, 60)));
}

#[test]
fn does_not_count_gaps_as_events() {
    let mut decomposer = Decomposer::new(Config::default());
    for (time, kind) in
        [(1, Kind::IrqEntry { irq: 1 }), (2, Kind::Lost { count: 7 }), (3, Kind::IrqExit { irq: 1 })]
    {
        decomposer.feed(&Event { time, cpu: 0, by: 0, kind }, &mut |_| {});
    }
    let Counters { events, gaps, .. } = decomposer.counters();
    assert_eq!((events, gaps), (2, 1));
}

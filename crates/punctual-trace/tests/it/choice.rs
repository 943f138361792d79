//! Selection of the decomposed jobs.

use crate::support::{IDLE, Script, task};
use punctual_trace::event::SwitchOut::{Gone, Runnable, Sleeping};
use punctual_trace::event::{Kind, Task};
use punctual_trace::jobs::{Actor, Bounds, Config, Job, ReleasedBy, Select};

const WORKER: Task = task(7, 120);
const CHILD: Task = task(8, 120);
const GRANDCHILD: Task = task(9, 120);

fn actors(jobs: &[Job]) -> Vec<Actor> {
    jobs.iter().map(|job| job.actor).collect()
}

#[test]
fn selects_marking_threads_of_any_priority() {
    let mut s = Script::new();
    s.waking(100, 0, WORKER, 0).switch(110, 0, Runnable, WORKER);
    s.at(140, 0, Kind::JobStart { task: 1, released: 90 }).at(200, 0, Kind::JobEnd { task: 1 });
    s.switch(210, 0, Sleeping, IDLE);
    s.waking(300, 0, WORKER, 0).switch(310, 0, Runnable, WORKER);
    s.at(340, 0, Kind::JobStart { task: 1, released: 290 }).at(400, 0, Kind::JobEnd { task: 1 });
    s.switch(410, 0, Sleeping, IDLE);
    // Another thread marks nothing.
    s.waking(500, 0, CHILD, 0).switch(510, 0, Runnable, CHILD).switch(520, 0, Sleeping, IDLE);
    let select = Select { marked: true, ..Select::real_time() };
    let jobs = s.jobs(Config { select, monotonic: true, ..Config::default() });
    let seen: Vec<_> =
        jobs.iter().map(|job| (job.task, job.response, job.released_by, job.complete())).collect();
    // That the thread marks jobs was unknown before its first mark, so the first job begins there.
    let expected = [110, 110].map(|response| (Some(1), Bounds::Exact(response), ReleasedBy::Mark, true));
    assert_eq!(seen, expected);
    assert_eq!((jobs[0].start, jobs[1].start), (140, 310));
    assert_eq!(s.jobs(Config::default()), []);
}

#[test]
fn selects_threads_and_descendants() {
    let mut s = Script::new();
    let new = |task| Kind::Wakeup { task, cpu: 0, new: true };
    s.switch(50, 0, Runnable, WORKER).at(100, 0, new(CHILD));
    s.switch(110, 0, Sleeping, CHILD).at(120, 0, new(GRANDCHILD));
    s.switch(130, 0, Sleeping, GRANDCHILD).switch(150, 0, Gone, IDLE);
    s.waking(160, 0, WORKER, 0).switch(170, 0, Runnable, WORKER).switch(180, 0, Sleeping, IDLE);
    // The ID is reused for another thread, which an unrelated thread starts.
    let stranger = task(30, 120);
    s.switch(200, 0, Runnable, stranger).at(210, 0, new(GRANDCHILD));
    s.switch(220, 0, Sleeping, GRANDCHILD).switch(230, 0, Sleeping, IDLE);
    let all = Select { priorities: Some(0..=139), ..Select::default() };
    let some = Select { among: vec![7], ..all.clone() };
    let jobs = s.jobs(Config { select: some, ..Config::default() });
    assert_eq!(actors(&jobs), [8, 9, 7].map(Actor::Thread));
    assert_eq!(jobs[0].released_by, ReleasedBy::New);
    assert_eq!(actors(&s.jobs(Config { select: all, ..Config::default() })), [8, 9, 7, 9].map(Actor::Thread));
    // The other criteria still have to apply.
    let real_time = Select { among: vec![7], ..Select::real_time() };
    assert_eq!(s.jobs(Config { select: real_time, ..Config::default() }), []);
}

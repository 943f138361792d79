//! Jobs that an app marks, calling others on the same thread, while other threads and handlers interfere.

mod support;

use punctual_trace::event::{Kind, Left, Task};
use punctual_trace::jobs::{Actor, Cause, Config, Flaw, Job, Value};
use support::{IDLE, Script, jobs, task};

const WORKER: Task = task(7, 40);
const HIGHER: Task = task(8, 30);

fn start(task: u16, released: u64) -> Kind {
    Kind::JobStart { task, released }
}

fn end(task: u16) -> Kind {
    Kind::JobEnd { task }
}

fn config() -> Config {
    Config { monotonic: true, segments: true, ..Config::default() }
}

fn of(jobs: &[Job], task: u16) -> Vec<&Job> {
    jobs.iter().filter(|job| job.task == Some(task)).collect()
}

fn cause(actor: Actor, ns: u64, times: u32) -> Cause {
    Cause { actor, ns, times }
}

/// The worker runs task 1, which calls task 2, which calls task 3. Each is displaced by a thread or an interrupt.
fn nest() -> Script {
    let mut s = Script::new();
    s.waking(100, 0, WORKER, 0).switch(110, 0, Left::Runnable, WORKER).at(120, 0, start(1, 90));
    s.at(150, 0, start(2, 140));
    s.waking(160, 0, HIGHER, 0).switch(170, 0, Left::Runnable, HIGHER);
    s.switch(200, 0, Left::Sleeping, WORKER);
    s.at(210, 0, start(3, 205)).at(220, 0, Kind::IrqEntry { irq: 5 }).at(235, 0, Kind::IrqExit { irq: 5 });
    s.at(250, 0, end(3)).at(270, 0, end(2));
    s.at(280, 0, Kind::IrqEntry { irq: 5 }).at(290, 0, Kind::IrqExit { irq: 5 });
    s.at(300, 0, end(1)).switch(310, 0, Left::Sleeping, IDLE);
    s
}

#[test]
fn whoever_is_called_displaces_its_caller_and_nobody_else() {
    let jobs = nest().jobs(config());
    let tasks: Vec<_> = jobs.iter().filter_map(|job| job.task).collect();
    assert_eq!(tasks, [3, 2, 1]);
    let terms = |task: u16| {
        let job = of(&jobs, task)[0];
        (job.jitter, job.window, job.interference, job.interference_causes.clone())
    };
    let (irq, thread) = (Actor::Irq(5), Actor::Thread(8));
    assert_eq!(terms(3), (Value::Exact(5), Value::Exact(40), Value::Exact(15), vec![cause(irq, 15, 1)]));
    assert_eq!(
        terms(2),
        (
            Value::Exact(10),
            Value::Exact(120),
            Value::Exact(70),
            vec![cause(thread, 30, 1), cause(Actor::Task(3), 40, 1)]
        )
    );
    // What displaced those that it called is their time, and so the called task's.
    assert_eq!(
        terms(1),
        (
            Value::Exact(20),
            Value::Exact(190),
            Value::Exact(130),
            vec![cause(Actor::Task(2), 120, 1), cause(irq, 10, 1)]
        )
    );
    // The segments of each are without a gap from release to end.
    for job in jobs.iter().filter(|job| job.task.is_some()) {
        let mut at = job.released.unwrap().0;
        for segment in &job.segments {
            assert_eq!(segment.start, at, "{job:?}");
            at = segment.end;
        }
        assert_eq!(at, job.end);
    }
}

#[test]
fn a_job_that_was_queued_was_delayed_by_what_its_cpu_did() {
    let mut s = Script::new();
    s.waking(100, 0, WORKER, 0).switch(110, 0, Left::Runnable, WORKER).at(120, 0, start(1, 90));
    // Spawned at 130, it waits for the end of the other and is displaced before it begins.
    s.waking(150, 0, HIGHER, 0).switch(160, 0, Left::Runnable, HIGHER);
    s.switch(180, 0, Left::Sleeping, WORKER).at(200, 0, end(1)).at(205, 0, start(2, 130)).at(240, 0, end(2));
    s.switch(250, 0, Left::Sleeping, IDLE);
    let jobs = s.jobs(config());
    let queued = of(&jobs, 2)[0];
    assert_eq!((queued.jitter, queued.response), (Value::Exact(75), Value::Exact(110)));
    let mut causes = queued.jitter_causes.clone();
    causes.sort_by_key(|cause| cause.actor);
    assert_eq!(causes, [cause(Actor::Thread(7), 55, 2), cause(Actor::Thread(8), 20, 1)]);
}

#[test]
fn a_lost_end_spoils_the_jobs_it_touches_and_no_more() {
    let lose = |lost: Kind| {
        let mut events = nest().events;
        let next = events.iter().position(|event| event.kind == lost).unwrap();
        events.remove(next);
        // The same again, later, with nothing lost.
        let again = nest().events.into_iter().map(|mut event| {
            event.time += 1_000;
            if let Kind::JobStart { released, .. } = &mut event.kind {
                *released += 1_000;
            }
            event
        });
        events.extend(again);
        jobs(config(), &events)
    };
    // The caller's end ends those it called; who called it has lost nothing but the account of that.
    let without = lose(end(3));
    assert_eq!(of(&without, 3)[0].flaw, Some(Flaw::Contradiction));
    assert_eq!(of(&without, 2)[0].flaw, Some(Flaw::Contradiction));
    assert_eq!(of(&without, 1)[0].flaw, None);
    // Nobody ends the outermost but the next job of its task.
    let without = lose(end(1));
    let first = of(&without, 1);
    assert_eq!((first.len(), first[0].flaw), (2, Some(Flaw::Contradiction)));
    for jobs in [&without, &lose(end(3)), &lose(end(2)), &lose(start(3, 205))] {
        let last = |task| of(jobs, task).last().map(|job| (job.jitter, job.start)).unwrap();
        assert_eq!((last(3).0, last(2).0), (Value::Exact(5), Value::Exact(10)));
        assert_eq!((last(3).1, last(2).1), (1_210, 1_150));
        assert!(of(jobs, 1).len() == 2 && of(jobs, 2).len() == 2, "{jobs:?}");
    }
}

#[test]
fn the_end_of_the_trace_cuts_all_of_them() {
    let script = nest();
    let mut decomposer = punctual_trace::jobs::Decomposer::new(config());
    let mut cut = Vec::new();
    let before = script.events.iter().take_while(|event| event.kind != end(3));
    before.for_each(|event| decomposer.feed(event, &mut |job| assert_eq!(job.task, None)));
    decomposer.finish(&mut |job| cut.push((job.task, job.flaw, job.check())));
    let expected = [3, 2, 1].map(|task| (Some(task), Some(Flaw::Cut), Ok(())));
    assert_eq!(cut, expected);
}

//! Jobs that an app marks, calling others on the same thread, with interference by other threads
//! and handlers.

use crate::support::{IDLE, Script, jobs, task};
use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
use punctual_trace::event::{Kind, Task};
use punctual_trace::jobs::{Actor, Bounds, Cause, Config, Flaw, Job};
use punctual_trace::recorded::Recorded;
use punctual_trace::stats::Watch;

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

/// The worker runs task 1, which calls task 2, which calls task 3. Each is displaced by a thread or
/// an interrupt.
fn nest() -> Script {
    let mut s = Script::new();
    s.waking(100, 0, WORKER, 0).switch(110, 0, Runnable, WORKER).at(120, 0, start(1, 90));
    s.at(150, 0, start(2, 140));
    s.waking(160, 0, HIGHER, 0).switch(170, 0, Runnable, HIGHER);
    s.switch(200, 0, Sleeping, WORKER);
    s.at(210, 0, start(3, 205)).at(220, 0, Kind::IrqEntry { irq: 5 }).at(235, 0, Kind::IrqExit { irq: 5 });
    s.at(250, 0, end(3)).at(270, 0, end(2));
    s.at(280, 0, Kind::IrqEntry { irq: 5 }).at(290, 0, Kind::IrqExit { irq: 5 });
    s.at(300, 0, end(1)).switch(310, 0, Sleeping, IDLE);
    s
}

/// If a recording declares a thread's calls, this also applies to the jobs that its jobs call.
#[test]
fn attributes_waits_of_called_jobs_to_callers() {
    let recorded = Recorded::declared(
        "sched:sched_switch\nsched:sched_waking\nlock:contention_begin\nlock:contention_end\n\
         syscalls:sys_enter_futex\nsyscalls:sys_exit_futex\ncalls of 7\n",
    );
    let jobs = nest().jobs(Config { recorded, ..config() });
    for task in [1, 2, 3] {
        assert_eq!(of(&jobs, task)[0].blocking, Bounds::Exact(0), "task {task}");
    }
}

#[test]
fn counts_called_job_only_as_interference_of_caller() {
    let jobs = nest().jobs(config());
    let tasks: Vec<_> = jobs.iter().filter_map(|job| job.task).collect();
    assert_eq!(tasks, [3, 2, 1]);
    let terms = |task: u16| {
        let job = of(&jobs, task)[0];
        (job.jitter, job.window, job.interference, job.interference_causes.clone())
    };
    let (irq, thread) = (Actor::Irq(5), Actor::Thread(8));
    assert_eq!(terms(3), (Bounds::Exact(5), Bounds::Exact(40), Bounds::Exact(15), vec![cause(irq, 15, 1)]));
    assert_eq!(
        terms(2),
        (
            Bounds::Exact(10),
            Bounds::Exact(120),
            Bounds::Exact(70),
            vec![cause(thread, 30, 1), cause(Actor::Task(3), 40, 1)]
        )
    );
    // Displacement of the jobs it called is part of their time, and so belongs to the called task.
    assert_eq!(
        terms(1),
        (
            Bounds::Exact(20),
            Bounds::Exact(190),
            Bounds::Exact(130),
            vec![cause(Actor::Task(2), 120, 1), cause(irq, 10, 1)]
        )
    );
    // The segments of each are contiguous from release to end.
    for job in jobs.iter().filter(|job| job.task.is_some()) {
        let mut at = job.released.unwrap().0;
        for segment in &job.segments {
            assert_eq!(segment.start, at, "{job:?}");
            at = segment.end;
        }
        assert_eq!(at, job.end);
    }
}

/// A worker is not woken for a job that was spawned while it was awake. The activity of its CPU
/// since then is captured with the job.
#[test]
fn keeps_events_since_release_of_queued_job() {
    let mut s = Script::new();
    s.waking(100, 0, WORKER, 0).switch(110, 0, Runnable, WORKER).at(120, 0, start(1, 90));
    s.at(140, 0, Kind::IrqEntry { irq: 24 }).at(150, 0, Kind::IrqExit { irq: 24 }).at(200, 0, end(1));
    s.at(205, 0, start(2, 130)).at(400, 0, end(2)).switch(450, 0, Sleeping, IDLE);
    let mut watch = Watch::new(config(), 1);
    s.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
    let queued = watch.tasks().iter().find(|task| task.key().actor == Actor::Task(2)).unwrap();
    assert_eq!(queued.worst()[0].events[0].time, 140);
}

#[test]
fn attributes_queueing_delay_to_work_of_the_cpu() {
    let mut s = Script::new();
    s.waking(100, 0, WORKER, 0).switch(110, 0, Runnable, WORKER).at(120, 0, start(1, 90));
    // Spawned at 130, it waits for the end of the other and is displaced before it begins.
    s.waking(150, 0, HIGHER, 0).switch(160, 0, Runnable, HIGHER);
    s.switch(180, 0, Sleeping, WORKER).at(200, 0, end(1)).at(205, 0, start(2, 130)).at(240, 0, end(2));
    s.switch(250, 0, Sleeping, IDLE);
    let jobs = s.jobs(config());
    let queued = of(&jobs, 2)[0];
    assert_eq!((queued.jitter, queued.response), (Bounds::Exact(75), Bounds::Exact(110)));
    let mut causes = queued.jitter_causes.clone();
    causes.sort_by_key(|cause| cause.actor);
    assert_eq!(causes, [cause(Actor::Thread(7), 55, 2), cause(Actor::Thread(8), 20, 1)]);
}

#[test]
fn flags_only_jobs_touched_by_lost_end() {
    let lose = |lost: Kind| {
        let mut events = nest().events;
        let next = events.iter().position(|event| event.kind == lost).unwrap();
        events.remove(next);
        // The same again, later, without losses.
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
    // The caller's end ends the jobs it called; its own caller has lost only the accounting of
    // that.
    let without = lose(end(3));
    assert_eq!(of(&without, 3)[0].flaw, Some(Flaw::Contradiction));
    assert_eq!(of(&without, 2)[0].flaw, Some(Flaw::Contradiction));
    assert_eq!(of(&without, 1)[0].flaw, None);
    // The outermost one ends only with the next job of its task.
    let without = lose(end(1));
    let first = of(&without, 1);
    assert_eq!((first.len(), first[0].flaw), (2, Some(Flaw::Contradiction)));
    for jobs in [&without, &lose(end(3)), &lose(end(2)), &lose(start(3, 205))] {
        let last = |task| of(jobs, task).last().map(|job| (job.jitter, job.start)).unwrap();
        assert_eq!((last(3).0, last(2).0), (Bounds::Exact(5), Bounds::Exact(10)));
        assert_eq!((last(3).1, last(2).1), (1_210, 1_150));
        assert!(of(jobs, 1).len() == 2 && of(jobs, 2).len() == 2, "{jobs:?}");
    }
}

#[test]
fn cuts_all_nested_jobs_at_end_of_trace() {
    let script = nest();
    let mut decomposer = punctual_trace::jobs::Decomposer::new(config());
    let mut cut = Vec::new();
    let before = script.events.iter().take_while(|event| event.kind != end(3));
    before.for_each(|event| decomposer.feed(event, &mut |job| assert_eq!(job.task, None)));
    decomposer.finish(&mut |job| cut.push((job.task, job.flaw, job.check())));
    let expected = [3, 2, 1].map(|task| (Some(task), Some(Flaw::Cut), Ok(())));
    assert_eq!(cut, expected);
}

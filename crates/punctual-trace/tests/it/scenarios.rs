//! Scenes with one event each, and the result by construction.

use crate::support::{IDLE, Script, of, task};
use punctual_trace::event::SwitchOut::{Gone, Runnable, Sleeping, Uninterruptible};
use punctual_trace::event::{Kind, Task};
use punctual_trace::jobs::{
    Actor, Bounds, Cause, Config, Flaw, FutexWaits, HolderState, JobKind, Release, ReleasedBy, Select, Share,
    Sleeps, WaitTarget,
};

const HIGH: Task = task(7, 10);
const MIDDLE: Task = task(8, 20);
const LOW: Task = task(9, 30);
const WORD: u64 = 0x7ffe_1000;
const LOCK_PI: u32 = 6 | 128;
const WAIT: u32 = 128;
const WAKE: u32 = 1 | 128;
const UNLOCK_PI: u32 = 7 | 128;

fn enter(operation: u32) -> Kind {
    Kind::FutexEnter { word: WORD, operation, value: 2 }
}

const EXIT: Kind = Kind::FutexExit { result: 0 };

fn cause(actor: Actor, ns: u64, times: u32) -> Cause {
    Cause { actor, ns, times }
}

fn share(depth: u8, holder: u32, state: HolderState, ns: u64) -> Share {
    Share { depth, holder: (holder != 0).then_some(holder), state, ns }
}

#[test]
fn counts_time_of_preempting_thread_as_interference() {
    let mut s = Script::new();
    s.waking(100, 0, LOW, 0).wakeup(101, 0, LOW, 0).switch(110, 0, Runnable, LOW);
    s.waking(200, 0, HIGH, 0).wakeup(201, 0, HIGH, 0).switch(210, 0, Runnable, HIGH);
    s.switch(510, 0, Sleeping, LOW).switch(600, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    let low = of(&jobs, 9)[0];
    assert_eq!(low.interference, Bounds::Exact(300));
    assert_eq!(low.interference_causes, [cause(Actor::Thread(7), 300, 1)]);
    assert_eq!((low.preemptions, low.response), (1, Bounds::Exact(500)));
    let high = of(&jobs, 7)[0];
    assert_eq!(high.jitter_causes, [cause(Actor::Thread(9), 10, 1)]);
    assert_eq!(high.waker.map(|waker| waker.actor), Some(Actor::Thread(9)));
}

#[test]
fn counts_interrupts_and_softirqs_as_interference_and_jobs() {
    let mut s = Script::new();
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH);
    s.at(150, 0, Kind::IrqEntry { irq: 24 }).at(160, 0, Kind::VectorEntry { vector: 236 });
    s.at(175, 0, Kind::VectorExit { vector: 236 }).at(180, 0, Kind::IrqExit { irq: 24 });
    s.at(181, 0, Kind::SoftirqEntry { softirq: 3 }).at(221, 0, Kind::SoftirqExit { softirq: 3 });
    s.switch(300, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config { handlers: true, ..Config::default() });
    let sorts: Vec<_> = jobs.iter().map(|job| job.kind).collect();
    assert_eq!(sorts, [JobKind::Vector, JobKind::Irq, JobKind::Softirq, JobKind::Thread]);
    let irq = &jobs[1];
    assert_eq!((irq.window, irq.interference, irq.execution), (30, 15, 15).map_values());
    assert_eq!((irq.jitter, irq.response), (Bounds::Unknown, Bounds::AtLeast(30)));
    assert_eq!(irq.interference_causes, [cause(Actor::Vector(236), 15, 1)]);
    let thread = &jobs[3];
    assert_eq!(thread.interference, Bounds::Exact(70));
    let mut causes = thread.interference_causes.clone();
    causes.sort_by_key(|cause| cause.actor);
    let expected =
        [cause(Actor::Irq(24), 15, 1), cause(Actor::Vector(236), 15, 1), cause(Actor::Softirq(3), 40, 1)];
    assert_eq!(causes, expected);
}

trait MapValues {
    fn map_values(self) -> (Bounds, Bounds, Bounds);
}

impl MapValues for (u64, u64, u64) {
    fn map_values(self) -> (Bounds, Bounds, Bounds) {
        (Bounds::Exact(self.0), Bounds::Exact(self.1), Bounds::Exact(self.2))
    }
}

/// HIGH waits for LOW's PI futex, LOW for a futex of thread 5 on the other CPU, which an irq thread
/// displaces.
#[test]
fn blames_every_owner_in_chain_of_pi_futexes() {
    let (last, irq) = (task(5, 40), task(24, 5));
    let mut s = Script::new();
    s.waking(10, 1, last, 1).switch(20, 1, Runnable, last);
    s.waking(30, 0, LOW, 0).switch(40, 0, Runnable, LOW);
    s.at(50, 0, Kind::FutexEnter { word: 0x2000, operation: LOCK_PI, value: 0 });
    s.at(52, 0, Kind::Inherit { task: 5, old: 40, new: 30 }).switch(60, 0, Sleeping, IDLE);
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH);
    s.at(200, 0, enter(LOCK_PI)).at(203, 0, Kind::Inherit { task: 9, old: 30, new: 10 });
    s.at(204, 0, Kind::Inherit { task: 5, old: 30, new: 10 }).switch(210, 0, Sleeping, IDLE);
    s.waking(300, 1, irq, 1).switch(310, 1, Runnable, irq).switch(620, 1, Sleeping, last);
    // Thread 5 releases 0x2000, LOW takes it and then releases the word that HIGH waits for.
    s.at(700, 1, Kind::FutexEnter { word: 0x2000, operation: UNLOCK_PI, value: 0 });
    s.waking(705, 1, LOW, 0).at(706, 1, Kind::Inherit { task: 5, old: 10, new: 40 }).at(707, 1, EXIT);
    s.switch(720, 0, Runnable, LOW).at(730, 0, EXIT);
    s.at(800, 0, enter(UNLOCK_PI)).waking(805, 0, HIGH, 0);
    s.at(806, 0, Kind::Inherit { task: 9, old: 10, new: 30 });
    s.switch(815, 0, Runnable, HIGH).at(825, 0, EXIT);
    s.switch(900, 0, Sleeping, LOW);

    let mut jobs = s.jobs(Config::default());
    let index = jobs.iter().position(|job| job.actor == Actor::Thread(7)).unwrap();
    let high = jobs.remove(index);
    assert_eq!((high.blocking, high.response), (Bounds::Exact(625), Bounds::Exact(800)));
    let wait = &high.blockings[0];
    assert_eq!(
        (wait.start, wait.end, wait.target, wait.slept),
        (200, 825, WaitTarget::Futex { word: WORD }, true)
    );
    assert_eq!((wait.owners.as_slice(), wait.waker), ([9, 5].as_slice(), Some(Actor::Thread(9))));
    let mut shares = wait.shares.clone();
    shares.sort_by_key(|share| (share.depth, share.holder, share.ns));
    let expected = [
        share(0, 0, HolderState::Granted, 10),
        share(0, 0, HolderState::Preempted { by: Actor::Thread(9) }, 10),
        share(0, 9, HolderState::Preempted { by: Actor::Thread(0) }, 15),
        share(0, 9, HolderState::Running, 85),
        share(1, 5, HolderState::Running, 195),
        share(1, 5, HolderState::Preempted { by: Actor::Thread(24) }, 310),
    ];
    assert_eq!(shares, expected);
    assert_eq!(shares.iter().map(|share| share.ns).sum::<u64>(), 625);
}

/// Classic priority inversion: LOW holds a plain mutex, MIDDLE displaces LOW, HIGH waits for both.
#[test]
fn blames_preemptor_of_holder_of_plain_mutex() {
    let mut s = Script::new();
    s.waking(10, 0, LOW, 0).switch(20, 0, Runnable, LOW);
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH);
    s.at(150, 0, enter(WAIT)).switch(160, 0, Sleeping, LOW);
    s.waking(200, 0, MIDDLE, 0).switch(210, 0, Runnable, MIDDLE).switch(1_210, 0, Sleeping, LOW);
    s.at(1_300, 0, enter(WAKE)).waking(1_310, 0, HIGH, 0).at(1_312, 0, EXIT);
    s.switch(1_320, 0, Runnable, HIGH).at(1_330, 0, EXIT).switch(1_400, 0, Sleeping, LOW);
    let jobs = s.jobs(Config::default());
    let high = of(&jobs, 7)[0];
    assert_eq!(high.blocking, Bounds::Exact(1_180));
    assert_eq!(high.interference, Bounds::Exact(0));
    let wait = &high.blockings[0];
    assert_eq!(wait.owners, [9]);
    assert!(
        wait.shares.contains(&share(0, 9, HolderState::Preempted { by: Actor::Thread(8) }, 1_000)),
        "{wait:?}"
    );
    assert!(wait.shares.contains(&share(0, 9, HolderState::Running, 150)));

    // The same wait, if futexes are not locks: two jobs.
    let jobs = s.jobs(Config { futex: FutexWaits::Suspend, ..Config::default() });
    assert_eq!(of(&jobs, 7).iter().map(|job| job.window).collect::<Vec<_>>(), [50, 80].map(Bounds::Exact));
}

/// A futex call that did not have to wait is no blocking; displacement of the caller inside the
/// call is interference.
#[test]
fn counts_no_blocking_for_futex_call_that_does_not_sleep() {
    let mut s = Script::new();
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH);
    s.at(150, 0, enter(WAIT)).at(160, 0, Kind::IrqEntry { irq: 1 }).at(180, 0, Kind::IrqExit { irq: 1 });
    s.at(190, 0, Kind::FutexExit { result: -11 }).switch(200, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    assert_eq!((jobs[0].blocking, jobs[0].interference), (Bounds::Exact(0), Bounds::Exact(20)));
    assert_eq!(jobs[0].blockings, []);
}

/// If it sleeps in the end, everything since the call was the wait, and no actor is counted twice.
#[test]
fn counts_displacement_inside_futex_call_once() {
    let mut s = Script::new();
    s.waking(100, 0, MIDDLE, 0).switch(110, 0, Runnable, MIDDLE);
    s.at(120, 0, Kind::IrqEntry { irq: 1 }).at(125, 0, Kind::IrqExit { irq: 1 });
    s.at(150, 0, enter(WAIT)).at(155, 0, Kind::IrqEntry { irq: 1 }).at(160, 0, Kind::IrqExit { irq: 1 });
    s.waking(165, 0, HIGH, 0).switch(170, 0, Runnable, HIGH).switch(190, 0, Sleeping, MIDDLE);
    s.switch(200, 0, Sleeping, LOW);
    s.waking(300, 0, MIDDLE, 0).switch(310, 0, Runnable, MIDDLE).at(320, 0, EXIT);
    s.switch(400, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config { segments: true, ..Config::default() });
    let middle = of(&jobs, 8)[0];
    assert_eq!((middle.blocking, middle.interference), (Bounds::Exact(170), Bounds::Exact(5)));
    assert_eq!(middle.interference_causes, [cause(Actor::Irq(1), 5, 1)]);
    assert_eq!(middle.preemptions, 1);
    assert_eq!(middle.segments.iter().map(|segment| segment.end - segment.start).sum::<u64>(), 300);
}

fn nap() -> Script {
    let mut s = Script::new();
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH).switch(200, 0, Sleeping, IDLE);
    s.waking(500, 0, HIGH, 0).switch(520, 0, Runnable, HIGH).switch(600, 0, Gone, IDLE);
    s
}

#[test]
fn ends_job_or_counts_time_on_self_suspension() {
    let jobs = nap().jobs(Config::default());
    assert_eq!(jobs.iter().map(|job| job.response).collect::<Vec<_>>(), [100, 100].map(Bounds::Exact));
    let jobs = nap().jobs(Config { sleeps: Sleeps::BelongToJob, ..Config::default() });
    assert_eq!(jobs.len(), 1);
    let job = &jobs[0];
    assert_eq!((job.response, job.suspended, job.interference), (Bounds::Exact(500), 300, Bounds::Exact(20)));
    assert_eq!(job.execution, Bounds::Between { lo: 300, hi: 470 });
}

#[test]
fn counts_uninterruptible_sleep_as_blocking() {
    let mut s = Script::new();
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH).switch(200, 0, Uninterruptible, LOW);
    s.waking(260, 0, HIGH, 0).switch(300, 0, Runnable, HIGH).switch(350, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    let high = of(&jobs, 7)[0];
    assert_eq!(high.blocking, Bounds::Exact(100));
    assert_eq!(
        (high.blockings[0].target, high.blockings[0].owners.as_slice()),
        (WaitTarget::Kernel, [9].as_slice())
    );
}

#[test]
fn follows_job_across_migration() {
    let mut s = Script::new();
    s.waking(100, 0, LOW, 0).switch(110, 0, Runnable, LOW);
    s.switch(200, 0, Runnable, MIDDLE);
    s.at(300, 1, Kind::Migrate { task: LOW, from: 0, to: 1 });
    s.at(301, 1, Kind::IrqEntry { irq: 5 }).at(311, 1, Kind::IrqExit { irq: 5 });
    s.switch(320, 1, Runnable, LOW).switch(400, 1, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    let low = of(&jobs, 9)[0];
    assert_eq!((low.first_cpu, low.last_cpu, low.migrations), (0, 1, 1));
    assert_eq!(low.interference, Bounds::Exact(120));
    let mut causes = low.interference_causes.clone();
    causes.sort_by_key(|cause| cause.actor);
    let expected =
        [cause(Actor::Thread(0), 10, 2), cause(Actor::Thread(8), 100, 1), cause(Actor::Irq(5), 10, 1)];
    assert_eq!(causes, expected);
}

#[test]
fn counts_late_timer_as_release_jitter() {
    let mut s = Script::new();
    s.at(50, 0, Kind::TimerStart { timer: 0xf00, expires: 1_000_100 });
    s.at(160, 0, Kind::VectorEntry { vector: 236 });
    s.at(170, 0, Kind::TimerExpire { timer: 0xf00, now: 1_000_140 });
    s.waking(175, 0, HIGH, 0).at(178, 0, Kind::TimerExpired { timer: 0xf00 });
    s.at(180, 0, Kind::VectorExit { vector: 236 });
    s.switch(190, 0, Runnable, HIGH).switch(300, 0, Sleeping, IDLE);
    // The timer's clock was read between 160 and 170 and showed that it was 40 late.
    let jobs = s.jobs(Config { handlers: true, ..Config::default() });
    let job = of(&jobs, 7)[0];
    assert_eq!(job.released, Some((120, 130)));
    assert_eq!((job.released_by, job.woken, job.lateness()), (ReleasedBy::Timer, Some(175), Some(55)));
    assert_eq!(job.jitter, Bounds::Between { lo: 60, hi: 70 });
    assert_eq!(job.response, Bounds::Between { lo: 170, hi: 180 });
    // The handler was released by the timer too.
    assert_eq!((jobs[0].kind, jobs[0].jitter), (JobKind::Vector, Bounds::Between { lo: 30, hi: 40 }));

    let jobs = s.jobs(Config { release: Release::Wake, ..Config::default() });
    assert_eq!((jobs[0].jitter, jobs[0].released_by), (Bounds::Exact(15), ReleasedBy::Wake));

    // On the timer's own clock the release is known exactly.
    let shift = 1_000_000 - 30;
    s.events.iter_mut().for_each(|event| event.time += shift);
    let jobs = s.jobs(Config { monotonic: true, ..Config::default() });
    assert_eq!(jobs[0].jitter, Bounds::Exact(190 + shift - 1_000_100));
}

#[test]
fn selects_chosen_threads_and_irq_threads() {
    let (ordinary, irq) = (task(50, 120), task(51, 50));
    let mut s = Script::new();
    s.waking(100, 0, ordinary, 0).switch(110, 0, Runnable, ordinary).switch(120, 0, Sleeping, IDLE);
    s.at(150, 0, Kind::IrqEntry { irq: 24 }).waking(152, 0, irq, 0).at(155, 0, Kind::IrqExit { irq: 24 });
    s.switch(160, 0, Runnable, irq).switch(190, 0, Sleeping, IDLE);
    let run = |select: Select| {
        let mut decomposer = punctual_trace::jobs::Decomposer::new(Config { select, ..Config::default() });
        decomposer.name(50, "my-app");
        decomposer.name(51, "irq/24-eth0");
        let mut jobs = Vec::new();
        s.events.iter().for_each(|event| decomposer.feed(event, &mut |job| jobs.push(job.clone())));
        jobs
    };
    let sorts = |select| run(select).iter().map(|job| (job.actor, job.kind)).collect::<Vec<_>>();
    let (app, served) = ((Actor::Thread(50), JobKind::Thread), (Actor::Thread(51), JobKind::IrqThread));
    assert_eq!(sorts(Select::real_time()), [served]);
    assert_eq!(sorts(Select::thread(50)), [app]);
    assert_eq!(sorts(Select { names: vec!["my-*".into()], ..Select::default() }), [app]);
    assert_eq!(sorts(Select { priorities: Some(0..=139), ..Select::default() }), [app, served]);
    let job = &run(Select::real_time())[0];
    assert_eq!(job.waker.map(|waker| waker.actor), Some(Actor::Irq(24)));
}

#[test]
fn follows_new_threads_and_priority_changes() {
    let mut s = Script::new();
    s.at(100, 0, Kind::Wakeup { task: task(60, 120), cpu: 0, new: true });
    s.switch(110, 0, Runnable, task(60, 120)).switch(150, 0, Sleeping, IDLE);
    s.wakeup(200, 0, task(60, 30), 0).switch(210, 0, Runnable, task(60, 30));
    s.switch(250, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    assert_eq!(jobs.iter().map(|job| (job.start, job.priority)).collect::<Vec<_>>(), [(210, 30)]);
    let jobs = s.jobs(Config { select: Select::thread(60), ..Config::default() });
    assert_eq!((jobs[0].released_by, jobs[0].response), (ReleasedBy::New, Bounds::Exact(50)));
}

#[test]
fn flags_jobs_touched_by_lost_events() {
    let mut s = Script::new();
    s.waking(90, 1, MIDDLE, 1).switch(95, 1, Runnable, MIDDLE);
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH);
    s.at(150, 0, Kind::Lost { count: 3 });
    s.switch(200, 0, Sleeping, IDLE);
    s.switch(300, 1, Sleeping, IDLE);
    s.waking(400, 0, HIGH, 0).switch(410, 0, Runnable, HIGH).switch(420, 0, Sleeping, IDLE);
    s.waking(500, 0, HIGH, 0).switch(510, 0, Runnable, HIGH).switch(520, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    let flaws = |tid| of(&jobs, tid).iter().map(|job| job.flaw).collect::<Vec<_>>();
    // The sleep after the gap may have been a wait, so its end may not be a release. After that
    // everything is recorded again.
    assert_eq!(flaws(7), [Some(Flaw::Lost), Some(Flaw::Lost), None]);
    assert_eq!(flaws(8), [None]);
}

#[test]
fn decomposes_nested_and_queued_marked_jobs() {
    let mut s = Script::new();
    let start = |task, released| Kind::JobStart { task, released };
    // Task 1 is due at 100; the worker is woken late. It calls task 2, and runs a queued job of
    // task 1 after that.
    s.waking(120, 0, HIGH, 0).switch(130, 0, Runnable, HIGH).at(140, 0, start(1, 100));
    s.at(200, 0, start(2, 190)).at(260, 0, Kind::JobEnd { task: 2 });
    s.at(300, 0, Kind::JobEnd { task: 1 }).at(310, 0, start(1, 250));
    // It suspends itself in the middle.
    s.switch(320, 0, Sleeping, IDLE).waking(350, 0, HIGH, 0).switch(360, 0, Runnable, HIGH);
    s.at(400, 0, Kind::JobEnd { task: 1 }).switch(420, 0, Sleeping, IDLE);
    // A wake-up without a job.
    s.waking(500, 0, HIGH, 0).switch(510, 0, Runnable, HIGH).switch(520, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config { monotonic: true, ..Config::default() });
    let times: Vec<_> = jobs.iter().map(|job| (job.task, job.jitter, job.response, job.suspended)).collect();
    let expected = [
        (Some(2), Bounds::Exact(10), Bounds::Exact(70), 0),
        (Some(1), Bounds::Exact(30), Bounds::Exact(200), 0),
        (Some(1), Bounds::Exact(60), Bounds::Exact(150), 30),
    ];
    assert_eq!(times, expected);
    assert_eq!(jobs[1].interference_causes, [cause(Actor::Task(2), 60, 1)]);
    assert_eq!(jobs[1].released_by, ReleasedBy::Mark);
}

/// The thread is woken at a real-time priority, or at an ordinary one, which selects no job.
#[test]
fn ends_nested_jobs_once_if_thread_slept_in_gap() {
    let select = Select { marked: false, ..Select::real_time() };
    let start = |task, released| Kind::JobStart { task, released };
    for priority in [HIGH.priority, 120] {
        let woken = task(HIGH.id, priority);
        let mut s = Script::new();
        s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH).at(120, 0, start(1, 90));
        s.at(150, 0, start(2, 140)).at(160, 0, Kind::Lost { count: 3 });
        s.waking(200, 1, woken, 1).switch(210, 1, Runnable, woken).at(220, 1, Kind::JobEnd { task: 1 });
        for due in [300, 400] {
            s.at(due + 5, 1, start(1, due)).at(due + 20, 1, Kind::JobEnd { task: 1 });
        }
        let jobs = s.jobs(Config { select: select.clone(), monotonic: true, ..Config::default() });
        let ends: Vec<_> = jobs.iter().map(|job| (job.task, job.end, job.complete())).collect();
        let expected =
            [(Some(2), 200, false), (Some(1), 200, false), (Some(1), 320, false), (Some(1), 420, true)];
        assert_eq!(ends, expected);
    }
}

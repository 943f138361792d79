//! SCHED_DEADLINE threads: jobs end when they yield, and throttling is distinguished from
//! displacement.

use crate::recording;

use std::sync::Arc;
use std::time::Duration;

use crate::support::{IDLE, Script, of, task};
use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
use punctual_trace::event::{Kind, Task, Tid};
use punctual_trace::jobs::{Actor, Bounds, Config, Decomposer, Job, ReleasedBy, Reservation, Select};
use punctual_trace::names::Names;
use punctual_trace::read::Trace;
use punctual_trace::record::{self, Filter, Recording};
use punctual_trace::recorded::{Recorded, Source};
use punctual_trace::stats::Watch;
use punctual_trace_report::explain;
use rustix::time::{ClockId, clock_gettime};
use test_skip::{Need, skip};

const CONTROL: Task = task(7, -1);
const ORDINARY: Task = task(50, 120);
const TIMER: u64 = 0xd1;
const RESERVED: Reservation = Reservation { runtime: 3_000, deadline: 9_000, period: 10_000 };

/// From `time` on, the running thread leaves its CPU until the timer expires.
fn leaves_until(s: &mut Script, time: u64, timer: u64, due: u64, to: Task) {
    s.at(time, 0, Kind::BudgetTimerStart { timer, expires: due }).switch(time + 5, 0, Runnable, to);
}

fn yields_until(s: &mut Script, time: u64, due: u64) {
    s.at(time - 5, 0, Kind::YieldEnter);
    leaves_until(s, time, TIMER, due, ORDINARY);
}

fn expires(s: &mut Script, time: u64, timer: u64) {
    s.at(time, 0, Kind::VectorEntry { vector: 236 });
    s.at(time + 2, 0, Kind::TimerExpire { timer, now: time + 1 });
    s.at(time + 4, 0, Kind::TimerExpired { timer }).at(time + 5, 0, Kind::VectorExit { vector: 236 });
}

/// Creates a script in which the thread has run and yields; its next period begins at 20 000.
fn first_period() -> Script {
    let mut s = Script::new();
    s.waking(9_990, 0, CONTROL, 0).switch(10_000, 0, Runnable, CONTROL);
    yields_until(&mut s, 11_000, 20_000);
    expires(&mut s, 20_010, TIMER);
    s.switch(20_020, 0, Runnable, CONTROL);
    s
}

fn jobs_with(s: &Script, config: Config) -> Vec<Job> {
    let mut decomposer = Decomposer::new(Config { monotonic: true, ..config });
    decomposer.reserve(7, RESERVED);
    let mut jobs = Vec::new();
    s.events.iter().for_each(|event| decomposer.feed(event, &mut |job| jobs.push(job.clone())));
    jobs.iter().filter(|job| job.complete()).for_each(|job| assert_eq!(job.check(), Ok(()), "{job:?}"));
    jobs
}

fn jobs(s: &Script) -> Vec<Job> {
    jobs_with(s, Config::default())
}

#[test]
fn ends_jobs_of_deadline_threads_when_they_yield() {
    let mut s = first_period();
    yields_until(&mut s, 22_000, 30_000);
    let jobs = jobs(&s);
    let [first, second] = &jobs[..] else { panic!("{jobs:?}") };
    assert_eq!((first.response, first.interference), (Bounds::Exact(1_015), Bounds::Exact(0)));
    assert_eq!((second.released_by, second.released), (ReleasedBy::Budget, Some((20_000, 20_000))));
    assert_eq!((second.jitter, second.window), (Bounds::Exact(20), Bounds::Exact(1_985)));
    assert_eq!((second.missed(), second.throttles, second.preemptions), (Some(false), 0, 0));
}

#[test]
fn distinguishes_throttling_from_displacement() {
    let mut s = first_period();
    // A tick finds that the runtime is used up. After replenishment, another thread keeps the CPU
    // for a while.
    s.at(23_000, 0, Kind::VectorEntry { vector: 236 });
    s.at(23_002, 0, Kind::BudgetTimerStart { timer: TIMER, expires: 30_000 });
    s.at(23_010, 0, Kind::VectorExit { vector: 236 }).switch(23_020, 0, Runnable, ORDINARY);
    expires(&mut s, 30_010, TIMER);
    s.switch(30_100, 0, Runnable, CONTROL);
    yields_until(&mut s, 30_500, 40_000);
    let jobs = jobs(&s);
    let job = &jobs[1];
    assert_eq!((job.throttles, job.throttled, job.preemptions), (1, 30_012 - 23_020, 0));
    let caused =
        |actor| job.interference_causes.iter().find(|cause| cause.actor == actor).map(|cause| cause.ns);
    assert_eq!(caused(Actor::Throttling), Some(job.throttled));
    assert_eq!(caused(Actor::Thread(50)), Some(30_100 - 30_015));
    assert_eq!(job.interference, Bounds::Exact(10 + 30_100 - 23_020));
    assert_eq!((job.response, job.missed()), (Bounds::Exact(10_505), Some(true)));
    let sentences = explain::job(job, &Names::new());
    assert_eq!(
        sentences[0],
        "D: missed its deadline of 9.0 µs by 1.5 µs; throttled once for 7.0 µs in all, as it had used up its runtime of 3.0 µs \
         in 10 µs."
    );
}

#[test]
fn starts_next_job_at_once_after_late_one() {
    let mut s = first_period();
    // It finishes after the end of its period, so it continues without leaving the CPU.
    s.at(31_000, 0, Kind::YieldEnter).at(31_010, 0, Kind::YieldExit);
    yields_until(&mut s, 32_000, 40_000);
    let jobs = jobs(&s);
    assert_eq!((jobs[1].response, jobs[1].missed()), (Bounds::Exact(11_010), Some(true)));
    assert_eq!(jobs[2].released, Some((30_000, 30_000)), "the end of the period before");
    assert_eq!((jobs[2].jitter, jobs[2].window), (Bounds::Exact(1_010), Bounds::Exact(995)));
}

#[test]
fn server_timer_is_not_throttling() {
    let mut s = first_period();
    // A server's timer is started while it wakes another thread, which displaces it long before the
    // expiry.
    let urgent = task(8, -1);
    s.waking(21_000, 0, ORDINARY, 1);
    s.at(21_001, 0, Kind::BudgetTimerStart { timer: 0x5e, expires: 90_000 }).wakeup(21_002, 0, ORDINARY, 1);
    s.waking(21_100, 0, urgent, 0).switch(21_110, 0, Runnable, urgent).switch(21_510, 0, Sleeping, CONTROL);
    // Another timer, which is known to be a server's only after the thread has run again.
    leaves_until(&mut s, 21_600, 0x5f, 90_000, urgent);
    s.switch(21_705, 0, Sleeping, CONTROL);
    yields_until(&mut s, 22_000, 30_000);
    let all = jobs(&s);
    let job = of(&all, 7)[1];
    assert_eq!((job.throttled, job.throttles), (0, 0));
    assert_eq!(job.interference, Bounds::Exact(400 + 100));
    assert!(job.interference_causes.iter().all(|cause| cause.actor == Actor::Thread(8)), "{job:?}");
}

#[test]
fn job_ends_are_uncertain_without_yields() {
    let mut s = first_period();
    yields_until(&mut s, 22_000, 30_000);
    let recorded = Recorded::all().without(Source::Yields);
    let jobs = jobs_with(&s, Config { recorded, ..Config::default() });
    assert_eq!(jobs.len(), 2);
    assert_eq!((jobs[0].window, jobs[0].execution), (Bounds::AtLeast(1_005), Bounds::Unknown));
    // It may be the rest of a job.
    assert_eq!((jobs[1].jitter, jobs[1].response), (Bounds::Unknown, Bounds::AtLeast(1_985)));
    assert_eq!(jobs[1].missed(), None);
}

/// Files of other recorders do not name the function at their timers' address.
#[test]
fn recognizes_timers_without_function_address() {
    let mut s = first_period();
    yields_until(&mut s, 21_000, 30_000);
    expires(&mut s, 30_010, TIMER);
    s.switch(30_020, 0, Runnable, CONTROL);
    s.at(33_000, 0, Kind::VectorEntry { vector: 236 });
    s.at(33_002, 0, Kind::BudgetTimerStart { timer: TIMER, expires: 40_000 });
    s.at(33_003, 0, Kind::TimerStart { timer: 0x71c4, expires: 34_000 });
    s.at(33_010, 0, Kind::VectorExit { vector: 236 }).switch(33_020, 0, Runnable, ORDINARY);
    expires(&mut s, 40_010, TIMER);
    s.switch(40_100, 0, Runnable, CONTROL);
    yields_until(&mut s, 40_500, 50_000);
    let named = jobs(&s);
    for event in &mut s.events {
        if let Kind::BudgetTimerStart { timer, expires } = event.kind {
            event.kind = Kind::TimerStart { timer, expires };
        }
    }
    let learned = jobs(&s);
    // The first yield shows a priority that was shown by the switch to the thread.
    assert_eq!(learned, named);
    assert_eq!((named[2].throttles, named[2].released), (1, Some((30_000, 30_000))));
}

/// As recorded by `perf sched record`: displacement is indistinguishable from the end of a job.
#[test]
fn job_ends_are_uncertain_without_timers_and_yields() {
    let mut s = first_period();
    yields_until(&mut s, 22_000, 30_000);
    let recorded = Recorded::all().without(Source::Yields).without(Source::Timers);
    let jobs = jobs_with(&s, Config { recorded, ..Config::default() });
    assert_eq!((jobs.len(), jobs[0].window), (2, Bounds::AtLeast(1_005)));
    assert_eq!((jobs[1].response, jobs[1].missed()), (Bounds::AtLeast(1_985), None));
    // With yields alone the ends of jobs are known, but not the due time of the next one.
    let recorded = Recorded::all().without(Source::Timers);
    let jobs = jobs_with(&s, Config { recorded, ..Config::default() });
    assert_eq!((jobs.len(), jobs[0].window), (2, Bounds::Exact(1_005)));
    assert_eq!((jobs[1].jitter, jobs[1].window), (Bounds::Unknown, Bounds::Exact(1_985)));
}

#[test]
fn yields_of_other_threads_do_not_end_job() {
    let other = task(9, 20);
    let mut s = Script::new();
    s.waking(100, 0, other, 0).switch(110, 0, Runnable, other);
    s.at(200, 0, Kind::YieldEnter).at(210, 0, Kind::YieldExit);
    s.at(300, 0, Kind::YieldEnter).switch(310, 0, Runnable, task(8, 20)).switch(400, 0, Sleeping, other);
    s.at(410, 0, Kind::YieldExit).switch(500, 0, Sleeping, IDLE);
    let jobs = jobs(&s);
    let job = of(&jobs, 9);
    assert_eq!((job.len(), job[0].window, job[0].interference), (1, Bounds::Exact(390), Bounds::Exact(90)));
}

/// A SCHED_DEADLINE thread on Linux 6.18: 0.4 ms of work each 6 ms with 1.5 ms of runtime, except
/// one job of 4 ms and one of 8 ms. With the names of 364 of 13 441 threads.
fn recorded() -> Trace {
    let packed = include_bytes!("../data/deadline.dat.z");
    let bytes = miniz_oxide::inflate::decompress_to_vec_zlib(packed).unwrap();
    Trace::from_bytes("deadline.dat", Arc::new(bytes)).unwrap()
}

/// Returns the jobs of a thread in a trace.
fn jobs_of(trace: &Trace, tid: Tid) -> (Vec<Job>, Watch) {
    let select = Select { priorities: Some(-1..=-1), ..Select::thread(tid) };
    let recorded = trace.recorded().unwrap();
    let mut watch = Watch::new(Config { select, recorded, monotonic: true, ..Config::default() }, 1);
    trace.reservations().for_each(|(thread, reserved)| watch.reserve(thread, reserved));
    let mut jobs = Vec::new();
    for event in trace.events().unwrap() {
        let mut keep = |job: &Job| jobs.push(job.clone());
        watch.feed(&event.unwrap(), &mut keep, &mut |_| {});
    }
    jobs.retain(|job| job.priority < 0 && job.actor == Actor::Thread(tid));
    (jobs, watch)
}

#[test]
fn reads_recorded_deadline_thread() {
    let trace = recorded();
    let (thread, reserved) = trace.reservations().next().unwrap();
    assert_eq!(reserved, Reservation { runtime: 1_500_000, deadline: 6_000_000, period: 6_000_000 });
    let (jobs, watch) = jobs_of(&trace, thread);
    assert_eq!((jobs.len(), jobs.iter().filter(|job| job.complete()).count()), (14, 14));
    for (job, next) in jobs.iter().zip(&jobs[1..]) {
        let [from, to] = [job, next].map(|job| job.released.unwrap().0);
        // The kernel's timer is a few µs off the grid.
        let periods = (to - from + 100_000) / reserved.period;
        assert!((to - from).abs_diff(periods * reserved.period) < 20_000, "{from} {to}");
        assert_eq!(periods, 1 + job.response.hi().unwrap() / reserved.period);
    }
    let throttled: Vec<_> = jobs.iter().filter(|job| job.throttles > 0).map(|job| job.throttles).collect();
    assert_eq!(throttled, [1, 2]);
    let missed = jobs.iter().filter(|job| job.missed() == Some(true)).count();
    let stats = watch.tasks().iter().find(|stats| !stats.id().ordinary).unwrap();
    assert_eq!((missed, stats.misses(), stats.throttled(), stats.reservation()), (2, 2, 2, Some(reserved)));
}

/// Becomes a deadline thread, and ends soon: each job takes a little time, and one takes more than
/// the runtime.
fn perform() -> Option<Tid> {
    let (runtime, period) = (2_000_000, 20_000_000);
    // SAFETY: an all-zero `sched_attr` is valid, because all of its members are integers.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = size_of::<libc::sched_attr>() as u32;
    attributes.sched_policy = libc::SCHED_DEADLINE as u32;
    attributes.sched_runtime = runtime;
    (attributes.sched_deadline, attributes.sched_period) = (period, period);
    // SAFETY: the kernel reads the block, which is valid until the call returns; 0 is the calling
    // thread.
    if unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } != 0 {
        return None;
    }
    for n in 0..8 {
        // On the clock of the thread's CPU time, because a host may take the CPU away.
        let consumed = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let end = consumed() + Duration::from_nanos(if n == 4 { 2 * runtime } else { runtime / 20 });
        while consumed() < end {}
        std::thread::yield_now();
    }
    Some(rustix::thread::gettid().as_raw_nonzero().get() as Tid)
}

#[test]
fn records_jobs_reservation_and_throttling_of_deadline_thread() {
    recording::enter();
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("raw");
    let filter = Filter { processes: vec![std::process::id()], ..Filter::default() };
    let config = record::Config { filter, ..record::Config::default() };
    let Some(recording) = recording::start(config, &directory) else { return };
    let Some(thread) = std::thread::spawn(perform).join().unwrap() else {
        return skip(Need::System("SCHED_DEADLINE"), "reservations of a real thread");
    };
    Recording::stop(recording).unwrap();
    let trace = Trace::open(&directory).unwrap();
    let reserved = trace.reservations().find(|(tid, _)| *tid == thread);
    let expected = Reservation { runtime: 2_000_000, deadline: 20_000_000, period: 20_000_000 };
    assert_eq!(reserved, Some((thread, expected)));
    let (jobs, watch) = jobs_of(&trace, thread);
    if !recording::whole(watch.counters()) || watch.counters().gaps > 0 {
        return;
    }
    // The first yield ends work from before it became a deadline thread, and the last job ends with
    // the thread. Regardless of the machine's load, the kernel grants no more than the runtime in a
    // period, so the long job is throttled or takes longer.
    let complete: Vec<_> = jobs.iter().filter(|job| job.complete()).collect();
    assert!(complete.iter().any(|job| job.released_by == ReleasedBy::Budget), "{jobs:?}");
    if complete.len() == 8 {
        assert!(complete.iter().any(|job| job.throttled > 0 || job.missed() == Some(true)), "{jobs:?}");
    }
}

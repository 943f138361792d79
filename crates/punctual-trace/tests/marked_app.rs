//! A Punctual app that marks its jobs, recorded and decomposed: the jobs equal those in the app's
//! own report.

#[path = "it/recording/mod.rs"]
mod recording;

use std::collections::BTreeMap;

use punctual::Config as AppConfig;
use punctual_trace::jobs::{Actor, Bounds, Config, Decomposer, Job, ReleasedBy, Select};
use punctual_trace::read::Trace;
use punctual_trace::record;
use test_skip::{Need, skip};

/// In ns.
const PERIOD: u64 = 4_000_000;
const BEATS: u64 = 25;
/// The trace's clock may be read while the kernel corrects it.
const CLOCK: u64 = 1_000;

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;

    use super::BEATS;

    #[shared]
    struct Shared {
        sum: u64,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { sum: 0 }, Local {})
    }

    #[task(priority = 1, period = 4.millis(), deadline = 4.millis(), shared = [sum], local = [beats: u64 = 0])]
    fn beat(mut cx: beat::Context) {
        queued::spawn().unwrap();
        called::spawn().unwrap();
        punctual::spend(100.micros());
        // Delayed until the lock is released.
        cx.shared.sum.lock(|sum| {
            let _ = held::spawn();
            *sum += 1;
            punctual::spend(50.micros());
        });
        *cx.local.beats += 1;
        if *cx.local.beats == BEATS {
            punctual::shutdown();
        }
    }

    #[task(priority = 1, capacity = 4)]
    fn queued(_: queued::Context) {
        punctual::spend(20.micros());
    }

    #[task(priority = 2)]
    fn called(_: called::Context) {
        punctual::spend(150.micros());
        inner::spawn().unwrap();
    }

    #[task(priority = 3)]
    fn inner(_: inner::Context) {
        punctual::spend(30.micros());
    }

    #[task(priority = 4, shared = [sum])]
    fn held(mut cx: held::Context) {
        cx.shared.sum.lock(|sum| *sum += 1);
    }
}

/// The kernel ends this process if one of its real-time threads runs away.
fn no_runaways() {
    let limit = libc::rlimit { rlim_cur: 3_000_000, rlim_max: 4_000_000 };
    // SAFETY: `limit` is a valid `rlimit`.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &limit) }, 0);
}

#[test]
fn agrees_with_report_of_app() {
    no_runaways();
    // Kernel 6.18 occasionally omits a switch. The job it belongs to is flawed or has bounds.
    let complete = (0..5).any(|_| recorded_and_compared());
    assert!(complete, "of five recordings none is complete");
}

/// Returns true if no job is flawed; then they have been compared.
fn recorded_and_compared() -> bool {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("raw");
    let Some(recording) = recording::start(record::Config::default(), &directory) else { return true };
    // SAFETY: this test is the only one of its process, and no other thread reads the environment
    // yet.
    unsafe { std::env::set_var("PUNCTUAL_TRACE", recording.for_apps()) };
    let report = app::run(AppConfig::new()).unwrap();
    let real_time = report.settings.threads.iter().any(|thread| thread.policy == "SCHED_FIFO");
    let own: Vec<u32> = report.settings.threads.iter().map(|thread| thread.kernel_thread).collect();
    eprintln!("{report}");
    let summary = recording.stop().unwrap();
    assert!(report.settings.notes.iter().any(|note| note.contains("each job is marked")));
    assert!(summary.losses.iter().all(|loss| loss.lost == 0), "{:?}", summary.losses);

    let trace = Trace::open(&directory).unwrap();
    let select = Select { tids: own, ..Select::default() };
    let config = Config { select, monotonic: trace.clock() == "mono", ..Config::default() };
    let (mut decomposer, mut jobs) = (Decomposer::new(config), Vec::<Job>::new());
    let mut events = trace.events().unwrap();
    for event in events.by_ref() {
        decomposer.feed(&event.unwrap(), &mut |job| jobs.push(job.clone()));
    }
    decomposer.finish(&mut |job| jobs.push(job.clone()));
    if !recording::whole(decomposer.counters()) {
        return true;
    }
    let mut by_name = BTreeMap::<&str, Vec<&Job>>::new();
    for job in jobs.iter().filter(|job| job.task.is_some()) {
        if let Some(flaw) = job.flaw {
            eprintln!("{flaw:?} in the job at {}", job.start);
            return false;
        }
        if job.bounded_switches > 0 {
            eprintln!("a switch is missing at the job at {}", job.start);
            return false;
        }
        assert_eq!(job.check(), Ok(()), "{job:?}");
        let name = events.tasks().get(job.task.unwrap()).expect("all tasks are named");
        by_name.entry(name).or_default().push(job);
    }
    let most = |jobs: &[&Job], term: fn(&Job) -> Bounds| {
        let exact = jobs.iter().map(|&job| match term(job) {
            Bounds::Exact(ns) => ns,
            other => panic!("{other:?}: {job:?}"),
        });
        exact.max().unwrap()
    };
    for task in &report.tasks {
        let jobs = &by_name[task.name];
        assert_eq!(jobs.len() as u64, task.jobs, "{}", task.name);
        assert!(jobs.iter().all(|job| job.released_by == ReleasedBy::Mark), "{}", task.name);
        // The app reads the clock between the two marks of a job, and calls are released when they
        // start.
        let (jitter, response) = (most(jobs, |job| job.jitter), most(jobs, |job| job.response));
        eprintln!(
            "{}: J {jitter} and {}, R {response} and {}",
            task.name, task.jitter.max, task.response.max
        );
        assert!(response + CLOCK >= task.response.max, "{}", task.name);
        assert!(jitter <= task.jitter.max + CLOCK || task.name != "beat", "{}", task.name);
    }
    let (beats, called) = (&by_name["beat"], &by_name["called"]);
    let released = |job: &Job| job.released.unwrap().0;
    assert!(beats.windows(2).all(|two| (released(two[1]) - released(two[0])).is_multiple_of(PERIOD)));

    // Nesting and durations of the calls.
    if real_time {
        let task = |name: &str| Actor::Task(by_name[name][0].task.unwrap());
        for (beat, called) in beats.iter().zip(called) {
            let caused =
                |job: &Job, actor| job.interference_causes.iter().find(|cause| cause.actor == actor).copied();
            let inner =
                by_name["inner"].iter().find(|job| job.start > called.start && job.end < called.end).unwrap();
            assert_eq!(caused(beat, task("called")).unwrap().ns, called.end - called.start);
            assert_eq!(caused(called, task("inner")).unwrap().ns, inner.end - inner.start);
            assert_eq!(caused(beat, task("inner")), None);
        }
    } else {
        skip(Need::RealTime, "jobs that are called");
    }
    true
}

//! One round: a run of the app under load, and the balance afterwards.

use std::os::unix::net::UnixDatagram;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use punctual::{Config, Report};

use crate::checks::violation;
use crate::kinds::kind;
use crate::ledger::{self, Count};
use crate::load::{self, OVER, SPAWNING, UP};
use crate::tasks::{NEWS, RUNS, WAITED};
use crate::threads;

/// Parameters of a round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) length: Duration,
    /// True if workers are moved between CPUs.
    pub(crate) migrate: bool,
    /// True if the app is stopped under full load, rather than after it has come to rest.
    pub(crate) abrupt: bool,
}

/// Time in which all runnable jobs have run even on a slow machine.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);

/// Time in which the app stops on any machine: no job takes longer than a few milliseconds.
const END: Duration = Duration::from_secs(60);

/// Runs the app once and checks everything that can be checked afterwards.
pub(crate) fn play(plan: Plan) -> (Report, Count) {
    let (inbox, outbox) = UnixDatagram::pair().expect("sockets can be made");
    inbox.set_nonblocking(true).and(outbox.set_nonblocking(true)).expect("they can be made not to block");
    SPAWNING.store(true, Ordering::Relaxed);
    OVER.store(false, Ordering::Relaxed);
    UP.store(false, Ordering::Relaxed);
    let report = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| load::spawn_from_outside(&outbox));
        }
        if plan.migrate {
            scope.spawn(threads::migrate);
        }
        scope.spawn(|| conduct(plan));
        let report = (kind().run)(Config::new(), inbox).expect("the app starts");
        load::no_slot_is_occupied();
        OVER.store(true, Ordering::Relaxed);
        report
    });
    threads::all_threads_ended();
    let count = ledger::close();
    balance(&report, count, plan.abrupt);
    (report, count)
}

/// Lets the load run for a while, and ends the run.
fn conduct(plan: Plan) {
    // On a slow or busy machine, starting takes longer than the round.
    while !UP.load(Ordering::Acquire) {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(plan.length);
    if !plan.abrupt {
        SPAWNING.store(false, Ordering::Relaxed);
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while ledger::open() > 0 {
            if Instant::now() > deadline {
                let (open, some) = (ledger::open(), ledger::some_open());
                violation(&format!("{open} jobs are never run, among them {some:?}"));
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        all_are_woken(deadline);
    }
    punctual::shutdown();
    // Before the app's own time limit, which would end the process without an explanation.
    let deadline = Instant::now() + END;
    while !OVER.load(Ordering::Relaxed) {
        if Instant::now() > deadline {
            threads::give_up("the app does not end");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Ensures that no async task waits forever for a past event.
fn all_are_woken(deadline: Instant) {
    let mut first_report = None;
    loop {
        // In this order: an instance that ends has been started.
        let ended = WAITED.load(Ordering::Acquire);
        let started = RUNS[3].load(Ordering::Acquire);
        if ended == started {
            return;
        }
        // Once for each instance, so that a lost wake is not hidden.
        if first_report != Some(started) {
            NEWS.writer().unwrap().write(1);
            first_report = Some(started);
        }
        if Instant::now() > deadline {
            return violation(&format!("of {started} instances of the async task {ended} have been woken"));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Compares the report with the counts.
fn balance(report: &Report, count: Count, abrupt: bool) {
    let messages = ["low", "mixed", "other", "timed", "high", "top"];
    let jobs = |name: &str| report.task(name).map_or(0, |task| task.jobs);
    // In the report every poll of the async task is a job.
    let started = RUNS[3].swap(0, Ordering::Relaxed);
    WAITED.store(0, Ordering::Relaxed);
    let reported = messages.iter().map(|name| jobs(name)).sum::<u64>() + started;
    if reported != count.executed {
        violation(&format!("the report has {reported} jobs of {count:?}"));
    }
    for (name, runs) in ["tick", "fast", "edge"].into_iter().zip(&RUNS) {
        let runs = runs.swap(0, Ordering::Relaxed);
        if jobs(name) != runs {
            violation(&format!("the report has {} jobs of `{name}`, which ran {runs} times", jobs(name)));
        }
    }
    // A waiting job of `edge` and a waiting poll of `waits` have no entry in the ledger.
    if !(count.dropped..=count.dropped + 2).contains(&report.dropped_jobs) {
        violation(&format!("the report has {} dropped jobs of {count:?}", report.dropped_jobs));
    }
    if !abrupt && count.dropped > 0 {
        violation(&format!("jobs were dropped after the app had come to rest: {count:?}"));
    }
}

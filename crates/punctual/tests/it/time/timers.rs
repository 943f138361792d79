//! Timed jobs: their order, cancelling and moving them, and preemption by them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

#[punctual::app(main = false)]
mod app {
    use crate::log::Log;
    use punctual::Instant;
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        log: Log,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, log: Log, script: fn()) -> (Shared, Local) {
        script();
        (Shared { log }, Local {})
    }

    #[task(priority = 1, capacity = 8, shared = [&log])]
    fn low(cx: low::Context, what: &'static str, ms: u64) {
        cx.shared.log.note(what);
        punctual::spend(ms.millis());
        cx.shared.log.note("low ends");
    }

    #[task(priority = 2, capacity = 8, shared = [&log])]
    fn high(cx: high::Context, what: &'static str) {
        cx.shared.log.note(what);
    }

    #[task(priority = 3, capacity = 8)]
    fn act(_: act::Context, what: fn()) {
        what();
    }

    pub(super) fn at(ms: u64) -> Instant {
        Instant::from_ticks(0) + ms.millis()
    }
}

fn run(script: fn()) -> (Vec<(u64, &'static str)>, Report) {
    let log = Log::default();
    let report = app::run(Config::new().virtual_time(), log.clone(), script).unwrap();
    assert_eq!(report.outcome, Outcome::Quiescent);
    (log.take(), report)
}

#[test]
fn simultaneous_jobs_run_in_arming_order() {
    let (log, _) = run(|| {
        app::high::spawn_at(app::at(5), "b").unwrap();
        app::high::spawn_at(app::at(3), "a").unwrap();
        for name in ["c", "d", "e"] {
            app::high::spawn_at(app::at(5), name).unwrap();
        }
    });
    assert_eq!(log, [(3, "a"), (5, "b"), (5, "c"), (5, "d"), (5, "e")]);
}

#[test]
fn rescheduled_job_runs_last_at_its_time() {
    let (log, _) = run(|| {
        let moved = app::high::spawn_at(app::at(1), "moved").unwrap();
        app::high::spawn_at(app::at(5), "there").unwrap();
        moved.reschedule_at(app::at(5)).unwrap();
    });
    assert_eq!(log, [(5, "there"), (5, "moved")]);
}

#[test]
fn past_instant_is_due_at_once() {
    let (log, report) = run(|| {
        let act = || {
            app::low::spawn_at(app::at(2), "past", 0).unwrap();
            app::high::spawn("present").unwrap();
        };
        app::act::spawn_at(app::at(10), act).unwrap();
    });
    assert_eq!(log, [(10, "present"), (10, "past"), (10, "low ends")]);
    // The nominal release counts, so the job was 8 ms late.
    assert_eq!(maxima(&report, "low"), [8, 8, 0]);
}

#[test]
fn cancel_returns_arguments_only_before_release() {
    let (log, report) = run(|| {
        let cancelled = app::low::spawn_at(app::at(5), "never", 7).unwrap();
        let released = app::high::spawn_at(app::at(5), "released").unwrap();
        let moved = app::high::spawn_at(app::at(5), "moved").unwrap();
        assert_eq!(cancelled.cancel(), Ok(("never", 7)));
        let moved = moved.reschedule_after(Duration::from_millis(20)).unwrap();
        static HANDLES: Mutex<Vec<app::high::SpawnHandle>> = Mutex::new(Vec::new());
        HANDLES.lock().unwrap().extend([released, moved]);
        let act = || {
            let mut handles = HANDLES.lock().unwrap();
            let (moved, released) = (handles.pop().unwrap(), handles.pop().unwrap());
            assert!(released.reschedule_after(Duration::from_millis(1)).is_err(), "it has been released");
            // Relative to now, which is 10 ms.
            let moved = moved.reschedule_after(Duration::from_millis(3)).unwrap();
            handles.push(moved);
        };
        app::act::spawn_at(app::at(10), act).unwrap();
        let act = || assert_eq!(HANDLES.lock().unwrap().pop().unwrap().cancel(), Err(punctual::TooLate));
        app::act::spawn_at(app::at(14), act).unwrap();
    });
    assert_eq!(log, [(5, "released"), (13, "moved")]);
    assert_eq!((report.task("low").unwrap().jobs, report.task("high").unwrap().jobs), (0, 2));
}

#[test]
fn timer_preempts_execution() {
    let (log, report) = run(|| {
        app::low::spawn("low", 10).unwrap();
        app::high::spawn_at(app::at(4), "high").unwrap();
        // At the same level, so it waits.
        app::low::spawn_at(app::at(5), "next", 1).unwrap();
        app::act::spawn_at(app::at(6), || punctual::spend(Duration::from_millis(2))).unwrap();
    });
    let expected = [(0, "low"), (4, "high"), (12, "low ends"), (12, "next"), (13, "low ends")];
    assert_eq!(log, expected);
    // Preemption counts not as execution, but as response.
    assert_eq!(maxima(&report, "low"), [7, 12, 10]);
    assert_eq!(maxima(&report, "act"), [0, 2, 2]);
}

#[test]
fn job_released_at_zero_can_be_late() {
    let (log, report) = run(|| {
        app::low::spawn("low", 3).unwrap();
        app::act::spawn(|| punctual::spend(Duration::from_millis(4))).unwrap();
    });
    assert_eq!(log, [(4, "low"), (7, "low ends")]);
    assert_eq!(maxima(&report, "low"), [4, 7, 3]);
}

#[punctual::app(main = false)]
mod dropped {
    use super::Canceling;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let armed = never::spawn_at(super::app::at(5), Canceling).unwrap();
        super::HANDLE.lock().unwrap().replace(armed);
        punctual::shutdown();
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    fn never(_: never::Context, _: Canceling) {}
}

static HANDLE: Mutex<Option<dropped::never::SpawnHandle>> = Mutex::new(None);
static DROPPED: AtomicU32 = AtomicU32::new(0);

/// A message that cancels its own job when it is dropped.
#[derive(Debug)]
struct Canceling;

impl Drop for Canceling {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
        let handle = HANDLE.lock().unwrap().take();
        assert!(handle.is_none_or(|handle| handle.cancel().is_err()));
    }
}

#[test]
fn message_dropped_at_the_end_is_not_canceled() {
    let report = dropped::run(Config::new().virtual_time()).unwrap();
    assert_eq!((report.dropped_jobs, DROPPED.load(Ordering::Relaxed)), (1, 1));
}

//! Jobs that end at the very instant of a release.

use punctual::Report;

use crate::log::Log;
use crate::time::until_ms;

#[punctual::app(main = false)]
mod app {
    use crate::log::Log;
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        log: Log,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, log: Log, spawn: fn()) -> (Shared, Local) {
        spawn();
        (Shared { log }, Local {})
    }

    #[task(priority = 3, period = 1.secs(), offset = 5.millis(), shared = [&log])]
    fn high(cx: high::Context) {
        cx.shared.log.note("high");
    }

    #[task(priority = 2, shared = [&log])]
    fn low(cx: low::Context) {
        punctual::spend(5.millis());
        cx.shared.log.note("low ends");
    }

    #[task(priority = 1, shared = [&log])]
    fn lowest(cx: lowest::Context) {
        cx.shared.log.note("lowest");
    }

    /// Executes in two parts, the first of which ends when `high` is released.
    #[task(priority = 2, shared = [&log])]
    fn parts(cx: parts::Context) {
        punctual::spend(5.millis());
        punctual::spend(2.millis());
        cx.shared.log.note("parts end");
    }
}

fn run(spawn: fn()) -> (Vec<(u64, &'static str)>, Report) {
    let log = Log::default();
    let report = app::run(until_ms(10), log.clone(), spawn).unwrap();
    (log.take(), report)
}

/// As in response-time analysis: a release at the end of a job does not interfere with it, but
/// precedes lower jobs.
#[test]
fn job_ends_before_simultaneous_higher_release() {
    let (log, report) = run(|| {
        app::low::spawn().unwrap();
        app::lowest::spawn().unwrap();
    });
    assert_eq!(log, [(5, "low ends"), (5, "high"), (5, "lowest")]);
    assert_eq!(report.task("low").unwrap().response.max, 5_000_000);
}

#[test]
fn preempts_running_job_at_release_instant() {
    let (log, report) = run(|| app::parts::spawn().unwrap());
    assert_eq!(log, [(5, "high"), (7, "parts end")]);
    assert_eq!(report.task("high").unwrap().response.max, 0);
}

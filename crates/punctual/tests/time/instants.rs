//! Jobs that end at the very instant of a release.

use punctual::Config;

use crate::log::Log;

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
    fn init(_: init::Context, log: Log) -> (Shared, Local) {
        low::spawn().unwrap();
        lowest::spawn().unwrap();
        (Shared { log }, Local {})
    }

    #[task(priority = 3, period = 5.millis(), offset = 5.millis(), shared = [&log])]
    fn high(cx: high::Context) {
        cx.shared.log.note("high");
        punctual::shutdown();
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
}

/// As in response-time analysis: a release at the end of a job does not interfere with it, but comes before what is below.
#[test]
fn a_job_ends_before_a_higher_one_that_is_released_at_that_instant_runs() {
    let log = Log::default();
    let report = app::run(Config::new().virtual_time(), log.clone()).unwrap();
    assert_eq!(log.take(), [(5, "low ends"), (5, "high"), (5, "lowest")]);
    assert_eq!(report.task("low").unwrap().response.max, 5_000_000);
}

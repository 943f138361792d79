//! A polling partition in virtual time: it checks for releases only between jobs.

use punctual::{Config, Duration};

use crate::log::Log;

#[punctual::app(main = false, partitions = [fast(poll), slow])]
mod app {
    use crate::log::Log;
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        log: Log,
        value: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, log: Log) -> (Shared, Local) {
        low::spawn().unwrap();
        remote::spawn_at(punctual::Instant::from_ticks(1_000_000)).unwrap();
        (Shared { log, value: 0 }, Local {})
    }

    /// Its lock raises the level, so that the unlock is the point at which a non-polling partition
    /// would serve.
    #[task(core = fast, priority = 1, shared = [&log, value])]
    fn low(mut cx: low::Context) {
        cx.shared.log.note("low");
        cx.shared.value.lock(|_| punctual::spend(2.millis()));
        cx.shared.log.note("unlocked");
        punctual::spend(2.millis());
        cx.shared.log.note("low ends");
    }

    #[task(core = fast, priority = 2, shared = [&log, value])]
    fn high(cx: high::Context) {
        cx.shared.log.note("high");
    }

    #[task(core = slow, priority = 1)]
    fn remote(_: remote::Context) {
        high::spawn().unwrap();
    }
}

#[test]
fn serves_remote_spawns_after_job_not_after_lock() {
    let log = Log::default();
    let report = app::run(Config::new().virtual_time(), log.clone()).unwrap();
    assert_eq!(log.take(), [(0, "low"), (2, "unlocked"), (4, "low ends"), (4, "high")]);
    assert_eq!(report.task("high").unwrap().response.max, Duration::from_millis(3).as_ticks());
}

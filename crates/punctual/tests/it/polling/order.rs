//! The order of jobs: by level, at the boundaries between jobs, and in virtual time exactly.

use punctual::Config;

use crate::log::Log;

/// `low` takes 10 ms; `high` is released by the clock in the middle of it, and by another
/// partition.
#[punctual::app(partitions = [other, fast(poll)], main = false)]
mod app {
    use punctual::prelude::*;

    use super::Log;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        a: Log,
        b: Log,
        c: Log,
        d: Log,
    }

    #[init]
    fn init(_: init::Context, log: Log) -> (Shared, Local) {
        low::spawn(1).unwrap();
        low::spawn(2).unwrap();
        low::spawn(3).unwrap();
        from_elsewhere::spawn_after(12.millis()).unwrap();
        (Shared {}, Local { a: log.clone(), b: log.clone(), c: log.clone(), d: log })
    }

    #[task(core = fast, priority = 1, capacity = 3, execution = 10.millis(), local = [a])]
    fn low(cx: low::Context, n: u32) {
        cx.local.a.note(["", "low 1", "low 2", "low 3"][n as usize]);
        if n == 1 {
            middle::spawn().unwrap();
            cx.local.a.note("low 1 goes on");
        }
    }

    /// Spawned by a job below it: a call, as on other executors.
    #[task(core = fast, priority = 2, local = [b])]
    fn middle(cx: middle::Context) {
        cx.local.b.note("middle");
    }

    #[task(core = fast, priority = 3, period = 1.secs(), offset = 4.millis(), local = [c])]
    fn high(cx: high::Context) {
        cx.local.c.note("high");
    }

    #[task(core = other)]
    fn from_elsewhere(_: from_elsewhere::Context) {
        highest::spawn().unwrap();
    }

    #[task(core = fast, priority = 4, local = [d])]
    fn highest(cx: highest::Context) {
        cx.local.d.note("highest");
    }
}

#[test]
fn only_spawned_jobs_preempt_job() {
    let log = Log::default();
    let until = punctual::Duration::from_millis(100);
    app::run(Config::new().virtual_time().until(until), log.clone())
        .expect("virtual time has no requirements");
    let expected = [
        (0, "low 1"),
        (0, "middle"),
        (0, "low 1 goes on"),
        (10, "high"),
        (10, "low 2"),
        (20, "highest"),
        (20, "low 3"),
    ];
    assert_eq!(log.take(), expected);
}

/// A polling partition in virtual time: it checks for releases only between jobs.
mod after_job {
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

        /// Its lock raises the level, so that the unlock is the point at which a non-polling
        /// partition would serve.
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
}

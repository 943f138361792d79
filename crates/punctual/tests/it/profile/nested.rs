//! Nested jobs: calls, releases by the clock, locks, and polls of async tasks.

use punctual::{Config, Duration};

use crate::profile::{File, assert_has};

#[punctual::app(main = false, profile)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        data: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { data: 0 }, Local {})
    }

    /// From 0 to 21 ms; `high` is released at 5 ms and waits for the critical section, which ends
    /// at 7 ms.
    #[task(priority = 1, period = 50.millis(), deadline = 20.millis(), shared = [data])]
    fn low(mut cx: low::Context) {
        punctual::spend(3.millis());
        cx.shared.data.lock(|_| punctual::spend(4.millis()));
        // Two calls.
        mid::spawn(1).unwrap();
        mid::spawn(2).unwrap();
        punctual::spend(6.millis());
    }

    #[task(priority = 2)]
    fn mid(_: mid::Context, _number: u32) {
        punctual::spend(3.millis());
        // Neither a job that spawned nothing nor a timed spawn is counted.
        if punctual::now() > punctual::Instant::from_ticks(0) + 50.millis() {
            last::spawn_after(1.millis()).ok();
        }
    }

    #[task(priority = 3, period = 20.millis(), offset = 5.millis(), shared = [data])]
    fn high(mut cx: high::Context) {
        cx.shared.data.lock(|_| punctual::spend(1.millis()));
        cx.shared.data.lock(|_| ());
        punctual::spend(1.millis());
    }

    #[task(priority = 1)]
    fn last(_: last::Context) {}
}

/// The complete profile, to the nanosecond.
const EXPECTED: &str = include_str!("nested.json");

#[test]
fn nested_jobs_count_only_their_own_execution() {
    let file = File::new("nested");
    let config = Config::new().virtual_time().until(Duration::from_millis(100)).profile(file.path());
    let report = app::run(config).unwrap();
    assert_eq!(file.text(), EXPECTED);
    // The report shows the same, if it includes measurements.
    let low = report.task("low").unwrap();
    let known = (low.execution.max, low.response.max);
    assert_eq!(known, if low.measured { (13_000_000, 21_000_000) } else { (0, 0) });
}

#[cfg(feature = "async")]
mod asynchronous {
    use super::*;

    #[punctual::app(main = false, profile)]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            data: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            starts::spawn().unwrap();
            (Shared { data: 0 }, Local {})
        }

        #[task(priority = 1)]
        fn starts(_: starts::Context) {
            waits::spawn().unwrap();
            punctual::spend(10.millis());
        }

        #[task(priority = 2, shared = [data])]
        async fn waits(mut cx: waits::Context) {
            punctual::spend(2.millis());
            punctual::delay(4.millis()).await;
            cx.shared.data.lock(|_| punctual::spend(3.millis()));
        }

        #[task(priority = 3, period = 1.secs(), offset = 7.millis(), shared = [data])]
        fn above(mut cx: above::Context) {
            cx.shared.data.lock(|_| punctual::spend(1.millis()));
        }
    }

    #[test]
    fn polls_are_jobs_of_async_task() {
        let file = File::new("async");
        let config = Config::new().virtual_time().until(Duration::from_millis(20)).profile(file.path());
        app::run(config).unwrap();
        // Polled from 0 to 2 ms and from 6 to 10 ms, including 3 ms in a critical section that
        // `above` waits for and runs after.
        let polls = [
            "\"jobs\": 2, \"execution_max_ns\": 3000000, \"execution_min_ns\": 2000000, \"response_max_ns\": 4000000",
            "\"inter_arrival\": [{ \"releases\": 2, \"least_ns\": 6000000 }]",
            "\"holds\": [{ \"resource\": \"data\", \"longest_ns\": 3000000, \"most_per_job\": 1, \"nested\": false }]",
        ];
        assert_has(&file.task("waits"), &polls);
        assert_has(&file.task("above"), &["\"response_max_ns\": 3000000, \"jitter_max_ns\": 2000000"]);
        // 10 ms, with 2 + 3 + 1 ms of the others inside.
        let caller = [
            "\"execution_max_ns\": 10000000",
            "\"response_max_ns\": 16000000",
            "\"spawns\": [{ \"task\": \"waits\", \"most_per_job\": 1, \"earliest_ns\": 0, \"in_section\": false }]",
        ];
        assert_has(&file.task("starts"), &caller);
    }
}

mod without_the_key {
    use super::*;

    #[punctual::app(main = false, monitor = false)]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {
            data: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { data: 0 }, Local {})
        }

        #[task(period = 10.millis(), shared = [data])]
        fn low(mut cx: low::Context) {
            high::spawn().unwrap();
            cx.shared.data.lock(|_| punctual::spend(1.millis()));
        }

        #[task(priority = 2, shared = [data], execution = 2.millis())]
        fn high(_: high::Context) {}
    }

    #[test]
    fn jobs_are_measured_without_monitoring_and_locks_and_spawns_are_not_known() {
        let file = File::new("without");
        let config = Config::new().virtual_time().until(Duration::from_millis(20)).profile(file.path());
        app::run(config).unwrap();
        let low = [
            "\"jobs\": 2, \"execution_max_ns\": 1000000, \"execution_min_ns\": 1000000, \"response_max_ns\": 3000000",
            "\"spawns\": null, \"spawned_by_no_job\": null, \"spawns_most_per_job\": null, \"holds\": null",
        ];
        assert_has(&file.task("low"), &low);
        assert_has(&file.task("high"), &["\"jobs\": 2, \"execution_max_ns\": 2000000"]);
    }

    #[test]
    fn next_run_without_profile_is_not_profiled() {
        let file = File::new("after");
        let config = || Config::new().virtual_time().until(Duration::from_millis(20));
        app::run(config().profile(file.path())).unwrap();
        let written = file.text();
        std::fs::remove_file(file.path()).unwrap();
        app::run(config()).unwrap();
        assert!(!file.path().exists());
        app::run(config().profile(file.path())).unwrap();
        assert_eq!(file.text(), written, "nothing is left of the run before");
    }
}

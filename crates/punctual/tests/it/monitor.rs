//! Reported measurements of jobs that really ran: self-suspensions, and consistent totals.
//!
//! No figure here depends on the speed of the machine.
#![cfg(feature = "monitoring")]

use punctual::Config;
use punctual::report::TaskReport;

/// Number of jobs of each kind.
const JOBS: u64 = 20;

mod suspension {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use std::thread::sleep;
        use std::time::Duration;

        use punctual::prelude::*;

        use crate::monitor::JOBS;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            conduct::spawn().unwrap();
            (Shared {}, Local {})
        }

        #[task(priority = 1, local = [rounds: u64 = 0])]
        fn conduct(cx: conduct::Context) {
            asleep::spawn().unwrap();
            busy::spawn().unwrap();
            caller::spawn().unwrap();
            *cx.local.rounds += 1;
            if *cx.local.rounds < JOBS {
                conduct::spawn().unwrap();
            } else {
                punctual::shutdown();
            }
        }

        #[task(priority = 2)]
        fn asleep(_: asleep::Context) {
            sleep(Duration::from_millis(1));
        }

        #[task(priority = 2)]
        fn busy(_: busy::Context) {
            punctual::spend(200.micros());
        }

        /// Does not sleep itself. The job that it spawns does, on the same stack if permitted.
        #[task(priority = 3)]
        fn caller(_: caller::Context) {
            punctual::spend(50.micros());
            called::spawn().unwrap();
        }

        #[task(priority = 4)]
        fn called(_: called::Context) {
            sleep(Duration::from_micros(100));
        }
    }

    #[test]
    fn distinguishes_sleeping_from_computing_jobs() {
        let _alone = crate::alone();
        let report = app::run(Config::new()).expect("the app starts");
        let suspended = |name: &str| {
            let task = report.task(name).expect("the report has every task");
            assert_eq!(task.jobs, JOBS, "{name}");
            task.suspended
        };
        // If the machine stalls until the time is up, no thread sleeps; but not every time.
        assert!(suspended("asleep") > JOBS / 2, "{}", suspended("asleep"));
        assert!(suspended("called") > JOBS / 2, "{}", suspended("called"));
        // The kernel may make any thread wait, for example for a page, but not every time.
        assert!(suspended("busy") < JOBS / 2, "{}", suspended("busy"));
        assert!(suspended("caller") < JOBS / 2, "{}", suspended("caller"));
        assert!(report.to_string().contains("suspended  "), "{report}");
        time_asleep_is_not_execution(report.task("asleep").expect("the report has every task"));
    }

    /// C of a job that sleeps for 1 ms is its CPU time, a small part of R, even on a busy machine.
    fn time_asleep_is_not_execution(asleep: &TaskReport) {
        assert!(asleep.response.p50 >= Some(1_000_000), "{asleep:?}");
        assert!(asleep.suspension_max >= 500_000, "{asleep:?}");
        assert!(asleep.execution.p50.is_some_and(|p50| p50 < 500_000), "{asleep:?}");
    }

    #[test]
    fn every_quantity_adds_up() {
        let _alone = crate::alone();
        let report = totals::app::run(Config::new()).expect("the app starts");
        assert_eq!((report.app, report.virtual_time, report.dropped_jobs), ("app", false, 0));
        assert!(report.tasks.is_sorted_by(|above, below| above.level >= below.level), "{report}");
        for (name, jobs) in [("each", JOBS), ("last", 1)] {
            let task = report.task(name).expect("the report has every task");
            assert_eq!(task.jobs, jobs, "{name}");
            adds_up(task);
        }
        let tick = report.task("tick").expect("the report has every task");
        assert!(tick.jobs >= 3);
        assert_eq!(tick.period.map(|period| period.as_micros()), Some(1_000));
        adds_up(tick);
        // Each thread that runs tasks, and idle.
        let threads: Vec<_> = report.settings.threads.iter().map(|thread| thread.thread.as_str()).collect();
        assert_eq!(threads, ["level 3", "level 2", "level 1", "idle"]);
    }

    fn adds_up(task: &TaskReport) {
        for quantity in [&task.jitter, &task.response, &task.execution] {
            assert_eq!(quantity.buckets.iter().map(|bucket| bucket.1).sum::<u64>(), task.jobs, "{task:?}");
            assert!(quantity.p50 <= quantity.p999 && quantity.p999 <= Some(quantity.max), "{task:?}");
            assert!(quantity.mean <= quantity.max as f64, "{task:?}");
        }
        assert!(task.response.max >= task.jitter.max.max(task.execution.max), "{task:?}");
        assert!(task.execution.max > 0, "{task:?}");
    }
}

mod totals {
    #[punctual::app(main = false)]
    pub(super) mod app {
        use punctual::prelude::*;

        use crate::monitor::JOBS;

        #[shared]
        struct Shared {
            ticks: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (0..JOBS).for_each(|_| each::spawn().unwrap());
            (Shared { ticks: 0 }, Local {})
        }

        #[task(priority = 1, capacity = 20)]
        fn each(_: each::Context) {
            punctual::spend(20.micros());
        }

        #[task(priority = 2)]
        fn last(_: last::Context) {
            punctual::spend(20.micros());
            punctual::shutdown();
        }

        #[task(priority = 3, period = 1.millis(), shared = [ticks])]
        fn tick(mut cx: tick::Context) {
            let ticks = cx.shared.ticks.lock(|ticks| {
                *ticks += 1;
                *ticks
            });
            if ticks == 3 {
                last::spawn().unwrap();
            }
        }
    }
}

mod silence {
    use super::*;

    #[punctual::app(main = false, monitor = false)]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            message::spawn().unwrap();
            (Shared {}, Local {})
        }

        #[task(priority = 1, deadline = 1.millis())]
        fn message(_: message::Context) {
            punctual::spend(2.millis());
        }

        #[task(priority = 2, period = 10.millis(), local = [jobs: u32 = 0])]
        fn sample(cx: sample::Context) {
            *cx.local.jobs += 1;
            // Only the first is still running at the next release.
            punctual::spend(if *cx.local.jobs == 1 { 12.millis() } else { 1.millis() });
            if *cx.local.jobs == 3 {
                punctual::shutdown();
            }
        }
    }

    #[test]
    fn counts_overruns_without_monitor() {
        let report = app::run(Config::new().virtual_time()).expect("nothing can be missing");
        assert_eq!(report.tasks.len(), 2);
        for task in &report.tasks {
            let figures = (task.jobs, task.misses, task.suspended, task.response.max);
            assert_eq!((task.measured, figures), (false, (0, 0, 0, 0)), "{task:?}");
            assert!(task.jitter.buckets.is_empty() && task.execution.buckets.is_empty(), "{task:?}");
        }
        assert_eq!(report.task("sample").map(|task| task.overruns), Some(1));
        assert!(
            report.to_string().contains("was not measured, because the app sets `monitor = false`"),
            "{report}"
        );
    }
}

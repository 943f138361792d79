//! Virtual time is exact: grids, overruns, deadlines, timers and preemption, to the nanosecond.
//!
//! No test sleeps, and each is deterministic.
#![cfg(all(feature = "async", feature = "monitoring", feature = "signals"))]

mod ceilings;
mod end;
mod external_clock;
mod guest;
mod init;
mod instants;
mod parallel;
mod partitions;
mod sources;
mod sporadic;
mod timers;
mod waits;

use crate::log;
use log::Log;
use punctual::report::{Outcome, Report};
use punctual::{Config, Duration};

/// Runs in virtual time until `end` ms.
fn until_ms(end: u64) -> Config {
    Config::new().virtual_time().until(Duration::from_millis(end))
}

/// Returns the maximum J, R and C of a task in ms.
fn maxima(report: &Report, task: &str) -> [u64; 3] {
    let task = report.task(task).expect("the report has every task");
    [&task.jitter, &task.response, &task.execution].map(|quantity| quantity.max / 1_000_000)
}

mod grid {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use crate::log::Log;

        #[shared]
        struct Shared {
            log: Log,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, log: Log) -> (Shared, Local) {
            (Shared { log }, Local {})
        }

        #[task(priority = 1, period = 10.millis(), shared = [&log])]
        fn slow(cx: slow::Context) {
            assert_eq!(cx.released, punctual::now());
            cx.shared.log.note("slow");
        }

        /// Released with `slow` at 10 ms and 30 ms, and before it, because it is above.
        #[task(priority = 2, period = 20.millis(), offset = 10.millis(), shared = [&log])]
        fn fast(cx: fast::Context) {
            cx.shared.log.note("fast");
        }

        /// The first release is not at the start.
        #[task(priority = 1, period = 1.secs(), offset = 15.millis(), shared = [&log])]
        fn late(cx: late::Context) {
            cx.shared.log.note("late");
        }
    }

    #[test]
    fn releases_lie_on_grid_before_end_of_run() {
        let log = Log::default();
        let report = app::run(until_ms(40), log.clone()).unwrap();
        let expected =
            [(0, "slow"), (10, "fast"), (10, "slow"), (15, "late"), (20, "slow"), (30, "fast"), (30, "slow")];
        assert_eq!(log.take(), expected);
        assert_eq!(report.outcome, Outcome::TimeUp);
        assert_eq!(report.elapsed.as_millis(), 40);
        assert!(report.tasks.iter().all(|task| task.overruns == 0 && task.jitter.max == 0));
    }
}

mod overrun {
    use super::*;

    /// An app whose task of period 10 ms executes for 25 ms the first time and for 1 ms from then
    /// on.
    macro_rules! app {
        ($name:ident, $($policy:tt)*) => {
            #[punctual::app(main = false)]
            mod $name {
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
                    (Shared { log }, Local {})
                }

                #[task(priority = 2, period = 10.millis(), $($policy)*, shared = [&log], local = [jobs: u32 = 0])]
                fn sample(cx: sample::Context) {
                    cx.shared.log.note("starts");
                    *cx.local.jobs += 1;
                    punctual::spend(if *cx.local.jobs == 1 { 25.millis() } else { 1.millis() });
                }

                #[task(priority = 3, shared = [&log])]
                fn above(cx: above::Context) {
                    cx.shared.log.note("above");
                }

                #[task(priority = 1, shared = [&log])]
                fn below(cx: below::Context) {
                    cx.shared.log.note("below");
                }

                #[shutdown(shared = [log])]
                fn shutdown(cx: shutdown::Context) {
                    cx.shared.log.note("end");
                }
            }
        };
    }

    app!(skip, on_overrun = skip);
    app!(queue, on_overrun = queue, capacity = 2);
    app!(stop, on_overrun = stop);
    app!(handler_above, on_overrun = above);
    app!(handler_below, on_overrun = below);

    #[test]
    fn skip_policy_omits_releases_during_job() {
        let log = Log::default();
        let report = skip::run(until_ms(41), log.clone()).unwrap();
        assert_eq!(log.take(), [(0, "starts"), (30, "starts"), (40, "starts"), (41, "end")]);
        assert_eq!((report.tasks[1].jobs, report.tasks[1].overruns), (3, 2));
    }

    #[test]
    fn queue_policy_catches_up_to_capacity() {
        let log = Log::default();
        let report = queue::run(until_ms(35), log.clone()).unwrap();
        // At 20 ms two are unfinished, so that release is skipped; the one of 10 ms is not.
        assert_eq!(log.take(), [(0, "starts"), (25, "starts"), (30, "starts"), (35, "end")]);
        let sample = report.task("sample").unwrap();
        assert_eq!((sample.jobs, sample.overruns), (3, 2));
        // The job of 10 ms started at 25 ms.
        assert_eq!(maxima(&report, "sample"), [15, 25, 25]);
    }

    #[test]
    fn stop_ends_app_after_current_job() {
        let log = Log::default();
        let report = stop::run(until_ms(100), log.clone()).unwrap();
        assert_eq!(log.take(), [(0, "starts"), (25, "end")]);
        assert_eq!(report.outcome, Outcome::Overrun { task: "sample" });
        assert_eq!((report.exit_code(), report.task("sample").unwrap().jobs), (1, 1));
    }

    #[test]
    fn handler_runs_at_its_own_level() {
        let log = Log::default();
        handler_above::run(until_ms(31), log.clone()).unwrap();
        assert_eq!(log.take(), [(0, "starts"), (10, "above"), (20, "above"), (30, "starts"), (31, "end")]);
        // Two overruns, but one waiting job of the handler: its capacity is 1.
        handler_below::run(until_ms(31), log.clone()).unwrap();
        assert_eq!(log.take(), [(0, "starts"), (25, "below"), (30, "starts"), (31, "end")]);
    }
}

mod deadlines {
    use super::*;

    #[punctual::app(main = false)]
    mod app {

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            bulk::spawn().unwrap();
            (Shared {}, Local {})
        }

        /// Executes for 3 ms at every 20 ms.
        #[task(priority = 3, period = 20.millis(), execution = 3.millis())]
        fn hog(_: hog::Context) {}

        /// Ends 5 ms after every other release, and 2 ms after the rest.
        #[task(priority = 2, period = 10.millis(), deadline = 5.millis(), execution = 2.millis())]
        fn on_the_dot(_: on_the_dot::Context) {}

        /// The same, with a deadline shorter by a nanosecond.
        #[task(priority = 2, period = 10.millis(), deadline = 6_999_999.nanos(), execution = 2.millis())]
        fn too_late(_: too_late::Context) {}

        /// Preempted by all of the above.
        #[task(priority = 1, deadline = 20.millis(), execution = 10.millis())]
        fn bulk(_: bulk::Context) {}
    }

    #[test]
    fn deadline_is_missed_only_after_it() {
        let report = app::run(until_ms(40)).unwrap();
        let [on_the_dot, too_late] = ["on_the_dot", "too_late"].map(|name| report.task(name).unwrap());
        // At 0 and 20 ms `hog` goes first, then `on_the_dot`, then `too_late`, which ends after 7
        // ms.
        assert_eq!((on_the_dot.jobs, on_the_dot.misses), (4, 0));
        assert_eq!((too_late.jobs, too_late.misses), (4, 2));
        assert_eq!(maxima(&report, "hog"), [0, 3, 3]);
        assert_eq!(maxima(&report, "on_the_dot"), [3, 5, 2]);
        assert_eq!(maxima(&report, "too_late"), [5, 7, 2]);
        // 0-3-5-7, then 3 ms of `bulk`, 10-14, 6 ms more of it, 20-27, and the last millisecond.
        assert_eq!(maxima(&report, "bulk"), [7, 28, 10]);
        assert_eq!(report.task("bulk").unwrap().misses, 1);
        // Means are exact, and every job is in the histogram.
        assert_eq!(too_late.response.mean, 5.5e6);
        assert_eq!(too_late.response.buckets.iter().map(|bucket| bucket.1).sum::<u64>(), 4);
    }
}

mod unmonitored {
    use super::*;

    #[punctual::app(main = false, monitor = false)]
    mod app {
        use crate::log::Log;

        #[shared]
        struct Shared {
            log: Log,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, log: Log) -> (Shared, Local) {
            after::spawn().unwrap();
            (Shared { log }, Local {})
        }

        #[task(priority = 2, period = 10.millis(), execution = 4.millis(), shared = [&log])]
        fn sample(cx: sample::Context) {
            cx.shared.log.note("sample");
        }

        #[task(priority = 1, shared = [&log])]
        fn after(cx: after::Context) {
            cx.shared.log.note("after");
        }

        /// Part of the app: its clock is the app's.
        #[shutdown(shared = [log])]
        fn shutdown(cx: shutdown::Context) {
            cx.shared.log.note("shutdown");
        }
    }

    #[test]
    fn declared_times_pass_without_observer() {
        let log = Log::default();
        app::run(until_ms(12), log.clone()).unwrap();
        assert_eq!(log.take(), [(0, "sample"), (4, "after"), (10, "sample"), (14, "shutdown")]);
    }
}

/// Jobs whose behavior is data: their messages, execution times, and locks.
mod script {
    use punctual::Duration;

    use crate::log::Log;

    /// A step of a job.
    #[derive(Debug, Clone, Copy)]
    #[allow(unreachable_pub, reason = "the app's generated interface is `pub` by name")]
    pub enum Step {
        Say(&'static str),
        /// Executes for this many milliseconds.
        Spend(u64),
        /// Performs these steps with `x` locked.
        X(&'static [Step]),
        /// Performs these steps with `y` locked.
        Y(&'static [Step]),
        Do(fn()),
    }

    /// Performs `steps` with a log and two resources, of which `None` is already locked or not
    /// available to the job.
    pub(crate) fn perform<X, Y>(steps: &[Step], log: &Log, mut x: Option<&mut X>, mut y: Option<&mut Y>)
    where
        X: punctual::Mutex<T = u32>,
        Y: punctual::Mutex<T = u32>,
    {
        for step in steps {
            match *step {
                Step::Say(what) => log.note(what),
                Step::Spend(ms) => punctual::spend(Duration::from_millis(ms)),
                Step::X(inner) => x.as_mut().expect("the job has `x`").lock(|x| {
                    *x += 1;
                    perform(inner, log, None::<&mut X>, y.as_deref_mut());
                }),
                Step::Y(inner) => y.as_mut().expect("the job has `y`").lock(|y| {
                    *y += 1;
                    perform(inner, log, x.as_deref_mut(), None::<&mut Y>);
                }),
                Step::Do(what) => what(),
            }
        }
    }

    /// For jobs that have no such resource.
    pub(crate) const NONE: Option<&mut Nothing> = None;

    /// No resource.
    pub(crate) enum Nothing {}

    impl punctual::Mutex for Nothing {
        type T = u32;

        fn lock<R>(&mut self, _: impl FnOnce(&mut u32) -> R) -> R {
            match *self {}
        }
    }
}

//! Async tasks in virtual time: their waits, their polls, and their ends.
#![cfg(all(feature = "async", feature = "monitoring", feature = "signals"))]

mod delays;
mod drop_locks;
mod ends;
mod gives_up;
mod local;
mod local_ends;
mod readiness;
mod ticker;
mod wakes;

use crate::log;
use log::Log;
use punctual::Config;
use punctual::report::Outcome;

fn virtual_time() -> Config {
    Config::new().virtual_time()
}

mod times {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use punctual::TimeoutError;
        use punctual::prelude::*;

        use crate::log::Log;

        #[shared]
        struct Shared {
            log: Log,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, log: Log) -> (Shared, Local) {
            first::spawn().unwrap();
            second::spawn().unwrap();
            limits::spawn().unwrap();
            both::spawn().unwrap();
            (Shared { log }, Local {})
        }

        /// Two of one level that wait for the same time continue in the order in which they began
        /// to wait.
        #[task(priority = 2, shared = [&log])]
        async fn first(cx: first::Context) {
            punctual::delay(5.millis()).await;
            cx.shared.log.note("first");
            // A time in the past is not waited for.
            punctual::delay_until(punctual::now() - 1.millis()).await;
            punctual::delay(0.millis()).await;
            cx.shared.log.note("first, at once");
        }

        #[task(priority = 2, shared = [&log])]
        async fn second(cx: second::Context) {
            punctual::delay_until(punctual::now() + 5.millis()).await;
            cx.shared.log.note("second");
        }

        #[task(priority = 1, shared = [&log])]
        async fn limits(cx: limits::Context) {
            let pending = std::future::pending::<()>();
            assert_eq!(punctual::timeout_after(10.millis(), pending).await, Err(TimeoutError));
            cx.shared.log.note("given up");
            let in_time = punctual::timeout_after(10.millis(), punctual::delay(3.millis()));
            assert_eq!(in_time.await, Ok(()));
            cx.shared.log.note("in time");
            // At exactly the same time the future has completed.
            let just = punctual::timeout_at(punctual::now() + 3.millis(), punctual::delay(3.millis()));
            assert_eq!(just.await, Ok(()));
            cx.shared.log.note("just in time");
            // A limit within a limit.
            let inner = punctual::timeout_after(9.millis(), std::future::pending::<()>());
            assert_eq!(punctual::timeout_after(4.millis(), inner).await, Err(TimeoutError));
            cx.shared.log.note("given up within");
        }

        /// One future that waits for several times at once.
        #[task(priority = 3, shared = [&log], waits = 2)]
        async fn both(cx: both::Context) {
            let (mut long, mut short) = (punctual::delay(8.millis()), punctual::delay(2.millis()));
            let mut ended = [false; 2];
            std::future::poll_fn(|context| {
                use std::future::Future;
                use std::pin::Pin;
                if !ended[0] && Pin::new(&mut short).poll(context).is_ready() {
                    cx.shared.log.note("short");
                    ended[0] = true;
                }
                if !ended[1] && Pin::new(&mut long).poll(context).is_ready() {
                    cx.shared.log.note("long");
                    ended[1] = true;
                }
                if ended == [true; 2] { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
            cx.shared.log.note("both");
        }
    }

    #[test]
    fn waits_to_the_nanosecond() {
        let log = Log::default();
        let report = app::run(virtual_time(), log.clone()).unwrap();
        assert_eq!(
            log.take(),
            [
                (2, "short"),
                (5, "first"),
                (5, "first, at once"),
                (5, "second"),
                (8, "long"),
                (8, "both"),
                (10, "given up"),
                (13, "in time"),
                (16, "just in time"),
                (20, "given up within"),
            ]
        );
        assert_eq!(report.outcome, Outcome::Quiescent);
        // A job of an async task is a poll, released when it was due.
        let first = report.task("first").unwrap();
        assert_eq!((first.jobs, first.jitter.max, first.response.max), (2, 0, 0));
    }
}

mod exclusion {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use punctual::prelude::*;

        use crate::log::Log;

        #[shared]
        struct Shared {
            log: Log,
            resource: u32,
            own: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, log: Log) -> (Shared, Local) {
            low::spawn().unwrap();
            high::spawn_after(1.millis()).unwrap();
            (Shared { log, resource: 0, own: 0 }, Local {})
        }

        /// A lock delays `high`; waiting does not.
        #[task(priority = 1, shared = [resource, own, &log])]
        async fn low(mut cx: low::Context) {
            cx.shared.resource.lock(|resource| {
                punctual::spend(2.millis());
                *resource += 1;
                cx.shared.log.note("low lets go");
            });
            high::spawn().unwrap();
            punctual::delay(1.millis()).await;
            cx.shared.own.lock(|own| *own += 1);
            let both = (cx.shared.resource, cx.shared.own).lock(|resource, own| *resource * 10 + *own);
            assert_eq!(both, 31);
            cx.shared.log.note("low ends");
        }

        #[task(priority = 2, shared = [resource, &log])]
        fn high(mut cx: high::Context) {
            cx.shared.resource.lock(|resource| *resource += 1);
            cx.shared.log.note("high");
        }
    }

    #[test]
    fn resources_are_locked_between_waits() {
        let log = Log::default();
        app::run(virtual_time(), log.clone()).unwrap();
        assert_eq!(log.take(), [(2, "low lets go"), (2, "high"), (2, "high"), (3, "low ends")]);
    }
}

mod overrun {
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

        #[task(priority = 1, period = 10.millis(), on_overrun = late, execution = 12.millis())]
        fn busy(_: busy::Context) {}

        #[task(priority = 2, shared = [&log])]
        async fn late(cx: late::Context) {
            cx.shared.log.note("late");
            punctual::shutdown();
        }
    }

    #[test]
    fn async_task_handles_overruns() {
        let log = Log::default();
        app::run(virtual_time(), log.clone()).unwrap();
        assert_eq!(log.take(), [(10, "late")]);
    }
}

//! Futures that lock a resource when they are dropped, at the end of a run: by the last thread, or,
//! on a local level, by the level's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual::prelude::*;
use punctual::report::{Outcome, Report};
use punctual::{Config, Duration, StartError};

use crate::asynch::virtual_time;

/// Adds one to a resource when it is dropped, or panics in the lock.
struct Adds<L: Mutex<T = u32>> {
    right: L,
    panics: bool,
}

impl<L: Mutex<T = u32>> Drop for Adds<L> {
    fn drop(&mut self) {
        let panics = self.panics;
        self.right.lock(|count| {
            *count += 1;
            assert!(!panics, "in a destructor's lock");
        });
    }
}

macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($core:tt)*]) => {
        #[punctual::app(main = false, $($args)*)]
        mod $name {
            use std::sync::Arc;
            use std::sync::atomic::{AtomicU32, Ordering};

            use punctual::prelude::*;

            use super::Adds;

            #[shared]
            struct Shared {
                count: u32,
                own: u32,
                polled: AtomicU32,
            }

            #[local]
            struct Local {
                counted: Arc<AtomicU32>,
            }

            #[init]
            fn init(_: init::Context, counted: Arc<AtomicU32>, panics: bool) -> (Shared, Local) {
                waits::spawn(panics).unwrap();
                starts::spawn(panics).unwrap();
                stops::spawn().unwrap();
                (Shared { count: 0, own: 0, polled: AtomicU32::new(0) }, Local { counted })
            }

            #[idle]
            fn idle(_: idle::Context) {}

            /// It is at the ceiling of `own`.
            #[task(priority = 2, shared = [count, own, &polled])]
            async fn waits(cx: waits::Context, panics: bool) {
                let _shared = Adds { right: cx.shared.count, panics };
                let _own = Adds { right: cx.shared.own, panics: false };
                cx.shared.polled.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
            }

            #[task(priority = 3, shared = [count, &polled])]
            async fn starts(cx: starts::Context, panics: bool) {
                cx.local_spawner.stays(panics).unwrap();
                let _adds = Adds { right: cx.shared.count, panics };
                cx.shared.polled.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
            }

            #[task(priority = 3, local_task, shared = [count, &polled])]
            async fn stays(cx: stays::Context, panics: bool) {
                let _adds = Adds { right: cx.shared.count, panics };
                cx.shared.polled.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
            }

            /// Above all, so that using the resource requires a lock.
            #[task(priority = 4, shared = [count], $($core)*)]
            fn above(_: above::Context) {}

            #[task(priority = 1, shared = [own, &polled])]
            async fn stops(cx: stops::Context) {
                while cx.shared.polled.load(Ordering::Relaxed) < 3 {
                    punctual::delay(1.millis()).await;
                }
                punctual::shutdown();
            }

            #[shutdown(shared = [count, own], local = [counted])]
            fn shutdown(cx: shutdown::Context) {
                cx.local.counted.store(*cx.shared.count * 10 + *cx.shared.own, Ordering::Relaxed);
            }
        }
    };
}

app!(levels, [], []);
app!(polls, [partitions = [polls(poll)]], []);
app!(apart, [partitions = [one, other]], [core = other]);
app!(global, [executor = "global"], []);

type Run = fn(Config, Arc<AtomicU32>, bool) -> Result<Report, StartError>;

#[test]
fn future_may_lock_when_dropped_at_shutdown() {
    let _alone = crate::alone();
    let runs: [(&str, Run); 4] =
        [("levels", levels::run), ("polls", polls::run), ("apart", apart::run), ("global", global::run)];
    let real = || Config::new().until(Duration::from_secs(30));
    for (name, run) in runs {
        // The last run finds no state left by the panics.
        for panics in [false, true, false] {
            for config in [virtual_time(), real()] {
                let counted = Arc::<AtomicU32>::default();
                let report = match run(config, Arc::clone(&counted), panics) {
                    Err(StartError::TooFewCpus { .. } | StartError::PollsOnlyCpu { .. }) => continue,
                    report => report.unwrap(),
                };
                let in_lock = |message: &str| message.contains("in a destructor's lock");
                match &report.outcome {
                    Outcome::Shutdown if !panics => {}
                    Outcome::Panicked { message, .. } if panics && in_lock(message) => {}
                    outcome => panic!("{name}: {outcome:?}"),
                }
                assert_eq!(counted.load(Ordering::Relaxed), 31, "{name}");
            }
        }
    }
}

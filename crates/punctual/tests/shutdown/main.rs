//! Ends of runs: their initiators, the fate of remaining jobs, and repeated runs.
#![cfg(feature = "monitoring")]

mod again;
#[path = "../support/privileges.rs"]
mod privileges;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, MutexGuard};
use std::thread;

use punctual::report::Outcome;
use punctual::{Config, SpawnError, StartError};

/// `shutdown` from a foreign thread ends every app of the process, so tests are serialized.
fn turn() -> MutexGuard<'static, ()> {
    privileges::no_runaways_here();
    test_skip::alone()
}

fn both() -> [Config; 2] {
    [Config::new(), Config::new().virtual_time()]
}

/// Counts its drops.
#[derive(Debug, Clone)]
pub(crate) struct Drops(Arc<AtomicU32>);

/// A counted value.
#[derive(Debug)]
pub(crate) struct Counted(Drops);

impl Drops {
    fn new() -> Self {
        Self(Arc::new(AtomicU32::new(0)))
    }

    fn make(&self) -> Counted {
        Counted(self.clone())
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }
}

mod ends {
    use super::*;

    /// Initiator of the end.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum By {
        Init,
        Idle,
        Task,
        Panic,
        Outside,
    }

    /// Counted values of each kind.
    #[derive(Debug)]
    pub(crate) struct All {
        pub(crate) shared: Drops,
        pub(crate) local: Drops,
        pub(crate) unused: Drops,
        pub(crate) run: Drops,
        pub(crate) queued: Drops,
        pub(crate) armed: Drops,
    }

    #[punctual::app(main = false)]
    pub(super) mod app {
        use punctual::prelude::*;

        use super::{All, By, Counted};

        #[shared]
        struct Shared {
            by: By,
            shared: Counted,
        }

        #[local]
        struct Local {
            local: Counted,
            #[allow(dead_code, reason = "it is for being dropped")]
            unused: Counted,
            all: All,
        }

        #[init]
        fn init(_: init::Context, by: By, all: All) -> (Shared, Local) {
            // The end may come from outside at any time, so all of these may be rejected.
            let _ = message::spawn(all.run.make());
            let _ = message::spawn_after(1.secs(), all.armed.make());
            let (shared, local, unused) = (all.shared.make(), all.local.make(), all.unused.make());
            let _ = act::spawn();
            if by == By::Init {
                punctual::shutdown();
                message::spawn(all.run.make()).expect("that the app is stopping is no error of its own");
            }
            (Shared { by, shared }, Local { local, unused, all })
        }

        #[idle(shared = [&by])]
        fn idle(cx: idle::Context) {
            if *cx.shared.by == By::Idle {
                punctual::shutdown();
            }
        }

        #[task(priority = 2, shared = [&by, &shared], local = [all])]
        fn act(cx: act::Context) {
            // Below this task, so it waits.
            let _ = message::spawn(cx.local.all.queued.make());
            match cx.shared.by {
                By::Task => {
                    punctual::shutdown();
                    // Dropped and counted, in any number: nothing is queued, so nothing is full.
                    for _ in 0..4 {
                        message::spawn(cx.local.all.run.make()).unwrap();
                    }
                    let armed = message::spawn_after(1.secs(), cx.local.all.run.make()).unwrap();
                    assert_eq!(armed.cancel().map(drop), Err(punctual::TooLate), "it has been dropped");
                }
                By::Panic => panic!("on purpose"),
                By::Init | By::Idle | By::Outside => {}
            }
        }

        #[task(priority = 1, capacity = 3, local = [local])]
        fn message(_: message::Context, _what: Counted) {}

        #[shutdown(shared = [shared])]
        fn shutdown(cx: shutdown::Context) {
            assert_eq!(cx.shared.shared.0.count(), 0, "resources outlive the hook");
        }
    }

    fn ends(by: By, config: Config) {
        let [shared, local, unused, run, queued, armed] = [(); 6].map(|()| Drops::new());
        let all = All {
            shared: shared.clone(),
            local: local.clone(),
            unused: unused.clone(),
            run: run.clone(),
            queued: queued.clone(),
            armed: armed.clone(),
        };
        let report = thread::scope(|scope| {
            if by == By::Outside {
                // Repeated, because until the app runs there is nothing to stop.
                let watched = shared.clone();
                scope.spawn(move || {
                    while watched.count() == 0 {
                        punctual::shutdown();
                        thread::yield_now();
                    }
                });
            }
            app::run(config, by, all).expect("the app starts")
        });
        let counts = [&shared, &local, &unused, &armed].map(Drops::count);
        assert_eq!(counts, [1; 4], "{by:?}");
        // Either run or dropped.
        let counts = (queued.count(), run.count());
        let jobs = report.task("message").expect("the report has every task").jobs;
        match by {
            // The two waiting ones, and the armed one.
            By::Panic => assert_eq!((jobs, report.dropped_jobs, counts), (0, 3, (1, 1))),
            // The armed one; and those that `init` and then `act`, which has been released, spawn
            // while the app is stopping.
            By::Init => assert_eq!((jobs, report.dropped_jobs, counts), (1, 3, (1, 2))),
            // The armed one, and those that `act` spawns after the shutdown.
            By::Task => assert_eq!((jobs, report.dropped_jobs, counts), (2, 6, (1, 6))),
            By::Idle => assert_eq!((jobs, report.dropped_jobs, counts), (2, 1, (1, 1))),
            // It may have come before anything was released.
            By::Outside => assert!(jobs <= 2 && report.dropped_jobs <= 3 && counts.0 <= 1 && counts.1 == 1),
        }
        match report.outcome {
            Outcome::Panicked { .. } => assert_eq!(by, By::Panic),
            outcome => assert_eq!(outcome, Outcome::Shutdown, "{by:?}"),
        }
    }

    #[test]
    fn drops_everything_once_for_every_way_to_end() {
        let _turn = turn();
        for config in both() {
            ends(By::Init, config.clone());
            ends(By::Idle, config.clone());
            ends(By::Task, config.clone());
            ends(By::Panic, config);
        }
        for _ in 0..20 {
            ends(By::Outside, Config::new());
        }
    }
}

mod full {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use punctual::prelude::*;

        use super::Counted;
        use crate::Drops;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {
            drops: Drops,
        }

        #[init]
        fn init(_: init::Context, drops: Drops) -> (Shared, Local) {
            fill::spawn().unwrap();
            (Shared {}, Local { drops })
        }

        #[task(priority = 2, local = [drops])]
        fn fill(cx: fill::Context) {
            let drops = cx.local.drops;
            narrow::spawn(0, drops.make()).unwrap();
            // An armed job occupies a slot as well.
            let armed = narrow::spawn_after(1.secs(), 1, drops.make()).unwrap();
            let (number, refused) = narrow::spawn(2, drops.make())
                .map_err(punctual::SpawnError::into_inner)
                .expect_err("two are all there is room for");
            assert_eq!((number, drops.count()), (2, 0));
            let (number, refused) =
                narrow::spawn_after(1.secs(), 3, refused).expect_err("there is no room").into_inner();
            assert_eq!((number, drops.count()), (3, 0));
            // And frees it when it is canceled.
            let (number, _cancelled) = armed.cancel().expect("it is not due");
            assert_eq!(number, 1);
            narrow::spawn(4, refused).unwrap();
            drop(_cancelled);
            assert_eq!(drops.count(), 1);
            last::spawn().unwrap();
        }

        #[task(priority = 1, capacity = 2, local = [seen: u32 = 0])]
        fn narrow(cx: narrow::Context, number: u32, _what: Counted) {
            assert_eq!(number, *cx.local.seen);
            *cx.local.seen = 4;
        }

        #[task(priority = 1)]
        fn last(_: last::Context) {
            punctual::shutdown();
        }
    }

    #[test]
    fn full_task_returns_arguments() {
        let _turn = turn();
        for config in both() {
            let drops = Drops::new();
            let report = app::run(config, drops.clone()).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Shutdown);
            assert_eq!(report.task("narrow").map(|task| task.jobs), Some(2));
            assert_eq!((drops.count(), report.dropped_jobs), (3, 0));
        }
    }
}

mod late {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            chain::spawn(2).unwrap();
            (Shared {}, Local {})
        }

        /// Spawns jobs of its own level into a free slot and into its only one, and a job of a
        /// higher level, after the shutdown.
        #[task(priority = 1, capacity = 2)]
        fn chain(_: chain::Context, left: u32) {
            if left == 0 {
                punctual::shutdown();
            }
            single::spawn().unwrap();
            higher::spawn().unwrap();
            chain::spawn(left.saturating_sub(1)).unwrap();
        }

        #[task(priority = 1)]
        fn single(_: single::Context) {}

        #[task(priority = 2)]
        fn higher(_: higher::Context) {}
    }

    #[test]
    fn drops_jobs_spawned_after_shutdown() {
        let _turn = turn();
        for config in both() {
            let report = app::run(config).expect("the app starts");
            let jobs = ["chain", "single", "higher"].map(|name| report.task(name).unwrap().jobs);
            assert_eq!((jobs, report.dropped_jobs), ([3, 2, 2], 3));
        }
    }
}

//! A panic that leaves a critical section: no job runs afterwards that was not running before, and
//! the app stops even if the job catches it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use punctual::report::Outcome;
use punctual::{Config, Report, StartError};

use crate::faults::{Executor, executors};

/// Action of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Panics in a critical section in which it has released jobs of higher levels.
    Panics,
    /// The same, and catches it outside of the section.
    Catches,
    /// The same in the inner one of two sections, and catches it in the outer one.
    CatchesBetween,
    /// The same, at the level of the ceiling, so that nothing is raised.
    CatchesAtCeiling,
    /// Catches it inside the section, which is not a fault.
    CatchesInside,
    /// As `Catches`, by an async task.
    CatchesAsync,
    /// As `Panics`, and releases a job while it unwinds.
    SpawnsWhileUnwinding,
}

/// Number of jobs that ran after the panic.
static AFTER: AtomicU32 = AtomicU32::new(0);

/// Panics without the hook, whose output is not needed here.
pub(super) fn fail() -> ! {
    resume_unwind(Box::new("half-way"))
}

pub(super) fn caught(f: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
}

macro_rules! app {
    ($name:ident, releases: $releases:literal, $($arguments:tt)*) => {
        #[punctual::app(main = false, $($arguments)*)]
        mod $name {
            use punctual::prelude::*;

            use super::*;

            struct Spawns;

            impl Drop for Spawns {
                fn drop(&mut self) {
                    // It is accepted, and dropped without running.
                    above::spawn().unwrap();
                }
            }

            #[shared]
            struct Shared {
                one: [u32; 2],
                two: u32,
                own: u32,
            }

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context, act: Act) -> (Shared, Local) {
                match act {
                    Act::CatchesAtCeiling => at_ceiling::spawn().unwrap(),
                    Act::CatchesAsync => polled::spawn().unwrap(),
                    act => job::spawn(act).unwrap(),
                }
                (Shared { one: [0; 2], two: 0, own: 0 }, Local {})
            }

            #[task(priority = 1, shared = [one, two])]
            fn job(cx: job::Context, act: Act) {
                let (mut one, mut two) = (cx.shared.one, cx.shared.two);
                let release = || {
                    if $releases {
                        below::spawn().unwrap();
                        same::spawn().unwrap();
                        // By the clock, during the section.
                        below::spawn_after(1.millis()).unwrap();
                        punctual::spend(3.millis());
                    }
                };
                match act {
                    Act::Panics => one.lock(|one| {
                        one[0] = 1;
                        release();
                        fail()
                    }),
                    Act::SpawnsWhileUnwinding => {
                        let _spawns = Spawns;
                        (one, two).lock(|one, _| {
                            one[0] = 1;
                            release();
                            fail()
                        })
                    }
                    Act::Catches => caught(|| {
                        one.lock(|one| {
                            one[0] = 1;
                            release();
                            fail()
                        })
                    }),
                    Act::CatchesBetween => one.lock(|_| {
                        caught(|| {
                            two.lock(|_| {
                                release();
                                fail()
                            })
                        })
                    }),
                    Act::CatchesInside => {
                        one.lock(|one| {
                            caught(|| fail());
                            *one = [1; 2];
                        });
                        release();
                        if !$releases {
                            punctual::shutdown();
                        }
                    }
                    Act::CatchesAtCeiling | Act::CatchesAsync => unreachable!("other tasks do that"),
                }
                // At the point at which the panic was caught.
                if act != Act::CatchesInside {
                    // The app is stopping: spawned jobs are not run.
                    above::spawn().unwrap();
                    same::spawn().unwrap();
                    below::spawn().unwrap();
                }
            }

            #[task(priority = 3, shared = [own])]
            fn at_ceiling(mut cx: at_ceiling::Context) {
                caught(|| {
                    cx.shared.own.lock(|_| {
                        if $releases {
                            below::spawn().unwrap();
                        }
                        fail()
                    })
                });
                below::spawn().unwrap();
            }

            #[task(priority = 1, shared = [one])]
            async fn polled(mut cx: polled::Context) {
                caught(|| cx.shared.one.lock(|_| fail()));
                above::spawn().unwrap();
            }

            #[task(priority = 3, shared = [one])]
            fn above(mut cx: above::Context) {
                AFTER.fetch_add(1, Ordering::Relaxed);
                cx.shared.one.lock(|one| assert_eq!(one[0], one[1], "it is half changed"));
                punctual::shutdown();
            }

            /// Below the ceiling, above `job`.
            #[task(priority = 2, capacity = 2)]
            fn below(_: below::Context) {
                AFTER.fetch_add(1, Ordering::Relaxed);
            }

            #[task(priority = 1, shared = [two])]
            fn same(_: same::Context) {
                AFTER.fetch_add(1, Ordering::Relaxed);
                above::spawn().unwrap();
            }
        }
    };
}

app!(partition, releases: true,);
app!(polling, releases: true, partitions = [fast(poll)]);
// There, a critical section does not delay jobs of other levels that lock nothing.
app!(global, releases: false, executor = "global");

type Run = fn(Config, Act) -> Result<Report, StartError>;

fn each(act: Act, check: impl Fn(&Report, Executor)) {
    let _alone = crate::alone();
    for executor in executors() {
        let run: Run = match executor {
            Executor::Partition => partition::run,
            Executor::Polling => polling::run,
            Executor::Global => global::run,
        };
        for config in [Config::new(), Config::new().virtual_time()] {
            AFTER.store(0, Ordering::Relaxed);
            let report = run(config.clone(), act).expect("the app starts");
            check(&report, executor);
        }
    }
}

/// Checks that the app ends for a fault of `task`, and that no job has run.
fn is_a_fault(act: Act, task: &'static str, message: &'static str) {
    each(act, |report, executor| {
        let expected = Outcome::Panicked { task: task.into(), message: message.into() };
        assert_eq!(report.outcome, expected, "{act:?}, {executor:?}, {}", report.virtual_time);
        let after = AFTER.load(Ordering::Relaxed);
        assert_eq!(after, 0, "{act:?}, {executor:?}, {}: half-changed data", report.virtual_time);
    });
}

pub(super) const CAUGHT: &str = "a panic has left a critical section and was caught outside of it";

#[test]
fn runs_no_queued_job_after_panic() {
    is_a_fault(Act::Panics, "job", "half-way");
    is_a_fault(Act::SpawnsWhileUnwinding, "job", "half-way");
}

#[test]
fn caught_panic_is_handled_equally() {
    is_a_fault(Act::Catches, "job", CAUGHT);
    is_a_fault(Act::CatchesBetween, "job", CAUGHT);
    is_a_fault(Act::CatchesAtCeiling, "at_ceiling", CAUGHT);
    is_a_fault(Act::CatchesAsync, "polled", CAUGHT);
}

#[test]
fn panic_caught_in_section_is_not_a_fault() {
    each(Act::CatchesInside, |report, executor| {
        assert_eq!(report.outcome, Outcome::Shutdown, "{executor:?}");
        assert!(AFTER.load(Ordering::Relaxed) > 0 || executor == Executor::Global);
    });
}

/// A resource of two partitions, with a different lock.
mod partitions {
    use super::*;

    #[punctual::app(main = false, partitions = [here, there])]
    mod app {
        use punctual::prelude::*;

        use super::*;

        #[shared]
        struct Shared {
            bus: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            job::spawn().unwrap();
            (Shared { bus: 0 }, Local {})
        }

        #[task(priority = 1, core = here, shared = [bus])]
        fn job(mut cx: job::Context) {
            caught(|| {
                cx.shared.bus.lock(|_| {
                    above::spawn().unwrap();
                    fail()
                })
            });
            above::spawn().unwrap();
            there::spawn().unwrap();
        }

        #[task(priority = 2, core = here)]
        fn above(_: above::Context) {
            AFTER.fetch_add(1, Ordering::Relaxed);
        }

        #[task(priority = 1, core = there, shared = [bus])]
        fn there(_: there::Context) {
            AFTER.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn lock_across_partitions_is_no_exception() {
        let _alone = crate::alone();
        let two = executors().any(|executor| executor == Executor::Polling);
        for config in two.then(Config::new).into_iter().chain([Config::new().virtual_time()]) {
            AFTER.store(0, Ordering::Relaxed);
            let report = app::run(config).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Panicked { task: "job".into(), message: CAUGHT.into() });
            assert_eq!(AFTER.load(Ordering::Relaxed), 0);
        }
    }
}

/// A job that runs as a call is the culprit, not its caller, whose end is checked later.
mod called {
    use super::*;

    /// Kind of the called job.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Called {
        /// The job has released another one of its level.
        First,
        /// The level is local: one thread runs all levels in virtual time.
        Local,
        /// A job of a higher level becomes ready, whose argument fails while it is dropped.
        Spends,
    }

    /// An argument that panics when it is dropped.
    #[derive(Debug)]
    pub(crate) struct Fails;

    impl Drop for Fails {
        fn drop(&mut self) {
            fail()
        }
    }

    #[punctual::app(main = false)]
    mod app {
        use punctual::prelude::*;

        use super::*;

        #[shared]
        struct Shared {
            one: u32,
            two: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, called: Called) -> (Shared, Local) {
            caller::spawn(called).unwrap();
            (Shared { one: 0, two: 0 }, Local {})
        }

        #[task(priority = 1)]
        fn caller(_: caller::Context, called: Called) {
            match called {
                Called::First => first::spawn().unwrap(),
                Called::Local => in_local_level::spawn().unwrap(),
                Called::Spends => spends::spawn().unwrap(),
            }
        }

        #[task(priority = 2, shared = [one])]
        fn first(mut cx: first::Context) {
            next::spawn().unwrap();
            caught(|| cx.shared.one.lock(|_| fail()));
        }

        #[task(priority = 2)]
        fn next(_: next::Context) {
            AFTER.fetch_add(1, Ordering::Relaxed);
        }

        #[task(priority = 2, shared = [one], execution = 1.millis())]
        fn spends(mut cx: spends::Context) {
            caught(|| {
                cx.shared.one.lock(|_| {
                    dropped::spawn(Fails).unwrap();
                    fail()
                })
            });
        }

        #[task(priority = 4)]
        fn dropped(_: dropped::Context, fails: Fails) {
            std::mem::forget(fails);
            AFTER.fetch_add(1, Ordering::Relaxed);
        }

        #[task(priority = 3, shared = [two])]
        fn in_local_level(mut cx: in_local_level::Context) {
            caught(|| cx.shared.two.lock(|_| fail()));
        }

        /// Makes the level local.
        #[task(priority = 3, local_task)]
        async fn local(_: local::Context) {}

        #[task(priority = 4, shared = [one, two])]
        fn above(_: above::Context) {}
    }

    #[test]
    fn called_job_is_the_culprit() {
        let _alone = crate::alone();
        let cases = [(Called::First, "first"), (Called::Local, "in_local_level"), (Called::Spends, "spends")];
        for (called, culprit) in cases {
            // On threads, the worker of the other job may be the first to fail.
            let threads = (called != Called::Spends).then(Config::new);
            for config in threads.into_iter().chain([Config::new().virtual_time()]) {
                AFTER.store(0, Ordering::Relaxed);
                let report = app::run(config, called).expect("the app starts");
                let expected = Outcome::Panicked { task: culprit.into(), message: CAUGHT.into() };
                assert_eq!(report.outcome, expected, "{called:?}, {}", report.virtual_time);
                assert_eq!(AFTER.load(Ordering::Relaxed), 0, "{called:?}, {}", report.virtual_time);
            }
        }
    }
}

/// A job of a local level that is spawned after the shutdown, on the one thread of virtual time.
mod late {
    use super::*;

    #[punctual::app(main = false)]
    mod app {
        use super::*;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            caller::spawn().unwrap();
            (Shared {}, Local {})
        }

        #[task(priority = 1)]
        fn caller(_: caller::Context) {
            punctual::shutdown();
            in_local_level::spawn().unwrap();
        }

        #[task(priority = 3)]
        fn in_local_level(_: in_local_level::Context) {
            AFTER.fetch_add(1, Ordering::Relaxed);
        }

        /// Makes the level local.
        #[task(priority = 3, local_task)]
        async fn local(_: local::Context) {}
    }

    #[test]
    fn job_of_local_level_spawned_after_shutdown_does_not_run() {
        let _alone = crate::alone();
        AFTER.store(0, Ordering::Relaxed);
        let report = app::run(Config::new().virtual_time()).expect("the app starts");
        assert_eq!((report.outcome, AFTER.load(Ordering::Relaxed)), (Outcome::Shutdown, 0));
    }
}

/// `wait_for_event` leaves `idle` by unwinding.
mod leaving {
    use super::*;

    /// Behavior of `idle` in a critical section, in which it has released a job of a higher level.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Leaving {
        /// Waits until it is unwound.
        Waits,
        /// Catches the unwinding, and panics.
        CatchesAndPanics,
        /// Has a destructor that panics in a critical section, and catches the panic outside of it.
        PanicsInDestructor,
    }

    #[punctual::app(main = false)]
    mod app {
        use punctual::prelude::*;

        use super::*;

        /// Runs a closure when it is dropped.
        struct Finally<F: FnMut()>(F);

        impl<F: FnMut()> Drop for Finally<F> {
            fn drop(&mut self) {
                (self.0)();
            }
        }

        #[shared]
        struct Shared {
            value: [u32; 2],
            other: u32,
        }

        #[local]
        struct Local {
            leaving: Leaving,
        }

        #[init]
        fn init(_: init::Context, leaving: Leaving) -> (Shared, Local) {
            (Shared { value: [0; 2], other: 0 }, Local { leaving })
        }

        #[idle(local = [leaving], shared = [value, other])]
        fn idle(cx: idle::Context) {
            let (mut value, mut other) = (cx.shared.value, cx.shared.other);
            let wait = || {
                queued::spawn().unwrap();
                punctual::shutdown();
                loop {
                    punctual::wait_for_event();
                }
            };
            match *cx.local.leaving {
                Leaving::Waits => value.lock(|_| wait()),
                Leaving::CatchesAndPanics => value.lock(|value| {
                    caught(wait);
                    value[0] = 1;
                    fail()
                }),
                Leaving::PanicsInDestructor => other.lock(|_| {
                    let _finally = Finally(|| {
                        caught(|| {
                            value.lock(|value| {
                                value[0] = 1;
                                panic!("half-way")
                            })
                        })
                    });
                    wait()
                }),
            }
        }

        #[task(priority = 2, shared = [value, other])]
        fn queued(cx: queued::Context) {
            let (mut value, mut other) = (cx.shared.value, cx.shared.other);
            AFTER.fetch_add(1, Ordering::Relaxed);
            other.lock(|_| ());
            value.lock(|value| assert_eq!(value[0], value[1], "it is half changed"));
        }
    }

    fn ends(leaving: Leaving, check: impl Fn(&Report)) {
        let _alone = crate::alone();
        for config in [Config::new(), Config::new().virtual_time()] {
            AFTER.store(0, Ordering::Relaxed);
            check(&app::run(config, leaving).expect("the app starts"));
        }
    }

    #[test]
    fn shutdown_in_critical_section_finishes_released_jobs() {
        ends(Leaving::Waits, |report| {
            assert_eq!((&report.outcome, AFTER.load(Ordering::Relaxed)), (&Outcome::Shutdown, 1));
        });
    }

    #[test]
    fn panic_after_caught_one_is_a_fault() {
        ends(Leaving::CatchesAndPanics, |report| {
            let expected = Outcome::Panicked { task: "idle".into(), message: "half-way".into() };
            assert_eq!((&report.outcome, AFTER.load(Ordering::Relaxed)), (&expected, 0));
        });
    }

    #[test]
    fn panic_in_destructor_is_a_fault() {
        ends(Leaving::PanicsInDestructor, |report| {
            let expected = Outcome::Panicked { task: "idle".into(), message: CAUGHT.into() };
            assert_eq!((&report.outcome, AFTER.load(Ordering::Relaxed)), (&expected, 0));
        });
    }
}

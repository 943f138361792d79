//! Resources shared by jobs that run in parallel.

use std::sync::atomic::{AtomicU32, Ordering};

use punctual::report::Outcome;

use crate::partitions::{both, two_cpus};

/// Number of locks by each of two tasks; large, so that they contend.
pub(crate) const ROUNDS: u32 = 3_000;

/// Number of tasks that have not finished their rounds.
pub(crate) static LEFT: AtomicU32 = AtomicU32::new(0);

/// A number that is written in two halves, so that a second writer is detected.
#[derive(Default)]
pub(crate) struct Pair(u32, u32);

impl Pair {
    /// Increments it, with `within` between the halves.
    pub(crate) fn add(&mut self, within: impl FnOnce()) {
        assert_eq!(self.0, self.1, "no thread is in the middle of it");
        let before = std::hint::black_box(&mut self.0);
        *before += 1;
        let expected = *before;
        within();
        self.1 = expected;
        assert_eq!(self.0, expected, "nobody came in between");
    }
}

macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($one:tt)*], [$($two:tt)*]) => {
        #[punctual::app(main = false, $($args)*)]
        pub(crate) mod $name {
            use std::sync::atomic::Ordering;

            use punctual::prelude::*;

            use super::{LEFT, Pair, ROUNDS};

            #[shared]
            struct Shared {
                x: Pair,
                y: Pair,
                /// Used in one partition only.
                near: Pair,
            }

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context) -> (Shared, Local) {
                LEFT.store(3, Ordering::Relaxed);
                forth::spawn().unwrap();
                back::spawn().unwrap();
                waits::spawn().unwrap();
                (Shared { x: Pair::default(), y: Pair::default(), near: Pair::default() }, Local {})
            }

            /// Shares with both partitions.
            #[idle(shared = [x, near])]
            fn idle(mut cx: idle::Context) {
                for _ in 0..ROUNDS {
                    cx.shared.x.lock(|x| x.add(|| cx.shared.near.lock(|near| near.add(|| ()))));
                }
                loop {
                    punctual::wait_for_event();
                }
            }

            fn done() {
                if LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
                    punctual::shutdown();
                }
            }

            #[task($($one)* priority = 1, shared = [x, y, near])]
            fn forth(mut cx: forth::Context) {
                for _ in 0..ROUNDS {
                    cx.shared.x.lock(|x| x.add(|| cx.shared.y.lock(|y| y.add(|| ()))));
                    cx.shared.near.lock(|near| near.add(|| cx.shared.x.lock(|x| x.add(|| ()))));
                }
                done();
            }

            #[task($($two)* priority = 2, shared = [x, y])]
            fn back(mut cx: back::Context) {
                for _ in 0..ROUNDS {
                    cx.shared.y.lock(|y| y.add(|| cx.shared.x.lock(|x| x.add(|| ()))));
                }
                done();
            }

            /// Awaits between its locks.
            #[task($($one)* priority = 3, shared = [x, near])]
            async fn waits(mut cx: waits::Context) {
                for _ in 0..20 {
                    cx.shared.near.lock(|near| near.add(|| ()));
                    punctual::delay(50.micros()).await;
                    cx.shared.x.lock(|x| x.add(|| ()));
                }
                done();
            }

            #[shutdown(shared = [x, y, near])]
            fn shutdown(cx: shutdown::Context) {
                assert_eq!((cx.shared.y.0, cx.shared.y.1), (2 * ROUNDS, 2 * ROUNDS));
                // As far as `idle` has progressed.
                assert!((3 * ROUNDS + 20..=4 * ROUNDS + 20).contains(&cx.shared.x.0));
                assert!((ROUNDS + 20..=2 * ROUNDS + 20).contains(&cx.shared.near.0));
            }
        }
    };
}

app!(parts, [partitions = [one, two]], [core = one,], [core = two,]);
app!(global, [executor = "global"], [], []);

macro_rules! runs {
    ($name:ident) => {
        let _alone = crate::alone();
        for config in both() {
            let report = $name::run(config).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Shutdown, "{report}");
            assert_eq!(LEFT.load(Ordering::Relaxed), 0);
        }
    };
}

#[test]
fn opposite_orders_across_partitions() {
    if two_cpus().is_some() {
        runs!(parts);
    }
}

#[test]
fn opposite_lock_orders_under_global_executor() {
    runs!(global);
}

/// Property of the global executor's mutexes in addition to exclusion: a free one is refused below
/// a held ceiling.
mod ceiling {
    use std::sync::atomic::{AtomicBool, Ordering};

    use punctual::report::Outcome;

    use crate::partitions::{both, two_cpus};

    /// Set when `low` is in `y`, when `high` is about to lock `x`, and when `low` has left `y`.
    pub(crate) static STEPS: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

    #[punctual::app(main = false, executor = "global")]
    mod app {
        use std::sync::atomic::Ordering;

        use punctual::prelude::*;

        use super::STEPS;
        use crate::partitions::spin_until;

        #[shared]
        struct Shared {
            x: u32,
            y: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            low::spawn().unwrap();
            high::spawn().unwrap();
            (Shared { x: 0, y: 0 }, Local {})
        }

        #[task(priority = 1, shared = [x, y])]
        fn low(mut cx: low::Context) {
            cx.shared.y.lock(|y| {
                STEPS[0].store(true, Ordering::Release);
                assert!(spin_until(&STEPS[1]), "`high` runs beside this");
                // Enough time for it to enter, if it could.
                (0..100_000).for_each(|_| std::hint::spin_loop());
                cx.shared.x.lock(|x| *y += *x);
                STEPS[2].store(true, Ordering::Release);
            });
        }

        #[task(priority = 2, shared = [x, y])]
        fn high(mut cx: high::Context) {
            assert!(spin_until(&STEPS[0]), "`low` runs beside this");
            STEPS[1].store(true, Ordering::Release);
            cx.shared.x.lock(|x| {
                assert!(STEPS[2].load(Ordering::Acquire), "`x` is free, and `y` has the same ceiling");
                *x += 1;
            });
            punctual::shutdown();
        }
    }

    #[test]
    fn free_mutex_below_system_ceiling_is_not_granted() {
        if two_cpus().is_some() {
            let _alone = crate::alone();
            for _ in 0..20 {
                STEPS.iter().for_each(|step| step.store(false, Ordering::Relaxed));
                let [real, _] = both();
                let report = app::run(real).expect("the app starts");
                assert_eq!(report.outcome, Outcome::Shutdown, "{report}");
            }
        }
    }
}

//! Jobs that run in parallel, as those of one partition never do.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual::report::Outcome;

use crate::partitions::{both, spin_until, two_cpus};

pub(crate) static HERE: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// Each waits, without yielding its CPU, until the other one has arrived.
pub(crate) fn meet(me: usize) {
    HERE[me].store(true, Ordering::Release);
    assert!(spin_until(&HERE[1 - me]), "the other one does not run beside this one");
}

macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($one:tt)*], [$($two:tt)*]) => {
        #[punctual::app(main = false, $($args)*)]
        pub(crate) mod $name {
            use std::sync::atomic::Ordering;

            use punctual::prelude::*;

            use super::{HERE, meet};

            #[shared]
            struct Shared {
                /// Its ceiling is the level of `over`, which is not delayed if it does not use the
                /// resource.
                low: u32,
            }

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context) -> (Shared, Local) {
                HERE.iter().for_each(|here| here.store(false, Ordering::Relaxed));
                under::spawn().unwrap();
                over::spawn().unwrap();
                (Shared { low: 0 }, Local {})
            }

            /// In a critical section, whose ceiling is below `over`.
            #[task($($one)* priority = 1, shared = [low])]
            fn under(mut cx: under::Context) {
                cx.shared.low.lock(|low| {
                    meet(0);
                    *low += 1;
                });
                punctual::shutdown();
            }

            /// Makes `low` a shared resource.
            #[task($($one)* priority = 2, shared = [low])]
            fn between(mut cx: between::Context) {
                cx.shared.low.lock(|low| *low += 1);
            }

            #[task($($two)* priority = 3)]
            fn over(_: over::Context) {
                meet(1);
                // `under` may have ended in the meantime.
                let _ = between::spawn();
            }
        }
    };
}

app!(parts, [partitions = [one, two]], [core = one,], [core = two,]);
app!(global, [executor = "global"], [], []);

macro_rules! runs {
    ($name:ident) => {
        if two_cpus().is_some() {
            let _alone = crate::alone();
            let [real, _] = both();
            let report = $name::run(real).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Shutdown, "{report}");
        }
    };
}

#[test]
fn of_two_partitions() {
    runs!(parts);
}

#[test]
fn two_levels_of_global_executor() {
    runs!(global);
}

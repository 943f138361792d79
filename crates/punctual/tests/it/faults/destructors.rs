//! Destructors that panic outside of jobs: of messages, payloads, resources, futures, wakers. Each
//! is a fault of the app, does not prevent other drops, and leaves no state for the next run.

use std::panic::{catch_unwind, panic_any};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

use punctual::report::Outcome;
use punctual::{Config, Report, StartError};

/// The value that panics when dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bomb {
    None,
    /// A message that waits for its job.
    Message,
    /// A released message that is dropped because of another fault.
    DroppedMessage,
    /// The payload of a panic of `idle`.
    IdlePayload,
    /// The payload of a panic of a job.
    JobPayload,
    /// Two shared resources.
    Resources,
    /// A local without a user.
    Unused,
    /// A value in the future of an async task.
    Future,
}

/// Every bomb except none, with the outcome's culprit and message.
const BOMBS: [(Bomb, &str, &str); 7] = [
    (Bomb::Message, "drop of an argument for later", "a bomb"),
    (Bomb::DroppedMessage, "message", "a fault"),
    (Bomb::IdlePayload, "idle", "(the panic carries no text)"),
    (Bomb::JobPayload, "message", "(the panic carries no text)"),
    (Bomb::Resources, "drop of one", "a bomb"),
    (Bomb::Unused, "drop of unused", "a bomb"),
    (Bomb::Future, "pending", "a bomb"),
];

/// Number of dropped counted values.
static DROPPED: AtomicU32 = AtomicU32::new(0);
/// Number of runs of the hook.
static HOOKS: AtomicU32 = AtomicU32::new(0);
/// The threads that have polled the local task, with the value it was created with.
static POLLS: Mutex<Vec<(ThreadId, u32)>> = Mutex::new(Vec::new());
/// Number of the run.
static RUN: AtomicU32 = AtomicU32::new(0);

/// Counted when dropped, and may panic then.
pub(crate) struct Counted {
    panics: bool,
}

impl Counted {
    fn new(panics: bool) -> Self {
        Self { panics }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "a bomb");
    }
}

macro_rules! app {
    ($name:ident, $($arguments:tt)*) => {
        #[punctual::app(main = false, $($arguments)*)]
        mod $name {
            use std::future::pending as for_ever;

            use punctual::prelude::*;

            use super::*;

            #[shared]
            struct Shared {
                one: Counted,
                two: Counted,
                three: Counted,
            }

            #[local]
            struct Local {
                bomb: Bomb,
                idles: Bomb,
                retained: Counted,
                #[allow(dead_code, reason = "it is for being dropped")]
                unused: Counted,
            }

            #[init]
            fn init(_: init::Context, bomb: Bomb) -> (Shared, Local) {
                let panics = |when| Counted::new(bomb == when);
                // The first panics, and the others are dropped nevertheless.
                for at in 0..3 {
                    assert!(later::spawn_after(3600.secs(), Counted::new(bomb == Bomb::Message && at == 0)).is_ok());
                }
                pending::spawn(panics(Bomb::Future)).ok().unwrap();
                message::spawn().unwrap();
                let (one, two) = (panics(Bomb::Resources), panics(Bomb::Resources));
                let shared = Shared { one, two, three: Counted::new(false) };
                let local = Local { bomb, idles: bomb, retained: Counted::new(false), unused: panics(Bomb::Unused) };
                (shared, local)
            }

            #[idle(local = [idles])]
            fn idle(cx: idle::Context) {
                match cx.local.idles {
                    Bomb::IdlePayload => panic_any(Counted::new(true)),
                    Bomb::None | Bomb::Message | Bomb::Resources | Bomb::Unused | Bomb::Future => punctual::shutdown(),
                    Bomb::JobPayload | Bomb::DroppedMessage => {}
                }
            }

            #[task(priority = 3, local = [bomb])]
            fn message(cx: message::Context) {
                match cx.local.bomb {
                    Bomb::JobPayload => panic_any(Counted::new(true)),
                    Bomb::DroppedMessage => {
                        (0..2).for_each(|_| soon::spawn(Counted::new(true)).ok().unwrap());
                        panic!("a fault");
                    }
                    _ => {}
                }
            }

            /// Released at once and then dropped: it is of the level that `message` occupies.
            #[task(priority = 3, capacity = 2)]
            fn soon(_: soon::Context, _counted: Counted) {
                panic!("it never runs");
            }

            #[task(priority = 2, capacity = 3, shared = [one, two, three])]
            fn later(_: later::Context, _counted: Counted) {
                panic!("it never runs");
            }

            #[task(priority = 4, local = [retained])]
            async fn pending(cx: pending::Context, _counted: Counted) {
                let _kept = cx.local.retained;
                for_ever::<()>().await;
            }

            #[task(priority = 1, local_task)]
            async fn stays(_: stays::Context, mine: Rc<u32>) {
                loop {
                    note(*mine);
                    punctual::delay(1.millis()).await;
                }
            }

            #[task(priority = 1, period = 3600.secs(), local = [begun: bool = false])]
            fn starts(cx: starts::Context) {
                assert!(!std::mem::replace(cx.local.begun, true), "a local of this run");
                // Rejected if the app is stopping by now.
                let _ = cx.local_spawner.stays(Rc::new(RUN.load(Ordering::Relaxed)));
            }

            #[shutdown]
            fn shutdown(_: shutdown::Context) {
                HOOKS.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
}

fn note(run: u32) {
    POLLS.lock().unwrap_or_else(PoisonError::into_inner).push((thread::current().id(), run));
}

app!(partition,);
app!(polling, partitions = [fast(poll)]);
app!(global, executor = "global");

type Run = fn(Config, Bomb) -> Result<Report, StartError>;

/// Every app and configuration.
fn each(test: impl Fn(Run, &Config)) {
    let _alone = crate::alone();
    for executor in crate::faults::executors() {
        let run: Run = match executor {
            crate::faults::Executor::Partition => partition::run,
            crate::faults::Executor::Polling => polling::run,
            crate::faults::Executor::Global => global::run,
        };
        for config in [Config::new(), Config::new().virtual_time()] {
            test(run, &config);
        }
    }
}

/// Runs the app and checks that everything was dropped, the hook has run, and nothing from another
/// run was polled.
fn run(run: Run, config: &Config, bomb: Bomb) -> Report {
    DROPPED.store(0, Ordering::Relaxed);
    HOOKS.store(0, Ordering::Relaxed);
    POLLS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let number = RUN.fetch_add(1, Ordering::Relaxed) + 1;
    let report = run(config.clone(), bomb).expect("the app starts");
    let more = match bomb {
        Bomb::DroppedMessage => 2,
        Bomb::IdlePayload | Bomb::JobPayload => 1,
        _ => 0,
    };
    // Three messages, one in the future, three shared, two local.
    assert_eq!(DROPPED.load(Ordering::Relaxed), 3 + 1 + 3 + 2 + more, "{bomb:?}, {config:?}");
    assert_eq!(HOOKS.load(Ordering::Relaxed), 1, "{bomb:?}, {config:?}");
    let polls = POLLS.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(polls.iter().all(|poll| *poll == (polls[0].0, number)), "{bomb:?}, {config:?}: {polls:?}");
    report
}

#[test]
fn panic_is_a_fault_that_drops_jobs_runs_hook_and_leaves_next_run_clean() {
    each(|app, config| {
        for (bomb, task, message) in BOMBS {
            let report = run(app, config, bomb);
            let expected = Outcome::Panicked { task: task.into(), message: message.into() };
            assert_eq!(report.outcome, expected, "{bomb:?}, {config:?}");
            assert_eq!(report.exit_code(), 101);
            assert_eq!(run(app, config, Bomb::None).outcome, Outcome::Shutdown, "after {bomb:?}, {config:?}");
        }
    });
}

/// Initial values that panic halfway, and event sources without a descriptor.
mod start {
    use super::*;

    static MADE: AtomicU32 = AtomicU32::new(0);
    static PANICS: AtomicBool = AtomicBool::new(false);

    #[punctual::app(main = false)]
    mod app {
        use super::super::Counted;

        #[shared]
        struct Shared {
            shared: Counted,
        }

        #[local]
        struct Local {
            local: Counted,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared { shared: Counted::new(false) }, Local { local: Counted::new(false) })
        }

        #[task(priority = 1, shared = [shared], local = [local, one: Counted = super::make(), two: Counted = super::make()])]
        fn task(_: task::Context) {}

        #[idle]
        fn idle(_: idle::Context) {
            punctual::shutdown();
        }
    }

    /// A run that does not start drops the arguments of `init`, and a panic there can only be
    /// reported to the caller.
    macro_rules! with_argument {
        ($name:ident) => {
            #[punctual::app(main = false)]
            mod $name {
                use super::super::Counted;

                #[shared]
                struct Shared {}

                #[local]
                struct Local {}

                #[init]
                fn init(_: init::Context, _argument: Counted) -> (Shared, Local) {
                    (Shared {}, Local {})
                }
            }
        };
    }

    with_argument!(on_threads);
    with_argument!(in_virtual_time);

    #[test]
    fn rejects_second_run_without_reset() {
        type Run = fn(Config, Counted) -> Result<Report, StartError>;
        let _alone = crate::alone();
        let runs: [(Run, Config, &str); 2] = [
            (on_threads::run, Config::new(), "on_threads"),
            (in_virtual_time::run, Config::new().virtual_time(), "in_virtual_time"),
        ];
        for (run, config, name) in runs {
            let refused = || run(config.clone().stack(1), Counted::new(false));
            assert!(matches!(refused(), Err(StartError::Stack { .. })), "{name}");
            assert!(matches!(refused(), Err(StartError::Stack { .. })), "{name}: it may be tried again");
            let broken_off = catch_unwind(|| run(config.clone().stack(1), Counted::new(true)));
            assert!(broken_off.is_err(), "{name}");
            let config = config.until(punctual::Duration::from_secs(1));
            let error = run(config, Counted::new(false)).expect_err("it was not reset");
            assert!(matches!(error, StartError::NotReset(app) if app == name), "{error}");
            assert_eq!(error.exit_code(), 1);
            assert!(error.to_string().contains("restart the process"), "{error}");
        }
    }

    fn make() -> Counted {
        let first = MADE.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        assert!(first || !PANICS.load(Ordering::Relaxed), "no value");
        Counted::new(false)
    }

    #[test]
    fn panicking_initializer_drops_earlier_values() {
        each(|_, config| {
            for (panics, dropped) in [(true, 3), (false, 4)] {
                PANICS.store(panics, Ordering::Relaxed);
                DROPPED.store(0, Ordering::Relaxed);
                let outcome = app::run(config.clone()).expect("the app starts").outcome;
                let expected = match panics {
                    true => Outcome::Panicked { task: "init".into(), message: "no value".into() },
                    false => Outcome::Shutdown,
                };
                assert_eq!(outcome, expected);
                assert_eq!(DROPPED.load(Ordering::Relaxed), dropped);
            }
        });
    }
}

/// A job panics, and while it unwinds, the destructors of messages that the fault drops panic on
/// another thread.
mod meanwhile {
    use std::sync::Condvar;
    use std::time::Duration;

    use super::*;

    /// Number of dropped messages, and whether the job before them may end.
    static STATE: Mutex<(u32, bool)> = Mutex::new((0, false));
    static CHANGED: Condvar = Condvar::new();

    fn change(change: impl FnOnce(&mut (u32, bool))) {
        change(&mut STATE.lock().unwrap_or_else(PoisonError::into_inner));
        CHANGED.notify_all();
    }

    /// Waits for a change, for at most a minute.
    fn wait(is_late: impl Fn(&mut (u32, bool)) -> bool) {
        let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        drop(CHANGED.wait_timeout_while(state, Duration::from_secs(60), is_late));
    }

    #[punctual::app(main = false, executor = "global")]
    mod app {
        use punctual::prelude::*;

        use super::{change, wait};

        pub(crate) struct Message;

        impl Drop for Message {
            fn drop(&mut self) {
                change(|(dropped, _)| *dropped += 1);
                panic!("a later fault");
            }
        }

        struct Unwinding;

        impl Drop for Unwinding {
            fn drop(&mut self) {
                change(|(_, ends)| *ends = true);
                // The fault of the first message has been recorded by then.
                wait(|(dropped, _)| *dropped < 2);
            }
        }

        #[shared]
        struct Shared {
            value: u32,
        }

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            before::spawn().unwrap();
            (0..2).for_each(|_| message::spawn(Message).ok().unwrap());
            first::spawn().unwrap();
            (Shared { value: 0 }, Local {})
        }

        #[task(priority = 2, shared = [value])]
        fn first(cx: first::Context) {
            let mut value = cx.shared.value;
            let _unwinding = Unwinding;
            value.lock(|_| panic!("the first fault"));
        }

        #[task(priority = 1)]
        fn before(_: before::Context) {
            wait(|(_, ends)| !*ends);
        }

        #[task(priority = 1, capacity = 2, shared = [value])]
        fn message(_: message::Context, _message: Message) {
            panic!("it never runs");
        }
    }

    #[test]
    fn names_first_fault_although_a_later_one_is_recorded_before() {
        let _alone = crate::alone();
        let outcome = app::run(Config::new()).expect("the app starts").outcome;
        let expected = Outcome::Panicked { task: "first".into(), message: "the first fault".into() };
        assert_eq!((outcome, STATE.lock().unwrap().0), (expected, 2));
    }
}

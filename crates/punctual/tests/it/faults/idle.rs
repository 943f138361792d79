//! `#[shutdown]` together with an `idle` that does not return, or returns late.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

use rustix::process::Signal;

use crate::faults::{EXECUTORS, Executor, executors};
use crate::privileges;
use crate::process::{self, Ended};

/// True after the hook has begun.
static HOOK: AtomicBool = AtomicBool::new(false);
/// True after `idle` has ended.
static OVER: AtomicBool = AtomicBool::new(false);
/// Lock that an orderly exit of the process waits for.
static EXIT: Mutex<()> = Mutex::new(());

extern "C" fn exits() {
    println!("EXITS");
    drop(EXIT.lock());
}

/// Behavior of `idle` when the app stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It continues.
    GoesOn,
    /// It returns as soon as the hook runs on the other thread.
    ReturnsLate,
    /// It stays in a critical section.
    HoldsLock,
    /// It holds the lock that an exit handler of the process waits for.
    BlocksExit,
}

const MANNERS: [Manner; 4] = [Manner::GoesOn, Manner::ReturnsLate, Manner::HoldsLock, Manner::BlocksExit];

macro_rules! app {
    ($name:ident, [$($arguments:tt)*], [$($idle:tt)*], [$($idle_shared:tt)*], [$($hook_shared:tt)*]) => {
        #[punctual::app(main = false, $($arguments)*)]
        pub(super) mod $name {
            use std::sync::atomic::Ordering;
            use std::time::{Duration, Instant};

            use punctual::prelude::*;

            use crate::faults::idle::{EXIT, HOOK, Manner, OVER, idle_thread_sleeps};

            pub(crate) struct Dropped;

            impl Drop for Dropped {
                fn drop(&mut self) {
                    println!("DROPPED");
                }
            }

            struct Over;

            impl Drop for Over {
                fn drop(&mut self) {
                    OVER.store(true, Ordering::Release);
                }
            }

            #[shared]
            struct Shared {
                read: u32,
                locked: u32,
                other: u32,
                #[allow(dead_code, reason = "it is for being dropped")]
                dropped: Dropped,
            }

            #[local]
            struct Local {
                manner: Manner,
                mine: Vec<u32>,
                yours: Vec<u32>,
            }

            #[init]
            fn init(_: init::Context, manner: Manner) -> (Shared, Local) {
                let shared = Shared { read: 1, locked: 2, other: 3, dropped: Dropped };
                (shared, Local { manner, mine: Vec::new(), yours: Vec::new() })
            }

            #[idle(local = [manner, mine, own: u32 = 0, $($idle)*], shared = [locked, $($idle_shared)*])]
            fn idle(mut cx: idle::Context) {
                let _over = Over;
                let _exit = (*cx.local.manner == Manner::BlocksExit).then(|| EXIT.lock());
                println!("READY");
                if *cx.local.manner == Manner::HoldsLock {
                    cx.shared.locked.lock(|_| loop {
                        std::thread::yield_now();
                    })
                }
                while *cx.local.manner != Manner::ReturnsLate || !HOOK.load(Ordering::Acquire) {
                    *cx.local.own += 1;
                    cx.local.mine.push(1);
                    cx.local.mine.truncate(100);
                    std::thread::yield_now();
                }
            }

            #[task(priority = 3, shared = [&read, locked, other])]
            fn above(_: above::Context) {}

            #[shutdown(local = [own: u32 = 0, yours], shared = [$($hook_shared)*])]
            fn shutdown(cx: shutdown::Context) {
                HOOK.store(true, Ordering::Release);
                *cx.local.own += 1;
                cx.local.yours.push(1);
                let begun = Instant::now();
                let returns = *cx.shared.read == 1 && super::returns_late();
                // Its thread has every opportunity to continue, and to run the hook as well or to
                // drop the resources.
                while returns
                    && !(OVER.load(Ordering::Acquire) && idle_thread_sleeps())
                    && begun.elapsed() < Duration::from_secs(2)
                {
                    std::thread::yield_now();
                }
                println!("HOOK");
            }
        }
    };
}

macro_rules! apps {
    ($($name:ident: [$($arguments:tt)*];)+) => {
        /// Locals declared by both under one name are separate, and `read` is only read.
        mod apart {
            use super::returns_late;
            $(app!($name, [$($arguments)*], [], [&read], [&read, other]);)+
        }

        /// A local shared by both.
        mod one_local {
            use super::returns_late;
            $(app!($name, [$($arguments)*], [yours], [&read], [&read]);)+
        }

        /// Two resources shared by both.
        mod two_shared {
            use super::returns_late;
            $(app!($name, [$($arguments)*], [], [&read, other], [&read, locked, other]);)+
        }

        fn run(common: Common, executor: Executor, config: Config) -> Result<Report, StartError> {
            let manner = process::chosen("MANNER", MANNERS);
            match (common, executor) {
                $((Common::Nothing, Executor::$name) => apart::$name::run(config, manner),
                (Common::Local, Executor::$name) => one_local::$name::run(config, manner),
                (Common::Shared, Executor::$name) => two_shared::$name::run(config, manner),)+
            }
        }
    };
}

#[expect(non_snake_case, reason = "the modules are called like the executors")]
mod apps {
    use punctual::{Config, Report, StartError};

    use super::{Common, MANNERS, returns_late};
    use crate::faults::Executor;
    use crate::process;

    apps! {
        Partition: [];
        Polling: [partitions = [fast(poll)]];
        Global: [executor = "global"];
    }

    pub(super) fn program(common: Common, executor: Executor, config: Config) -> Result<Report, StartError> {
        run(common, executor, config)
    }
}

/// Resources shared by `idle` and the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Common {
    Nothing,
    Local,
    Shared,
}

static IDLE_THREAD: AtomicI32 = AtomicI32::new(0);

fn idle_thread_sleeps() -> bool {
    let path = format!("/proc/self/task/{}/stat", IDLE_THREAD.load(Ordering::Relaxed));
    let stat = std::fs::read_to_string(path).expect("a process can see its threads");
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" S"))
}

fn returns_late() -> bool {
    process::chosen("MANNER", MANNERS) == Manner::ReturnsLate
}

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    IDLE_THREAD.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    let common = process::chosen("COMMON", [Common::Nothing, Common::Local, Common::Shared]);
    let executor = process::chosen("EXECUTOR", EXECUTORS);
    // SAFETY: the function may be called at any time, on any thread.
    assert_eq!(unsafe { libc::atexit(exits) }, 0);
    process::exit(punctual::export::main(|config| apps::program(common, executor, config)));
}

/// Ends the app on each executor by a signal, with and without privileges, and checks the end.
fn each(common: Common, manner: Manner, code: i32, check: impl Fn(&Ended) -> bool + Sync) {
    each_of(executors(), common, manner, code, check);
}

fn each_of(
    executors: impl Iterator<Item = Executor>,
    common: Common,
    manner: Manner,
    code: i32,
    check: impl Fn(&Ended) -> bool + Sync,
) {
    thread::scope(|scope| {
        for executor in executors {
            for mut command in privileges::with_and_without(process::program("faults::idle::program")) {
                command.env("COMMON", format!("{common:?}")).env("MANNER", format!("{manner:?}"));
                command.env("EXECUTOR", format!("{executor:?}"));
                let check = &check;
                // Each takes a second or more, most of it waiting.
                scope.spawn(move || {
                    let mut running = process::start(command);
                    running.wait_for("READY");
                    running.signal(Signal::TERM);
                    let ended = running.end();
                    let what = format!("{common:?}, {manner:?}, {executor:?}: {ended:?}");
                    assert_eq!(ended.code, code, "{what}");
                    assert!(check(&ended), "{what}");
                    assert!(!ended.output.contains("DROPPED"), "{what}");
                });
            }
        }
    });
}

#[test]
fn hook_runs_in_parallel_with_independent_idle() {
    each(Common::Nothing, Manner::GoesOn, 0, |ended| ended.output.matches("HOOK").count() == 1);
}

#[test]
fn hook_runs_once_if_idle_returns_during_it() {
    each(Common::Nothing, Manner::ReturnsLate, 0, |ended| ended.output.matches("HOOK").count() == 1);
}

#[test]
fn hook_waits_for_idle_with_shared_local() {
    let words = "idle may be using `yours`, which #[shutdown] uses too, so #[shutdown] does not run; call \
                 punctual::wait_for_event() in the loop of idle";
    each(Common::Local, Manner::GoesOn, 1, |ended| {
        ended.output.contains(words) && !ended.output.contains("HOOK")
    });
}

#[test]
fn hook_waits_for_idle_with_its_shared_resources() {
    let words = "idle may be using `locked` and `other`, which #[shutdown] uses too";
    each(Common::Shared, Manner::GoesOn, 1, |ended| {
        ended.output.contains(words) && !ended.output.contains("HOOK")
    });
}

#[test]
fn hook_waits_for_critical_section_of_idle() {
    let words = "idle holds the lock of a resource, so #[shutdown] does not run";
    each_of(executors().filter(|e| *e != Executor::Global), Common::Nothing, Manner::HoldsLock, 1, |ended| {
        ended.output.contains(words) && !ended.output.contains("HOOK")
    });
}

#[test]
fn raises_where_lock_is_not_a_level() {
    // The hook does not use the resource that `idle` has locked.
    let global = std::iter::once(Executor::Global);
    each_of(global, Common::Nothing, Manner::HoldsLock, 0, |ended| ended.output.contains("HOOK"));
}

#[test]
fn exit_does_not_wait_for_lock_of_idle() {
    each(Common::Nothing, Manner::BlocksExit, 0, |ended| {
        ended.output.contains("HOOK") && ended.output.contains("EXITS")
    });
}

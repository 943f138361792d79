//! Effect of a fault or a signal on the process: the printed messages, and a complete run of the
//! hook.

use std::panic::set_hook;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use punctual::Config;
use rustix::process::Signal;
use signal_hook::consts::SIGTERM;

use crate::{privileges, process};

mod panics {
    #[punctual::app(main = false)]
    pub(super) mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            job::spawn().unwrap();
            (Shared {}, Local {})
        }

        #[task(priority = 2)]
        fn job(_: job::Context) {
            panic!("somewhere");
        }
    }
}

/// Receiver of a panic's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hook {
    Ours,
    Theirs,
    TheirsInVirtualTime,
}

#[test]
#[ignore = "a program that the other tests run"]
fn panicking_program() {
    set_hook(Box::new(|info| eprintln!("THEIRS: {info}")));
    let config = match process::chosen("HOOK", [Hook::Ours, Hook::Theirs, Hook::TheirsInVirtualTime]) {
        Hook::Ours => Config::new(),
        Hook::Theirs => Config::new().keep_panic_hook(true),
        Hook::TheirsInVirtualTime => Config::new().virtual_time(),
    };
    process::exit(punctual::export::main(|_| panics::app::run(config)));
}

/// Returns the lines that the program prints at the end.
fn printed(hook: Hook) -> [String; 2] {
    privileges::with_and_without(process::program("faults::process_end::panicking_program")).map(
        |mut command| {
            command.env("HOOK", format!("{hook:?}"));
            let ended = process::start(command).end();
            assert_eq!(ended.code, 101, "{ended:?}");
            assert!(ended.output.contains("punctual: task `job` panicked: somewhere"), "{ended:?}");
            ended.output
        },
    )
}

#[test]
fn app_threads_do_not_call_panic_hook() {
    for printed in printed(Hook::Ours) {
        assert!(!printed.contains("THEIRS"), "{printed}");
        assert!(printed.contains("panicked at") && printed.contains("process_end.rs"), "{printed}");
    }
}

#[test]
fn called_if_registered_or_virtual_time() {
    for hook in [Hook::Theirs, Hook::TheirsInVirtualTime] {
        for printed in printed(hook) {
            assert_eq!(printed.matches("THEIRS").count(), 1, "{hook:?}: {printed}");
            assert_eq!(printed.matches("panicked at").count(), 1, "{hook:?}: {printed}");
        }
    }
}

/// True after the program has got the signal that a test sends.
static SIGNALLED: AtomicBool = AtomicBool::new(false);

mod stops {
    #[punctual::app(main = false)]
    pub(super) mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[idle]
        fn idle(_: idle::Context) {
            punctual::shutdown();
        }

        #[shutdown]
        fn shutdown(_: shutdown::Context) {
            println!("BEGUN");
            super::super::wait_until_signal_is_seen();
            println!("HOOK");
        }
    }
}

/// Returns the number of times that the supervisor has gone to sleep.
fn supervisor_sleeps() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").expect("a process can see its threads");
    let texts = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("status")).ok());
    let supervisor = texts.into_iter().find(|text| text.starts_with("Name:\tpunctual-watch"));
    let supervisor = supervisor.expect("an app that runs on threads has a supervisor");
    crate::polling::voluntary_switches(&supervisor)
}

/// Waits until the supervisor has checked for signals twice since the signal.
fn wait_until_signal_is_seen() {
    let begun = Instant::now();
    let wait = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the supervisor does nothing");
            std::thread::yield_now();
        }
    };
    wait(&|| SIGNALLED.load(Ordering::Acquire));
    let before = supervisor_sleeps();
    wait(&|| supervisor_sleeps() >= before + 3);
}

#[test]
#[ignore = "a program that the other tests run"]
fn stopping_program() {
    let action = || SIGNALLED.store(true, Ordering::Release);
    // SAFETY: a signal handler may write to an atomic.
    unsafe { signal_hook::low_level::register(SIGTERM, action) }.expect("handlers can be installed");
    process::exit(punctual::export::main(|_| stops::app::run(Config::new())));
}

#[test]
fn first_signal_during_shutdown_lets_hook_finish() {
    for command in privileges::with_and_without(process::program("faults::process_end::stopping_program")) {
        let mut running = process::start(command);
        running.wait_for("BEGUN");
        running.signal(Signal::TERM);
        let ended = running.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(ended.output.contains("HOOK"), "{ended:?}");
    }
}

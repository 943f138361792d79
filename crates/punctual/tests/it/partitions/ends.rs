//! How apps of several partitions end: shutdown, signals and panics, in either partition.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use punctual::Config;
use rustix::process::Signal;

use crate::partitions::{end, ends_with, two_cpus};
use crate::{privileges, process};

/// The way in which the app ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// A job of the first partition calls `shutdown`.
    First,
    /// A job of the second partition does.
    Second,
    /// A job of the second partition panics in a critical section that one of the first waits for.
    Panics,
    /// The process gets a signal.
    Signal,
    /// `init` panics.
    Init,
}

const ENDS: [End; 5] = [End::First, End::Second, End::Panics, End::Signal, End::Init];

/// Set when the job of the second partition is in its critical section, and when that of the first
/// is about to lock.
pub(crate) static INSIDE: AtomicBool = AtomicBool::new(false);
pub(crate) static ASKING: AtomicBool = AtomicBool::new(false);

macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($one:tt)*], [$($two:tt)*]) => {
        #[punctual::app(main = false, $($args)*)]
        pub(crate) mod $name {
            use std::sync::atomic::Ordering;

            use punctual::prelude::*;

            use super::{ASKING, End, INSIDE};
            use crate::partitions::spin_until;

            #[shared]
            struct Shared {
                end: End,
                gauge: u32,
            }

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context, end: End) -> (Shared, Local) {
                INSIDE.store(false, Ordering::Relaxed);
                ASKING.store(false, Ordering::Relaxed);
                second::spawn().unwrap();
                first::spawn().unwrap();
                assert!(end != End::Init, "here");
                (Shared { end, gauge: 0 }, Local {})
            }

            #[task($($one)* priority = 2, shared = [&end, gauge])]
            fn first(mut cx: first::Context) {
                assert!(spin_until(&INSIDE), "`second` runs at the same time");
                ASKING.store(true, Ordering::Release);
                cx.shared.gauge.lock(|gauge| {
                    *gauge += 1;
                    println!("FIRST FOUND {gauge}");
                });
                match cx.shared.end {
                    End::First => {
                        assert!(never::spawn().is_ok());
                        punctual::shutdown();
                        assert!(second::spawn().is_ok(), "it counts as one that is not run");
                    }
                    End::Signal => println!("READY"),
                    _ => {}
                }
            }

            /// Waits for a while.
            #[task($($one)* priority = 3)]
            fn never(_: never::Context) {}

            #[task($($two)* priority = 1, shared = [&end, gauge])]
            fn second(mut cx: second::Context) {
                let end = *cx.shared.end;
                cx.shared.gauge.lock(|gauge| {
                    *gauge = 7;
                    INSIDE.store(true, Ordering::Release);
                    assert!(spin_until(&ASKING), "`first` runs at the same time");
                    if end == End::Panics {
                        queued::spawn().unwrap();
                        panic!("here");
                    }
                });
                if end == End::Second {
                    punctual::shutdown();
                    assert!(never::spawn().is_ok(), "it counts as one that is not run");
                }
            }

            /// At the level of `second`, so it waits for its end, and is dropped after a panic.
            #[task($($two)* priority = 1)]
            fn queued(_: queued::Context) {
                println!("QUEUED");
            }

            #[shutdown(shared = [gauge])]
            fn shutdown(cx: shutdown::Context) {
                println!("HOOK {}", cx.shared.gauge);
            }
        }
    };
}

app!(parts, [partitions = [one, two]], [core = one,], [core = two,]);
app!(global, [executor = "global"], [], []);

const END: &str = "END";

fn chosen() -> End {
    process::chosen(END, ENDS)
}

#[test]
#[ignore = "a program that the other tests run"]
fn program_parts() {
    process::exit(punctual::export::main(|config| parts::run(config, chosen())));
}

#[test]
#[ignore = "a program that the other tests run"]
fn program_global() {
    process::exit(punctual::export::main(|config| global::run(config, chosen())));
}

/// Runs a program to each of the ends.
fn ends(program: impl Fn() -> Command) {
    for what in ENDS {
        let mut command = program();
        command.env(END, format!("{what:?}"));
        privileges::no_runaways(&mut command);
        let ended = match what {
            End::Signal => {
                let mut running = process::start(command);
                running.wait_for("READY");
                running.signal(Signal::TERM);
                running.end()
            }
            _ => end(command),
        };
        let locked = ["FIRST FOUND 8", "HOOK 8"];
        match what {
            End::Panics => {
                let message = "punctual: task `second` panicked: here; the app stops";
                ends_with(&ended, 101, &[message, locked[0], locked[1]]);
                assert!(!ended.output.contains("QUEUED"), "{}", ended.output);
            }
            End::Init => {
                ends_with(&ended, 101, &["punctual: task `init` panicked: here; the app stops"]);
                assert!(
                    !ended.output.contains("FOUND") && !ended.output.contains("HOOK"),
                    "{}",
                    ended.output
                );
            }
            _ => ends_with(&ended, 0, &locked),
        }
    }
}

#[test]
fn of_two_partitions() {
    if two_cpus().is_some() {
        let _alone = crate::alone();
        let program = || process::program("partitions::ends::program_parts");
        ends(|| privileges::unprivileged(&program()));
        ends(program);
    }
}

#[test]
fn one_task_of_global_executor() {
    if two_cpus().is_some() {
        let _alone = crate::alone();
        let program = || process::program("partitions::ends::program_global");
        ends(|| privileges::unprivileged(&program()));
        ends(program);
    }
}

#[test]
fn restarts_after_every_kind_of_end() {
    if two_cpus().is_some() {
        let _alone = crate::alone();
        for what in ENDS.into_iter().filter(|end| *end != End::Signal).cycle().take(12) {
            let code = if matches!(what, End::Panics | End::Init) { 101 } else { 0 };
            let report = parts::run(Config::new(), what).expect("the app starts");
            assert_eq!(report.exit_code(), code, "{what:?}: {report}");
            let report = global::run(Config::new(), what).expect("the app starts");
            assert_eq!(report.exit_code(), code, "{what:?}: {report}");
        }
    }
}

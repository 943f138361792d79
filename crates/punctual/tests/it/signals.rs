//! SIGINT and SIGTERM end an app as `shutdown` does, and an app that does not end is ended
//! nevertheless.
//!
//! Every app runs as a separate program, with and without privileges.
#![cfg(feature = "signals")]

use std::panic::resume_unwind;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::process::{Ended, Running};
use crate::{privileges, process};
use rustix::process::Signal;

/// Behavior of the app until a signal arrives, and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Nothing.
    Rests,
    /// `idle` waits for events.
    Waits,
    /// `idle` neither returns nor waits for events.
    Idles,
    /// A job sees that the app stops, and does not end.
    Sticks,
}

const MANNERS: [Manner; 4] = [Manner::Rests, Manner::Waits, Manner::Idles, Manner::Sticks];

macro_rules! app {
    ($name:ident $(, $shared:ident)*) => {
        #[punctual::app(main = false)]
        mod $name {
            use std::thread::sleep;
            use std::time::Duration;

            use punctual::prelude::*;

            use super::Manner;

            /// Prints that `idle` was left in an orderly way.
            struct Left;

            impl Drop for Left {
                fn drop(&mut self) {
                    println!("LEFT");
                }
            }

            #[shared]
            struct Shared {
                value: u32,
            }

            #[local]
            struct Local {
                manner: Manner,
            }

            #[init]
            fn init(_: init::Context, manner: Manner) -> (Shared, Local) {
                if manner == Manner::Sticks {
                    stick::spawn().unwrap();
                }
                (Shared { value: 0 }, Local { manner })
            }

            #[idle(local = [manner], shared = [$($shared),*])]
            fn idle(cx: idle::Context) {
                let _left = Left;
                $(let mut $shared = cx.shared.$shared; $shared.lock(|value| *value += 1);)*
                let manner = *cx.local.manner;
                println!("READY");
                loop {
                    match manner {
                        Manner::Waits => punctual::wait_for_event(),
                        Manner::Idles => sleep(Duration::from_millis(10)),
                        Manner::Rests | Manner::Sticks => return,
                    }
                }
            }

            #[task(priority = 2)]
            fn stick(_: stick::Context) {
                println!("READY");
                while probe::spawn_after(1.secs()).is_ok_and(|probe| probe.cancel().is_ok()) {
                    sleep(Duration::from_millis(1));
                }
                println!("STOPPING");
                loop {
                    sleep(Duration::from_secs(1));
                }
            }

            #[task(priority = 1, shared = [value])]
            fn probe(mut cx: probe::Context) {
                cx.shared.value.lock(|value| *value += 1);
            }

            #[shutdown(shared = [value])]
            fn shutdown(cx: shutdown::Context) {
                println!("HOOK {}", cx.shared.value);
            }
        }
    };
}

app!(app);
app!(sharing, value);

/// Starts the app, with and without privileges, and lets `then` follow each to its end.
fn each(app: &str, manner: Manner, then: impl Fn(Running) -> Ended + Sync) -> [Ended; 2] {
    let start = |mut command: Command| {
        command.env("MANNER", format!("{manner:?}")).env("PUNCTUAL_REPORT", "1");
        let mut running = process::start(command);
        running.wait_for("READY");
        then(running)
    };
    // Some take seconds.
    thread::scope(|scope| {
        let runs = privileges::with_and_without(process::program(&format!("signals::{app}")))
            .map(|command| scope.spawn(|| start(command)));
        runs.map(|run| run.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Sends both in sequence, and checks that the app ends normally.
fn ends_well(app: &str, manner: Manner) -> Vec<Ended> {
    ends_with(0, app, manner)
}

/// Sends both in sequence, and checks the exit code.
fn ends_with(code: i32, app: &str, manner: Manner) -> Vec<Ended> {
    let each_signal = [Signal::INT, Signal::TERM].map(|signal| {
        let ended = each(app, manner, |running| {
            running.signal(signal);
            running.end()
        });
        for ended in &ended {
            assert_eq!(ended.code, code, "{manner:?}: {}", ended.output);
        }
        ended
    });
    each_signal.into_iter().flatten().collect()
}

#[test]
fn both_signals_stop_in_order() {
    for manner in [Manner::Rests, Manner::Waits] {
        for (ended, signal) in ends_well("program", manner).into_iter().zip(["INT", "INT", "TERM", "TERM"]) {
            for words in ["HOOK 0", "LEFT", &format!("app: stopped by SIG{signal} after")] {
                assert!(ended.output.contains(words), "{manner:?}, no `{words}` in: {}", ended.output);
            }
        }
    }
}

#[test]
fn endless_idle_does_not_prevent_hook() {
    for ended in ends_well("program", Manner::Idles) {
        assert!(ended.output.contains("HOOK 0"), "{}", ended.output);
        assert!(!ended.output.contains("LEFT"), "{}", ended.output);
    }
}

#[test]
fn reports_idle_with_shared_resources_as_blocking() {
    for ended in ends_with(1, "program_sharing", Manner::Idles) {
        assert!(!ended.output.contains("HOOK"), "{}", ended.output);
        assert!(ended.output.contains("punctual::wait_for_event()"), "{}", ended.output);
    }
    // An `idle` that waits for events has released its resources.
    for ended in ends_well("program_sharing", Manner::Waits) {
        assert!(ended.output.contains("HOOK 1"), "{}", ended.output);
    }
}

#[test]
fn second_signal_ends_at_once() {
    let ended = each("program", Manner::Sticks, |mut running| {
        running.signal(Signal::TERM);
        running.wait_for("STOPPING");
        running.signal(Signal::INT);
        running.end()
    });
    for ended in ended {
        assert_eq!(ended.code, 128 + 2, "{}", ended.output);
        assert!(ended.output.contains("second signal; the process ends now"), "{}", ended.output);
        assert!(!ended.output.contains("HOOK"), "{}", ended.output);
    }
}

#[test]
fn names_endless_job_and_ends_process() {
    let ended = each("program", Manner::Sticks, |running| {
        running.signal(Signal::TERM);
        running.end()
    });
    for ended in ended {
        assert_eq!(ended.code, 1, "{}", ended.output);
        let words = "stopped by SIGTERM, and the job at level 2 does not end; the process ends under it";
        assert!(ended.output.contains(words), "{}", ended.output);
        assert!(!ended.output.contains("HOOK"), "{}", ended.output);
    }
}

#[test]
fn signal_has_default_action_without_app() {
    let mut running = process::start(process::program("signals::program_afterwards"));
    running.wait_for("AFTERWARDS");
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, -15, "{}", ended.output);
}

fn manner() -> Manner {
    process::chosen("MANNER", MANNERS)
}

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    process::exit(punctual::export::main(|config| app::run(config, manner())));
}

#[test]
#[ignore = "a program that the other tests run"]
fn program_sharing() {
    process::exit(punctual::export::main(|config| sharing::run(config, manner())));
}

#[test]
#[ignore = "a program that the other tests run"]
fn program_afterwards() {
    let until = punctual::Duration::from_millis(1);
    app::run(punctual::Config::new().until(until), Manner::Rests).expect("the app starts");
    println!("AFTERWARDS");
    // Longer than the test waits, but bounded.
    std::thread::sleep(Duration::from_secs(60));
}

//! A system call that never returns, inside a critical section: the app is asked to stop, cannot,
//! and ends with an explanation.
//!
//! Every app runs as a separate program, on every executor, with and without privileges.
#![cfg(feature = "signals")]

mod ends;

use std::env;
use std::panic::resume_unwind;
use std::process::{Command, ExitCode};
use std::thread;

use crate::process::Ended;
use crate::{privileges, process};
use rustix::process::Signal;

/// The job that reads from an empty pipe, holding the resource that the others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    Idle,
    Low,
}

const HOLDERS: [Holder; 2] = [Holder::Idle, Holder::Low];

/// Reads from a pipe whose other end stays open; with standard error locked if the test requires
/// it.
pub(crate) fn read_for_ever() {
    let (mut reader, _writer) = std::io::pipe().expect("pipes can be made");
    println!("READS");
    let _locked = env::var_os("LOCKED").map(|_| std::io::stderr().lock());
    std::io::Read::read_exact(&mut reader, &mut [0]).expect("the other end stays open");
}

macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($low:tt)*], [$($high:tt)*]) => {
        #[punctual::app(main = false $($args)*)]
        mod $name {
            use punctual::prelude::*;

            use super::{Holder, read_for_ever};

            #[shared]
            struct Shared {
                held: u32,
                holder: Holder,
            }

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context, holder: Holder) -> (Shared, Local) {
                if holder == Holder::Low {
                    low::spawn().unwrap();
                }
                (Shared { held: 0, holder }, Local {})
            }

            #[idle(shared = [held, &holder])]
            fn idle(mut cx: idle::Context) {
                if *cx.shared.holder == Holder::Idle {
                    cx.shared.held.lock(|_| {
                        high::spawn().unwrap();
                        read_for_ever();
                    });
                }
            }

            #[task(priority = 1, shared = [held] $($low)*)]
            fn low(mut cx: low::Context) {
                cx.shared.held.lock(|_| {
                    high::spawn().unwrap();
                    read_for_ever();
                });
            }

            #[task(priority = 2, shared = [held] $($high)*)]
            fn high(mut cx: high::Context) {
                cx.shared.held.lock(|held| *held += 1);
            }

            #[shutdown]
            fn shutdown(_: shutdown::Context) {
                println!("HOOK");
            }
        }
    };
}

app!(one, [], [], []);
app!(two, [, partitions = [slow, fast]], [, core = slow], [, core = fast]);
app!(polls, [, partitions = [slow, fast(poll)]], [, core = slow], [, core = fast]);
app!(global, [, executor = "global"], [], []);

const APPS: [&str; 4] = ["one", "two", "polls", "global"];

/// Starts each app, with and without privileges, waits until it reads, and asks it to stop.
fn stops(holder: Holder, locked: bool) -> Vec<(&'static str, Ended)> {
    let commands = APPS.into_iter().flat_map(|app| {
        let mut program = process::program(&format!("blocked::programs::{app}"));
        program.env("HOLDER", format!("{holder:?}"));
        if locked {
            program.env("LOCKED", "1");
        }
        let unprivileged = privileges::unprivileged(&program);
        [(app, program), (app, unprivileged)]
    });
    let run = |mut command: Command| {
        privileges::no_runaways(&mut command);
        let mut running = process::start(command);
        running.wait_for("READS");
        running.signal(Signal::TERM);
        running.end()
    };
    // Each takes as long as the supervisor's time limit.
    thread::scope(|scope| {
        let runs: Vec<_> = commands.map(|(app, command)| (app, scope.spawn(move || run(command)))).collect();
        let end = |(app, run): (_, thread::ScopedJoinHandle<'_, _>)| {
            (app, run.join().unwrap_or_else(|panic| resume_unwind(panic)))
        };
        runs.into_iter().map(end).collect()
    })
}

#[track_caller]
fn says(app: &str, ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code, 1, "{app}: {}", ended.output);
    for words in words {
        assert!(ended.output.contains(words), "{app}, no `{words}` in: {}", ended.output);
    }
    assert!(!ended.output.contains("HOOK"), "{app}: {}", ended.output);
}

/// Returns the part of the message that names the kernel function of a sleep, if the kernel reports
/// it.
fn sleeps() -> &'static str {
    match std::fs::read_to_string("/proc/self/wchan") {
        Ok(_) => "sleeps in the kernel, in ",
        Err(_) => "does not tell where",
    }
}

#[test]
fn names_blocking_job_and_its_locks() {
    for (app, ended) in stops(Holder::Low, false) {
        let (level, holds) = match app {
            "one" => ("`low` at level 1, thread ", "holds a resource of ceiling 2, "),
            "global" => ("`low` at level 1, thread ", ""),
            _ => (
                "`low` at level 1 of the partition `slow`, thread ",
                "a resource that other partitions use too, ",
            ),
        };
        says(app, &ended, &["stopped by SIGTERM, and the job at level 1", level, holds, sleeps()]);
    }
}

#[test]
fn names_blocking_idle() {
    for (app, ended) in stops(Holder::Idle, false) {
        let holder = match app {
            "one" => "idle, which holds a resource, does not end",
            "global" => "`high` at level 2, thread",
            _ => "idle of the partition `slow`, thread ",
        };
        says(app, &ended, &["stopped by SIGTERM, and ", holder]);
    }
}

#[test]
fn ends_the_process_despite_locked_standard_error() {
    for (app, ended) in stops(Holder::Low, true) {
        says(app, &ended, &["stopped by SIGTERM, and the job at level 1"]);
    }
}

mod programs {
    use super::*;

    fn holder() -> Holder {
        process::chosen("HOLDER", HOLDERS)
    }

    macro_rules! program {
        ($name:ident) => {
            #[test]
            #[ignore = "a program that the other tests run"]
            fn $name() {
                let code: ExitCode =
                    punctual::export::main(|config| crate::blocked::$name::run(config, holder()));
                process::exit(code);
            }
        };
    }

    program!(one);
    program!(two);
    program!(polls);
    program!(global);
}

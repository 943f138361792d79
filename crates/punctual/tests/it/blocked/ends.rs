//! User code that never returns at the end of a run, or before its start: nothing is ended under
//! it, but it is named, and another signal ends the process.

use super::*;

/// The code that never returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endless {
    Init,
    ThreadLocal,
    Argument,
    Hook,
    Resource,
}

const ENDLESS: [(Endless, &str); 5] = [
    (Endless::Init, "`init` has not returned"),
    (Endless::ThreadLocal, "a thread of the app, in a thread-local destructor or"),
    (Endless::Argument, "the destructor of an argument of a job that has not run has not returned"),
    (Endless::Hook, "`shutdown` has not returned"),
    (Endless::Resource, "the destructor of a resource has not returned"),
];

/// Never returns when it is dropped.
pub(crate) struct Blocks(bool);

impl Drop for Blocks {
    fn drop(&mut self) {
        if self.0 {
            read_for_ever();
        }
    }
}

#[punctual::app(main = false)]
mod app {
    use std::cell::RefCell;
    use std::thread::{self, ThreadId};

    use punctual::prelude::*;

    use super::{Blocks, Endless, read_for_ever};

    thread_local! {
        static LAST: RefCell<Option<Blocks>> = const { RefCell::new(None) };
    }

    #[shared]
    struct Shared {
        resource: Blocks,
    }

    #[local]
    struct Local {
        endless: Endless,
        home: ThreadId,
    }

    #[init]
    fn init(_: init::Context, endless: Endless) -> (Shared, Local) {
        match endless {
            Endless::Init => read_for_ever(),
            Endless::ThreadLocal => first::spawn().unwrap(),
            Endless::Argument => {
                never::spawn_after(3600.secs(), Blocks(true)).ok().unwrap();
            }
            Endless::Hook | Endless::Resource => {}
        }
        println!("STARTED");
        (
            Shared { resource: Blocks(endless == Endless::Resource) },
            Local { endless, home: thread::current().id() },
        )
    }

    /// On a thread of its level: without privileges it may run on the program's thread, which
    /// outlives the app.
    #[task(priority = 1, local = [home])]
    fn first(cx: first::Context) {
        if thread::current().id() == *cx.local.home {
            first::spawn_after(1.millis()).unwrap();
        } else {
            LAST.set(Some(Blocks(true)));
            println!("LEFT");
        }
    }

    #[task(priority = 1, shared = [&resource])]
    fn never(_: never::Context, _: Blocks) {}

    #[shutdown(local = [endless])]
    fn shutdown(cx: shutdown::Context) {
        if *cx.local.endless == Endless::Hook {
            read_for_ever();
        }
    }
}

#[test]
fn names_endless_job_and_second_signal_ends_it() {
    thread::scope(|scope| {
        for (endless, printed) in ENDLESS {
            scope.spawn(move || {
                let mut command = process::program("blocked::ends::program");
                command.env("ENDLESS", format!("{endless:?}"));
                privileges::no_runaways(&mut command);
                let mut running = process::start(command);
                running.wait_for(match endless {
                    Endless::Init => "READS",
                    Endless::ThreadLocal => "LEFT",
                    _ => "STARTED",
                });
                running.signal(Signal::TERM);
                running.wait_for(printed);
                running.signal(Signal::TERM);
                let ended = running.end();
                let code = 128 + Signal::TERM.as_raw();
                assert_eq!(ended.code, code, "{endless:?}: {}", ended.output);
                assert!(
                    ended.output.contains("another signal ends the process"),
                    "{endless:?}: {}",
                    ended.output
                );
            });
        }
    });
}

#[test]
#[ignore = "a program that another test runs"]
fn program() {
    let endless = process::chosen("ENDLESS", ENDLESS.map(|(endless, _)| endless));
    process::exit(punctual::export::main(|config| app::run(config, endless)));
}

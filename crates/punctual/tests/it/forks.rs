//! Forks in an app: a child that returns to the executor is ended; other children are left alone.
//!
//! Every app runs as a separate program.

use punctual_process::child::{BoundedCommand, TEST_LIMIT, wait_for_fork};

use crate::process::Ended;
use crate::{privileges, process};

/// Starts another program and waits for its end.
fn program_ends() -> std::process::ExitStatus {
    std::process::Command::new("true").status_within(TEST_LIMIT).expect("`true` ends")
}

/// Location of the fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Init,
    Idle,
    /// A job that its spawner calls.
    Called,
    /// A job that was queued.
    Queued,
    Hook,
    /// A separate thread, started by a job.
    Foreign,
    /// A job, to execute a program.
    Exec,
}

const COMING_BACK: [Place; 5] = [Place::Init, Place::Idle, Place::Called, Place::Queued, Place::Hook];
const OTHERS: [Place; 2] = [Place::Foreign, Place::Exec];

/// Forks; the child returns, and the parent does after the child has ended.
pub(crate) fn fork() {
    // SAFETY: the child only returns, which this test is about.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // Limits the child's life if the test fails. SAFETY: the call takes no pointers.
        unsafe { libc::alarm(20) };
        // Not by `println!`: a thread that does not exist in the child may have held its lock.
        rustix::io::write(std::io::stdout(), b"IN CHILD\n").expect("the test reads it");
        return;
    }
    wait(child);
}

pub(crate) fn wait(child: libc::pid_t) {
    let status = wait_for_fork(child, TEST_LIMIT).expect("the child ends");
    println!(
        "CHILD ENDED WITH {}",
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -status }
    );
}

macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($core:tt)*]) => {
        #[punctual::app(main = false $($args)*)]
        mod $name {
            use punctual::prelude::*;

            use super::Place;

            #[shared]
            struct Shared {
                place: Place,
            }

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context, place: Place) -> (Shared, Local) {
                if place == Place::Init {
                    super::fork();
                }
                low::spawn().unwrap();
                (Shared { place }, Local {})
            }

            #[idle(shared = [&place])]
            fn idle(cx: idle::Context) {
                if *cx.shared.place == Place::Idle {
                    super::fork();
                }
                end::spawn_after(20.millis()).unwrap();
            }

            #[task(priority = 1, shared = [&place] $($core)*)]
            fn low(cx: low::Context) {
                let _ = high::spawn();
                println!("AFTER CALL {}", std::process::id());
                if *cx.shared.place == Place::Queued {
                    let _ = follower::spawn();
                    super::fork();
                }
            }

            /// Waits until `low` has ended.
            #[task(priority = 1 $($core)*)]
            fn follower(_: follower::Context) {
                println!("FOLLOWER {}", std::process::id());
            }

            #[task(priority = 2, shared = [&place] $($core)*)]
            fn high(cx: high::Context) {
                match cx.shared.place {
                    Place::Called => super::fork(),
                    Place::Foreign => super::foreign(|| end::spawn().is_err()),
                    Place::Exec => println!("PROGRAM {}", super::program_ends()),
                    _ => {}
                }
            }

            #[task(priority = 1 $($core)*)]
            fn end(_: end::Context) {
                punctual::shutdown();
            }

            #[shutdown(shared = [place])]
            fn shutdown(cx: shutdown::Context) {
                if *cx.shared.place == Place::Hook {
                    super::fork();
                }
                println!("HOOK {}", std::process::id());
            }
        }
    };
}

app!(one, [], []);
app!(unmonitored, [, monitor = false], []);
app!(polls, [, partitions = [a(poll)]], [, core = a]);
app!(global, [, executor = "global"], []);

/// The thread of `idle` holds a resource until a job of another partition sleeps for it.
#[punctual::app(main = false, partitions = [home, other])]
mod contended {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        value: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { value: 0 }, Local {})
    }

    #[idle(shared = [value])]
    fn idle(mut cx: idle::Context) {
        cx.shared.value.lock(|value| {
            waits::spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
            *value = 1;
        });
    }

    #[task(priority = 1, core = home)]
    fn never(_: never::Context) {}

    #[task(priority = 1, core = other, shared = [value])]
    fn waits(mut cx: waits::Context) {
        cx.shared.value.lock(|value| assert_eq!(*value, 1));
        punctual::shutdown();
    }

    #[shutdown]
    fn shutdown(_: shutdown::Context) {
        println!("HOOK {}", std::process::id());
    }
}

const APPS: [&str; 4] = ["one", "unmonitored", "polls", "global"];

/// Forks on a foreign thread. The child continues there and ends in its own way.
fn foreign(spawn_is_refused: fn() -> bool) {
    let thread = std::thread::spawn(move || {
        // SAFETY: the child spawns into the copy of the app, which takes no lock, and ends.
        match unsafe { libc::fork() } {
            // SAFETY: the call takes no pointers and does not return.
            0 => unsafe { libc::_exit(if spawn_is_refused() { 7 } else { 8 }) },
            child => wait(child),
        }
    });
    thread.join().expect("it does not panic");
}

fn ends(app: &str, place: Place, port: &str) -> Ended {
    let mut command = process::program(&format!("forks::programs::{app}"));
    privileges::no_runaways(&mut command);
    command.env("PLACE", format!("{place:?}")).env("PUNCTUAL_PORT", port);
    process::start(command).end()
}

/// Counts the lines with this prefix.
fn count(ended: &Ended, words: &str) -> usize {
    ended.output.lines().filter(|line| line.starts_with(words)).count()
}

#[test]
fn ends_forked_child_that_returns() {
    for port in ["linux", "virtual"] {
        for (app, place) in APPS.into_iter().flat_map(|app| COMING_BACK.map(|place| (app, place))) {
            let ended = ends(app, place, port);
            let what = format!("{port}, {app}, {place:?}: {}", ended.output);
            assert_eq!(ended.code, 0, "{what}");
            assert!(ended.output.contains("CHILD ENDED WITH 70"), "{what}");
            for words in ["call exec or _exit in the child", "IN CHILD"] {
                assert!(ended.output.contains(words), "no `{words}`, {what}");
            }
            // Nothing of the app runs in the child; but a child created by the hook continues in
            // the hook.
            assert_eq!(count(&ended, "FOLLOWER"), usize::from(place == Place::Queued), "{what}");
            assert_eq!(count(&ended, "HOOK"), 1 + usize::from(place == Place::Hook), "{what}");
        }
    }
}

#[test]
fn names_task_whose_job_forked() {
    for (app, place, task) in
        [("one", Place::Called, "`high` at level 2"), ("global", Place::Queued, "`low` or")]
    {
        let ended = ends(app, place, "linux");
        let words = format!(", forked by {task}");
        assert!(ended.output.contains(&words), "no `{words}` in: {}", ended.output);
        if app == "one" {
            assert_eq!(count(&ended, "AFTER CALL"), 1, "the spawner goes on in the parent: {}", ended.output);
        }
    }
}

#[test]
fn ignores_forked_children_that_do_not_return() {
    for port in ["linux", "virtual"] {
        for (app, place) in APPS.into_iter().flat_map(|app| OTHERS.map(|place| (app, place))) {
            let ended = ends(app, place, port);
            let words = if place == Place::Exec { "PROGRAM exit status: 0" } else { "CHILD ENDED WITH 7" };
            assert!(
                ended.code == 0 && ended.output.contains(words),
                "{port}, {app}, {place:?}: {}",
                ended.output
            );
            assert_eq!(count(&ended, "HOOK"), 1, "{port}, {app}, {place:?}: {}", ended.output);
        }
    }
}

#[test]
fn runs_child_without_parent_threads() {
    for program in ["forks_before", "forks_between_locks"] {
        let needs_two = program == "forks_between_locks";
        if needs_two && rustix::thread::sched_getaffinity(None).is_ok_and(|cpus| cpus.count() < 2) {
            test_skip::skip(test_skip::Need::TwoCpus, "a lock of two partitions after a fork");
            continue;
        }
        let ended = process::start(process::program(&format!("forks::programs::{program}"))).end();
        assert!(ended.code == 0 && ended.output.contains("CHILD ENDED WITH 0"), "{}", ended.output);
        assert_eq!(count(&ended, "HOOK"), 2, "{}", ended.output);
    }
}

mod programs {
    use super::*;

    fn place() -> Place {
        process::chosen("PLACE", COMING_BACK.into_iter().chain(OTHERS))
    }

    macro_rules! program {
        ($name:ident) => {
            #[test]
            #[ignore = "a program that the other tests run"]
            fn $name() {
                process::exit(punctual::export::main(|config| crate::forks::$name::run(config, place())));
            }
        };
    }

    program!(one);
    program!(unmonitored);
    program!(polls);
    program!(global);

    /// Runs an app, forks after it has ended, and runs it in the child again.
    fn fork_between(run: fn() -> punctual::Report) {
        run();
        // SAFETY: this thread is the only one that holds anything, and the child runs an app and
        // ends.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: the call takes no pointers.
                unsafe { libc::alarm(20) };
                let code = run().exit_code().into();
                // SAFETY: the call takes no pointers and does not return.
                unsafe { libc::_exit(code) };
            }
            child => wait(child),
        }
    }

    #[test]
    #[ignore = "a program that the other tests run"]
    fn forks_before() {
        let run = || crate::forks::one::run(punctual::Config::new(), Place::Exec).expect("the app starts");
        fork_between(run);
    }

    #[test]
    #[ignore = "a program that the other tests run"]
    fn forks_between_locks() {
        fork_between(|| crate::forks::contended::run(punctual::Config::new()).expect("the app starts"));
    }
}

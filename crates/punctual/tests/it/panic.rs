//! A panic anywhere ends the app: at once, with the culprit's name, the hook, and no thread left
//! behind.
#![cfg(feature = "monitoring")]

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use punctual::Config;
use punctual::report::Outcome;

use crate::process::Ended;
use crate::{privileges, process};

/// Location of the panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Message,
    Periodic,
    Bound,
    Lock,
    Nested,
    Init,
    Idle,
    Shutdown,
    Destructor,
    /// In a task, while a job below it sleeps forever.
    AboveSleeper,
    /// In a task, while a job below it computes forever.
    AboveSpinner,
}

/// Every location, with the culprit that the message names.
const PLACES: [(Place, &str); 11] = [
    (Place::Message, "message"),
    (Place::Periodic, "periodic"),
    (Place::Bound, "bound"),
    (Place::Lock, "message"),
    (Place::Nested, "top"),
    (Place::Init, "init"),
    (Place::Idle, "idle"),
    (Place::Shutdown, "shutdown"),
    (Place::Destructor, "drop of fragile"),
    (Place::AboveSleeper, "top"),
    (Place::AboveSpinner, "top"),
];

/// Number of runs of the hook that saw the value written before a panic under a lock.
static HOOKS: AtomicU32 = AtomicU32::new(0);

#[punctual::app(main = false)]
mod app {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::Ordering;

    use punctual::prelude::*;

    use super::{HOOKS, Place};

    #[derive(Debug)]
    struct Fragile(Place);

    impl Drop for Fragile {
        fn drop(&mut self) {
            assert!(self.0 != Place::Destructor, "here");
        }
    }

    #[shared]
    struct Shared {
        place: Place,
        gauge: u32,
    }

    #[local]
    struct Local {
        line: UnixStream,
        other_end: UnixStream,
        fragile: Fragile,
    }

    #[init]
    fn init(_: init::Context, place: Place) -> (Shared, Local) {
        let (line, mut other_end) = UnixStream::pair().expect("sockets can be made");
        match place {
            Place::Init => panic!("here"),
            Place::Bound => other_end.write_all(b"!").expect("there is room in the socket"),
            Place::AboveSleeper | Place::AboveSpinner => {
                endless::spawn(place == Place::AboveSpinner).unwrap();
            }
            Place::Message | Place::Lock | Place::Nested | Place::Shutdown | Place::Destructor => {
                message::spawn().unwrap();
            }
            Place::Periodic | Place::Idle => {}
        }
        (Shared { place, gauge: 0 }, Local { line, other_end, fragile: Fragile(place) })
    }

    #[idle(shared = [&place])]
    fn idle(cx: idle::Context) {
        if *cx.shared.place == Place::Idle {
            panic!("here");
        }
    }

    /// Queued by the job that is about to panic, and never run.
    #[task(priority = 1, local = [fragile, other_end])]
    fn never(_: never::Context) {
        println!("NEVER");
    }

    #[task(priority = 2, shared = [&place, gauge])]
    fn message(mut cx: message::Context) {
        match cx.shared.place {
            Place::Message => {
                never::spawn().unwrap();
                panic!("here");
            }
            Place::Lock => {
                never::spawn().unwrap();
                cx.shared.gauge.lock(|gauge| {
                    *gauge = 7;
                    panic!("here");
                })
            }
            Place::Nested => {
                // The job that panics runs on this one's stack or above it, and this one continues
                // in both cases.
                cx.shared.gauge.lock(|_| top::spawn().unwrap());
                cx.shared.gauge.lock(|gauge| *gauge = 7);
            }
            _ => punctual::shutdown(),
        }
    }

    #[task(priority = 2, period = 1.millis(), shared = [&place])]
    fn periodic(cx: periodic::Context) {
        if *cx.shared.place == Place::Periodic {
            never::spawn().unwrap();
            panic!("here");
        }
    }

    #[task(binds = line, priority = 2, local = [line], shared = [&place, gauge])]
    fn bound(cx: bound::Context) {
        assert!(*cx.shared.place != Place::Bound, "here");
    }

    #[task(priority = 3)]
    fn top(_: top::Context) {
        panic!("here");
    }

    #[allow(deprecated, reason = "the thread has to block outside of the runtime")]
    #[task(priority = 1)]
    fn endless(_: endless::Context, spins: bool) {
        top::spawn_after(5.millis()).unwrap();
        loop {
            if !spins {
                std::thread::sleep(std::time::Duration::from_secs(1));
            }
        }
    }

    #[shutdown(shared = [&place, gauge])]
    fn shutdown(cx: shutdown::Context) {
        HOOKS.fetch_add(1, Ordering::Relaxed);
        if matches!(cx.shared.place, Place::Lock | Place::Nested) {
            assert_eq!(*cx.shared.gauge, 7, "what was written before the panic stays written");
        }
        println!("HOOK");
        assert!(*cx.shared.place != Place::Shutdown, "here");
    }
}

/// Returns whether the hook runs: not without resources, and not under a job that does not end.
fn has_hook(place: Place) -> bool {
    !matches!(place, Place::Init | Place::AboveSleeper | Place::AboveSpinner)
}

/// Runs the app in this process, which survives it, and checks the state afterwards.
fn survives(place: Place, task: &'static str, config: Config) {
    HOOKS.store(0, Ordering::Relaxed);
    let report = app::run(config, place).expect("the app starts");
    let expected = Outcome::Panicked { task: task.into(), message: "here".into() };
    assert_eq!(report.outcome, expected, "{place:?}");
    assert_eq!(report.exit_code(), 101);
    // An app that has not started has no duration.
    assert!(place != Place::Init || report.elapsed.is_zero(), "{:?}", report.elapsed);
    assert_eq!(HOOKS.load(Ordering::Relaxed), u32::from(has_hook(place)), "{place:?}");
    let queued = matches!(place, Place::Message | Place::Periodic | Place::Lock);
    // One of `periodic` may have been waiting as well.
    assert!(report.dropped_jobs >= u64::from(queued), "{place:?}");
    assert_eq!(report.task("never").map(|task| task.jobs), Some(0), "{place:?}");
    assert!(app::never::spawn().is_err(), "the app has ended");
}

/// Waits until all threads of the app have ended. No other app runs in this process.
fn all_processes_ended() {
    // After a join, the kernel takes a moment to remove the thread.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let tasks = std::fs::read_dir("/proc/self/task").expect("a process can see its threads");
        let names = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        let ours = |name: &String| ["level ", "event ", "punctual-"].iter().any(|p| name.starts_with(p));
        let Some(left) = names.into_iter().find(ours) else { return };
        assert!(Instant::now() < deadline, "{left} is left behind");
        std::thread::yield_now();
    }
}

#[test]
fn profile_of_process_that_continues() {
    let mut command = process::program("panic::program_that_goes_on");
    privileges::no_runaways(&mut command);
    let ended = process::start(command).end();
    assert_eq!(ended.code, 0, "{}", ended.output);
}

#[test]
#[ignore = "a program that another test runs"]
fn program_that_goes_on() {
    let ends = |place| !matches!(place, Place::AboveSleeper | Place::AboveSpinner);
    for (place, task) in PLACES.into_iter().filter(|(place, _)| ends(*place)) {
        survives(place, task, Config::new());
        all_processes_ended();
        // No state of the panic is left in the app either: it runs again, in the other kind of time
        // as well.
        survives(place, task, Config::new().virtual_time());
    }
}

/// Runs the app as a separate program and checks its end.
fn ends(place: Place, task: &str, mut command: Command) -> Ended {
    privileges::no_runaways(&mut command);
    command.env("PLACE", format!("{place:?}"));
    let mut running = process::start(command);
    let whose = if place == Place::Destructor { task.to_owned() } else { format!("task `{task}`") };
    running.wait_for(&format!("punctual: {whose} panicked: here; the app stops"));
    let ended = running.end();
    // If the panic went unnoticed, the process would end with another code under the job, or not at
    // all.
    assert_eq!(ended.code, 101, "{place:?}: {}", ended.output);
    assert_eq!(ended.output.contains("HOOK"), has_hook(place), "{place:?}: {}", ended.output);
    assert!(!ended.output.contains("NEVER"), "{place:?}: {}", ended.output);
    ended
}

#[test]
fn programs_end_with_code_101() {
    // Spinning at real-time priority would starve the supervisor where there is only one CPU.
    for (place, task) in PLACES.into_iter().filter(|(place, _)| *place != Place::AboveSpinner) {
        ends(place, task, process::program("panic::program"));
    }
}

#[test]
fn unprivileged_programs_end_with_code_101() {
    for (place, task) in PLACES {
        let ended = ends(place, task, privileges::unprivileged(&process::program("panic::program")));
        if place != Place::Init {
            assert!(ended.output.contains("without real-time priorities"), "{}", ended.output);
        }
    }
}

#[test]
fn names_level_of_endless_job() {
    let ended = ends(Place::AboveSleeper, "top", process::program("panic::program"));
    let words = "`top` panicked: here, and the job at level 1 does not end; the process ends under it";
    assert!(ended.output.contains(words), "{}", ended.output);
}

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    let place = process::chosen("PLACE", PLACES.map(|(place, _)| place));
    process::exit(punctual::export::main(|config| app::run(config, place)));
}

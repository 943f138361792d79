//! Runs in sequence and in parallel, and spawns without a run.

use super::*;

#[punctual::app(main = false)]
pub(super) mod app {
    use std::sync::mpsc::Sender;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        started: Sender<()>,
    }

    #[init]
    fn init(_: init::Context, started: Sender<()>) -> (Shared, Local) {
        (Shared {}, Local { started })
    }

    /// Runs until another task ends the app.
    #[idle(local = [started])]
    fn idle(cx: idle::Context) -> ! {
        cx.local.started.send(()).expect("the test is waiting");
        loop {
            punctual::wait_for_event();
        }
    }

    #[task(priority = 1, capacity = 2, local = [runs: u32 = 0])]
    fn keep(cx: keep::Context, first: u32, second: &'static str) {
        *cx.local.runs += 1;
        assert_eq!((first, second, *cx.local.runs), (1, "one", 1), "locals begin afresh");
    }

    /// Ends the app from below, so that `keep` has run by then.
    #[task(priority = 1)]
    fn end(_: end::Context) {
        punctual::shutdown();
    }
}

/// Another app with the same structure.
#[punctual::app(main = false)]
pub(super) mod other {
    use std::sync::mpsc::Sender;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        started: Sender<()>,
    }

    #[init]
    fn init(_: init::Context, started: Sender<()>) -> (Shared, Local) {
        (Shared {}, Local { started })
    }

    #[idle(local = [started])]
    fn idle(cx: idle::Context) -> ! {
        cx.local.started.send(()).expect("the test is waiting");
        loop {
            punctual::wait_for_event();
        }
    }

    #[task(priority = 1)]
    fn end(_: end::Context) {
        // A task of one app is a foreign thread to another, and ends only its own app.
        super::app::keep::spawn(1, "one").expect("the other app is running");
        punctual::shutdown();
    }
}

#[test]
fn spawns_without_run_return_arguments() {
    let _turn = turn();
    for _ in 0..2 {
        assert_eq!(app::keep::spawn(1, "one"), Err(SpawnError::Stopping((1, "one"))));
        let later = app::keep::spawn_at(punctual::now(), 2, "two");
        assert_eq!(later.map(drop), Err(SpawnError::Stopping((2, "two"))));
        let (started, is_started) = channel();
        let report = thread::scope(|scope| {
            scope.spawn(move || {
                is_started.recv().expect("the app starts");
                app::keep::spawn(1, "one").expect("the app is running");
                app::end::spawn().expect("the app is running");
            });
            app::run(Config::new(), started).expect("the app starts")
        });
        let jobs = |name: &str| report.task(name).map(|task| task.jobs);
        assert_eq!((jobs("keep"), jobs("end")), (Some(1), Some(1)));
    }
}

#[test]
fn two_apps_run_at_once_and_one_app_does_not_run_twice_at_once() {
    let _turn = turn();
    let (started, is_started) = channel();
    let reports = thread::scope(|scope| {
        let again = started.clone();
        let runs = [scope.spawn(|| app::run(Config::new(), started.clone()))];
        is_started.recv().expect("the first app starts");
        let error = app::run(Config::new(), again.clone()).expect_err("it is running");
        assert!(matches!(error, StartError::AlreadyRunning("app")), "{error}");
        assert_eq!(error.exit_code(), 1);
        assert!(format!("{error:?}").contains("--test-threads=1"), "`unwrap` shows no remedy: {error:?}");
        let other = scope.spawn(|| other::run(Config::new(), again));
        is_started.recv().expect("the second app starts");
        other::end::spawn().expect("the second app is running");
        let other = other.join().expect("`run` does not panic").expect("the app starts");
        // The first is still running, with the job that the second spawned.
        app::end::spawn().expect("the first app is running");
        let [app] = runs.map(|run| run.join().expect("`run` does not panic"));
        (app.expect("the app starts"), other)
    });
    let jobs = |name: &str| reports.0.task(name).map(|task| task.jobs);
    assert_eq!((jobs("keep"), jobs("end")), (Some(1), Some(1)));
    assert_eq!(reports.1.outcome, Outcome::Shutdown);
}

#[test]
fn foreign_thread_stops_every_app() {
    let _turn = turn();
    let (started, is_started) = channel();
    let outcomes = thread::scope(|scope| {
        let (one, two) = (started.clone(), started);
        let runs =
            (scope.spawn(|| app::run(Config::new(), one)), scope.spawn(|| other::run(Config::new(), two)));
        (0..2).for_each(|_| is_started.recv().expect("both apps start"));
        punctual::shutdown();
        [runs.0.join(), runs.1.join()].map(|run| run.expect("`run` does not panic").map(|r| r.outcome))
    });
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(Outcome::Shutdown))), "{outcomes:?}");
}

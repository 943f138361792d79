//! Runs of one app in virtual time by several threads: serialized, as the tests of a crate require.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use punctual::StartError;

use super::*;

#[punctual::app(main = false)]
mod app {
    use std::sync::mpsc::Sender;

    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        jobs: u64,
        sum: Sender<u64>,
        during: fn(),
    }

    #[init]
    fn init(_: init::Context, first: u64, sum: Sender<u64>, during: fn()) -> (Shared, Local) {
        add::spawn(first).unwrap();
        (Shared {}, Local { jobs: 0, sum, during })
    }

    #[task(priority = 1, local = [jobs, sum, during])]
    fn add(cx: add::Context, number: u64) {
        (cx.local.during)();
        *cx.local.jobs += number;
        match number {
            0 => cx.local.sum.send(*cx.local.jobs).unwrap(),
            _ => drop(add::spawn_after(1.millis(), number - 1).unwrap()),
        }
    }
}

/// Returns the report of a run that adds up the numbers from `first` down, and the sum.
fn run(config: Config, first: u64, during: fn()) -> Result<(Report, u64), StartError> {
    let (sum, receiver): (Sender<u64>, Receiver<u64>) = channel();
    let report = app::run(config, first, sum, during)?;
    Ok((report, receiver.recv().expect("the last job sends it")))
}

#[test]
fn virtual_time_runs_of_one_app_wait_for_each_other() {
    thread::scope(|scope| {
        let runs: Vec<_> = (1..=8)
            .map(|first| (first, scope.spawn(move || run(Config::new().virtual_time(), first, || ()))))
            .collect();
        for (first, run) in runs {
            let (report, sum) = run.join().unwrap().expect("it waits for the others");
            assert_eq!(report.task("add").map(|add| add.jobs), Some(first + 1));
            assert_eq!((report.outcome, sum), (Outcome::Quiescent, first * (first + 1) / 2));
        }
    });
}

#[test]
fn refuses_a_run_inside_a_job_of_the_same_app() {
    let during = || {
        let (sum, _) = channel();
        let inner = app::run(Config::new().virtual_time(), 1, sum, || ());
        assert!(matches!(inner, Err(StartError::AlreadyRunning("app"))), "{inner:?}");
    };
    let (report, _) = run(Config::new().virtual_time(), 1, during).expect("it waits for the other test");
    assert_eq!(report.outcome, Outcome::Quiescent);
}

#[test]
fn real_time_run_refuses_with_a_remedy_while_the_app_runs() {
    let during = || {
        let refused = thread::spawn(|| run(Config::new(), 0, || ())).join().unwrap();
        let error = refused.expect_err("the app is running").to_string();
        for part in ["`app` is running already", "`Config::virtual_time`", "--test-threads=1"] {
            assert!(error.contains(part), "{error}");
        }
    };
    let (report, _) = run(Config::new().virtual_time(), 0, during).expect("it waits for the other tests");
    assert_eq!(report.outcome, Outcome::Quiescent);
}

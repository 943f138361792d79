//! Runs of one app in virtual time by several threads: serialized, as the tests of a crate require.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

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
fn rejects_run_inside_job_of_same_app() {
    let during = || {
        let (sum, _) = channel();
        let inner = app::run(Config::new().virtual_time(), 1, sum, || ());
        assert!(matches!(inner, Err(StartError::AlreadyRunning("app"))), "{inner:?}");
    };
    let (report, _) = run(Config::new().virtual_time(), 1, during).expect("it waits for the other test");
    assert_eq!(report.outcome, Outcome::Quiescent);
}

/// Held by the test below as long as a job has to last.
static HOLD: Mutex<()> = Mutex::new(());
/// The job has begun.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

#[test]
fn virtual_time_run_waits_for_a_real_time_run() {
    let begun = Instant::now();
    let is_in_time = || begun.elapsed() < Duration::from_secs(60);
    let (sender, thread) = channel();
    let hold = HOLD.lock().unwrap();
    thread::scope(|scope| {
        let in_real_time = scope.spawn(move || {
            let during = || {
                HAS_BEGUN.store(true, Ordering::Release);
                drop(HOLD.lock());
                punctual::shutdown();
            };
            // Runs of the other tests refuse it.
            loop {
                match run(Config::new(), 0, during) {
                    Err(StartError::AlreadyRunning(_)) if is_in_time() => thread::yield_now(),
                    result => return result,
                }
            }
        });
        while !HAS_BEGUN.load(Ordering::Acquire) && !in_real_time.is_finished() {
            thread::yield_now();
        }
        let in_virtual_time = scope.spawn(move || {
            sender.send(rustix::thread::gettid()).unwrap();
            run(Config::new().virtual_time(), 3, || ())
        });
        let stat = format!("/proc/self/task/{}/stat", thread.recv().unwrap().as_raw_nonzero());
        let sleeps = || std::fs::read_to_string(&stat).is_ok_and(|text| text.contains(") S "));
        while !sleeps() && !in_virtual_time.is_finished() && is_in_time() {
            thread::yield_now();
        }
        drop(hold);
        let (report, _) = in_real_time.join().unwrap().expect("it runs first");
        assert_eq!(report.outcome, Outcome::Shutdown);
        let (report, sum) = in_virtual_time.join().unwrap().expect("it waits for the other run");
        assert_eq!((report.outcome, sum), (Outcome::Quiescent, 6));
    });
}

#[test]
fn real_time_run_is_rejected_with_remedy_while_app_runs() {
    let during = || {
        let refused = thread::spawn(|| run(Config::new(), 0, || ())).join().unwrap();
        let error = refused.expect_err("the app is running").to_string();
        for part in ["`app` is already running", "`Config::virtual_time`", "--test-threads=1"] {
            assert!(error.contains(part), "{error}");
        }
    };
    let (report, _) = run(Config::new().virtual_time(), 0, during).expect("it waits for the other tests");
    assert_eq!(report.outcome, Outcome::Quiescent);
}

//! The end of virtual time: times are 64 bits of nanoseconds, and a model may reach the end.

use punctual::report::Outcome;
use punctual::{Config, Duration, Instant};

/// The last instant, at which nothing happens anymore.
const END: u64 = u64::MAX - 1;

/// Action of `act`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Spend(u64),
    SpawnAt(u64),
    SpawnAfter(u64),
    Delay(u64),
}

macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($other:tt)*]) => {
        #[punctual::app(main = false $($args)*)]
        mod $name {
            use punctual::{Duration, Instant};

            use super::Act;

            #[shared]
            struct Shared {}

            #[local]
            struct Local {
                act: Act,
            }

            #[init]
            fn init(_: init::Context, act: Act) -> (Shared, Local) {
                act::spawn().unwrap();
                (Shared {}, Local { act })
            }

            #[task(priority = 1, local = [act])]
            fn act(cx: act::Context) {
                match *cx.local.act {
                    Act::Spend(time) => {
                        punctual::spend(Duration::from_ticks(time));
                        // No time is left to spend.
                        punctual::spend(Duration::from_ticks(time));
                    }
                    Act::SpawnAt(time) => drop(late::spawn_at(Instant::from_ticks(time))),
                    Act::SpawnAfter(time) => drop(late::spawn_after(Duration::from_ticks(time))),
                    Act::Delay(time) => waits::spawn(time).unwrap(),
                }
            }

            #[task(priority = 2 $($other)*)]
            fn late(_: late::Context) {}

            #[task(priority = 1 $($other)*)]
            async fn waits(_: waits::Context, time: u64) {
                punctual::delay(Duration::from_ticks(time)).await;
            }
        }
    };
}

app!(one, [], []);
app!(two, [, partitions = [a, b]], [, core = b]);
app!(polls, [, partitions = [a(poll)]], []);
app!(global, [, executor = "global"], []);

/// Returns the outcome of the run, its end, and the number of jobs of `late`.
fn ends(act: Act) -> (Outcome, Duration, u64) {
    let config = || Config::new().virtual_time();
    let all = [
        one::run(config(), act),
        two::run(config(), act),
        polls::run(config(), act),
        global::run(config(), act),
    ];
    let all = all.map(|report| {
        let report = report.expect("the app starts");
        let late = report.task("late").expect("the report has every task").jobs;
        (report.outcome, Duration::from_ticks(report.elapsed.as_nanos() as u64), late)
    });
    assert!(all.iter().all(|ended| *ended == all[0]), "{act:?}: {all:?}");
    all.into_iter().next().expect("there are four")
}

#[test]
fn spent_time_ends_with_clock() {
    for time in [u64::MAX, END, END / 2 + 1] {
        assert_eq!(ends(Act::Spend(time)), (Outcome::TimeUp, Duration::from_ticks(END), 0), "{time}");
    }
    assert_eq!(ends(Act::Spend(END / 2 - 1)).0, Outcome::Quiescent);
}

#[test]
fn last_job_precedes_end() {
    for act in [Act::SpawnAt(END - 1), Act::SpawnAfter(END - 1)] {
        assert_eq!(ends(act), (Outcome::Quiescent, Duration::from_ticks(END - 1), 1), "{act:?}");
    }
    for act in [Act::SpawnAt(END), Act::SpawnAfter(END), Act::Delay(END)] {
        assert_eq!(ends(act), (Outcome::TimeUp, Duration::from_ticks(END), 0), "{act:?}");
    }
}

#[test]
fn does_not_wait_for_infinite_instant() {
    for act in [Act::SpawnAt(u64::MAX), Act::SpawnAfter(u64::MAX), Act::Delay(u64::MAX)] {
        assert_eq!(ends(act), (Outcome::Quiescent, Duration::from_ticks(0), 0), "{act:?}");
    }
}

#[test]
fn clamps_limit_to_end() {
    let config = || Config::new().virtual_time().until(Duration::from_ticks(u64::MAX));
    let report = one::run(config(), Act::Spend(u64::MAX)).expect("the app starts");
    assert_eq!(report.outcome, Outcome::TimeUp);
    let started = Instant::from_ticks(0);
    assert_eq!((started + Duration::from_ticks(END)).as_ticks() as u128, report.elapsed.as_nanos());
}

//! The global executor in virtual time: a CPU for each level, and the Priority Ceiling Protocol
//! between them.

use punctual::report::Outcome;
use punctual::{Config, Instant, Report};

use crate::log::Log;
use crate::time::script::Step::{self, Do, Say, Spend, X, Y};

#[punctual::app(main = false, executor = "global")]
mod app {
    use crate::log::Log;
    use crate::time::script::{NONE, Step, perform};

    type Steps = &'static [Step];

    #[shared]
    struct Shared {
        log: Log,
        /// Ceiling 2.
        x: u32,
        /// Ceiling 2.
        y: u32,
        /// Ceiling 4.
        z: u32,
        /// Used by `idle`. Ceiling 1.
        rest: u32,
    }

    #[local]
    struct Local {
        of_idle: Steps,
    }

    #[init]
    fn init(_: init::Context, log: Log, of_idle: Steps, script: fn()) -> (Shared, Local) {
        script();
        (Shared { log, x: 0, y: 0, z: 0, rest: 0 }, Local { of_idle })
    }

    /// Its `x` is `rest`.
    #[idle(shared = [&log, rest], local = [of_idle])]
    fn idle(mut cx: idle::Context) {
        perform(cx.local.of_idle, cx.shared.log, Some(&mut cx.shared.rest), NONE);
    }

    #[task(priority = 1, capacity = 4, shared = [&log, x, y, rest])]
    fn one(mut cx: one::Context, steps: Steps) {
        perform(steps, cx.shared.log, Some(&mut cx.shared.x), Some(&mut cx.shared.y));
    }

    /// Its `y` is `rest`.
    #[task(priority = 1, capacity = 4, shared = [&log, z, rest])]
    fn rests(mut cx: rests::Context, steps: Steps) {
        perform(steps, cx.shared.log, Some(&mut cx.shared.z), Some(&mut cx.shared.rest));
    }

    #[task(priority = 2, capacity = 4, shared = [&log, x, y])]
    fn two(mut cx: two::Context, steps: Steps) {
        perform(steps, cx.shared.log, Some(&mut cx.shared.x), Some(&mut cx.shared.y));
    }

    /// Its `x` is `z`.
    #[task(priority = 3, capacity = 4, shared = [&log, z])]
    fn three(mut cx: three::Context, steps: Steps) {
        perform(steps, cx.shared.log, Some(&mut cx.shared.z), NONE);
    }

    /// Its `x` is `z`.
    #[task(priority = 4, capacity = 4, shared = [&log, z])]
    fn four(mut cx: four::Context, steps: Steps) {
        perform(steps, cx.shared.log, Some(&mut cx.shared.z), NONE);
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_ticks(ms * 1_000_000)
}

/// Runs the app twenty times, with the same result each time.
#[track_caller]
fn plays(script: fn(), expected: &[(u64, &'static str)]) -> Report {
    plays_with(&[], script, expected)
}

#[track_caller]
fn plays_with(idle: &'static [Step], script: fn(), expected: &[(u64, &'static str)]) -> Report {
    let once = || {
        let log = Log::default();
        let report = app::run(Config::new().virtual_time(), log.clone(), idle, script).unwrap();
        (log.take(), report)
    };
    let runs: Vec<_> = (0..20).map(|_| once()).collect();
    let reports: Vec<_> = runs.iter().map(|(_, report)| report.to_string()).collect();
    assert_eq!(runs[0].0, expected);
    for (run, report) in runs.iter().zip(&reports) {
        assert_eq!((&run.0, report), (&runs[0].0, &reports[0]));
    }
    runs.into_iter().next().expect("there are twenty").1
}

#[test]
fn levels_run_in_parallel_and_highest_starts_first() {
    let script = || {
        app::one::spawn(&[Say("one"), Spend(5), Say("one ends")]).unwrap();
        app::four::spawn(&[Say("four"), Spend(3), Say("four ends")]).unwrap();
        app::two::spawn_at(at(3), &[Say("two"), Spend(2), Say("two ends")]).unwrap();
    };
    let expected = [(0, "four"), (0, "one"), (3, "four ends"), (3, "two"), (5, "two ends"), (5, "one ends")];
    let report = plays(script, &expected);
    assert_eq!(report.outcome, Outcome::Quiescent);
    assert_eq!(report.task("one").unwrap().response.max, 5_000_000);
}

/// The first example of section IV of L. Sha, R. Rajkumar, J. P. Lehoczky, Priority Inheritance
/// Protocols, 1990: two jobs that nest two semaphores in opposite orders, and one above both with a
/// semaphore of its own.
#[test]
fn opposite_lock_orders_do_not_deadlock() {
    let script = || {
        app::one::spawn(&[
            Spend(1),
            Y(&[
                Say("one in y"),
                Spend(2),
                X(&[Say("one in both"), Spend(2)]),
                Say("one out of x"),
                Spend(2),
            ]),
            Say("one out"),
        ])
        .unwrap();
        // `x` is free, but no other job may hold a mutex of ceiling 2 when level 2 locks one.
        app::two::spawn_at(
            at(2),
            &[Say("two asks"), X(&[Say("two in x"), Spend(1), Y(&[Say("two in both")])])],
        )
        .unwrap();
        // Level 4 is above every ceiling that is held.
        app::four::spawn_at(at(4), &[X(&[Say("four in z"), Spend(2)]), Say("four out")]).unwrap();
    };
    let expected = [
        (1, "one in y"),
        (2, "two asks"),
        (3, "one in both"),
        (4, "four in z"),
        (5, "one out of x"),
        (6, "four out"),
        (7, "one out"),
        (7, "two in x"),
        (8, "two in both"),
    ];
    plays(script, &expected);
}

#[test]
fn later_holder_blocks_further_locks_of_earlier_one() {
    let script = || {
        app::one::spawn(&[
            Y(&[Spend(3), Say("one asks"), X(&[Say("one in both"), Spend(1)])]),
            Say("one out"),
        ])
        .unwrap();
        app::four::spawn_at(at(2), &[X(&[Say("four in z"), Spend(4)]), Say("four out")]).unwrap();
    };
    let expected = [(2, "four in z"), (3, "one asks"), (6, "four out"), (6, "one in both"), (7, "one out")];
    plays(script, &expected);
}

#[test]
fn highest_waiter_is_next() {
    let script = || {
        app::rests::spawn(&[X(&[Say("one in z"), Spend(5)])]).unwrap();
        app::three::spawn_at(
            at(2),
            &[Say("three asks"), X(&[Say("three in z"), Spend(1)]), Say("three out")],
        )
        .unwrap();
        app::four::spawn_at(
            at(3),
            &[Say("four asks"), X(&[Say("four in z"), Spend(1)]), Say("four again"), X(&[Say("four in z")])],
        )
        .unwrap();
    };
    // At 6 ms the mutex is granted to level 3 before level 4 requests it again.
    let expected = [
        (0, "one in z"),
        (2, "three asks"),
        (3, "four asks"),
        (5, "four in z"),
        (6, "four again"),
        (6, "three in z"),
        (7, "three out"),
        (7, "four in z"),
    ];
    plays(script, &expected);
}

#[test]
fn highest_of_simultaneous_jobs_locks_first() {
    let script = || {
        app::rests::spawn_at(at(5), &[X(&[Say("one in z"), Spend(1)])]).unwrap();
        app::three::spawn_at(at(5), &[X(&[Say("three in z"), Spend(1)])]).unwrap();
        app::four::spawn_at(at(5), &[X(&[Say("four in z"), Spend(1)])]).unwrap();
    };
    plays(script, &[(5, "four in z"), (6, "three in z"), (7, "one in z")]);
}

#[test]
fn idle_counts_as_lock_user() {
    const IDLE: &[Step] = &[Say("idle"), X(&[Say("idle in rest"), Spend(3)]), Say("idle ends")];
    // It begins after the jobs released at the start. Its ceiling delays level 1, but not level 2.
    let script = || {
        app::one::spawn(&[Say("one"), Spend(1), X(&[Say("one in x")])]).unwrap();
        app::two::spawn_at(at(1), &[X(&[Say("two in x"), Spend(1)])]).unwrap();
    };
    let expected =
        [(0, "one"), (0, "idle"), (0, "idle in rest"), (1, "two in x"), (3, "idle ends"), (3, "one in x")];
    plays_with(IDLE, script, &expected);
    // It is also delayed below any ceiling.
    let script = || app::one::spawn(&[X(&[Spend(2)]), Say("one ends")]).unwrap();
    plays_with(IDLE, script, &[(0, "idle"), (2, "one ends"), (2, "idle in rest"), (5, "idle ends")]);
}

#[test]
fn panic_in_critical_section_releases_mutex() {
    let script = || {
        app::rests::spawn(&[X(&[Spend(3), Do(|| panic!("here"))])]).unwrap();
        app::rests::spawn(&[Say("never")]).unwrap();
        app::four::spawn(&[Spend(1), X(&[Say("four in z"), Spend(1)]), Say("four out")]).unwrap();
    };
    let report = plays(script, &[(3, "four in z"), (4, "four out")]);
    assert_eq!((report.exit_code(), report.dropped_jobs), (101, 1));
}

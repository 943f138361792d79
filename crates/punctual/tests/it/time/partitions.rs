//! Two partitions in virtual time: they overlap like CPUs, and wait for each other according to
//! MSRP.

use punctual::report::Outcome;
use punctual::{Config, Instant, Report};

use crate::log::Log;
use crate::time::script::Step::{self, Do, Say, Spend, X, Y};
use crate::time::until_ms;

#[punctual::app(main = false, partitions = [a, b])]
mod app {
    use crate::log::Log;
    use crate::time::script::{NONE, Step, perform};

    type Steps = &'static [Step];

    #[shared]
    struct Shared {
        log: Log,
        /// In one group with `y`, because `a1` and `b1` hold both.
        x: u32,
        y: u32,
        /// In a separate group.
        z: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, log: Log, script: fn()) -> (Shared, Local) {
        script();
        (Shared { log, x: 0, y: 0, z: 0 }, Local {})
    }

    #[task(core = a, priority = 1, capacity = 4, shared = [&log, x, y])]
    fn a1(mut cx: a1::Context, steps: Steps) {
        perform(steps, cx.shared.log, Some(&mut cx.shared.x), Some(&mut cx.shared.y));
    }

    #[task(core = a, priority = 2, capacity = 4, shared = [&log, x])]
    fn a2(mut cx: a2::Context, steps: Steps) {
        perform(steps, cx.shared.log, Some(&mut cx.shared.x), NONE);
    }

    /// Its `x` is `z`.
    #[task(core = a, priority = 3, capacity = 4, shared = [&log, z])]
    fn a3(mut cx: a3::Context, steps: Steps) {
        perform(steps, cx.shared.log, Some(&mut cx.shared.z), NONE);
    }

    #[task(core = b, priority = 1, capacity = 4, shared = [&log, x, y])]
    fn b1(mut cx: b1::Context, steps: Steps) {
        perform(steps, cx.shared.log, Some(&mut cx.shared.x), Some(&mut cx.shared.y));
    }

    #[task(core = b, priority = 2, capacity = 4, shared = [&log, x])]
    fn b2(mut cx: b2::Context, steps: Steps) {
        perform(steps, cx.shared.log, Some(&mut cx.shared.x), NONE);
    }

    /// Its `x` is `z`.
    #[task(core = b, priority = 3, capacity = 4, shared = [&log, z])]
    fn b3(mut cx: b3::Context, steps: Steps) {
        perform(steps, cx.shared.log, Some(&mut cx.shared.z), NONE);
    }

    #[shutdown(shared = [log])]
    fn shutdown(cx: shutdown::Context) {
        cx.shared.log.note("hook");
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_ticks(ms * 1_000_000)
}

type Entries = Vec<(u64, &'static str)>;

/// Runs the app twenty times, with the same result each time.
fn run_with(config: &Config, script: fn()) -> (Entries, Report) {
    let once = || {
        let log = Log::default();
        let report = app::run(config.clone(), log.clone(), script).expect("the app starts");
        (log.take(), report)
    };
    let first = once();
    for _ in 1..20 {
        let again = once();
        assert_eq!(again.0, first.0);
        assert_eq!(again.1.to_string(), first.1.to_string());
    }
    first
}

/// Runs the app until no work is left, which is at `end`.
#[track_caller]
fn plays(script: fn(), end: u64, expected: &[(u64, &'static str)]) -> Report {
    let (mut log, report) = run_with(&Config::new().virtual_time(), script);
    assert_eq!(log.pop(), Some((end, "hook")), "{log:?}");
    assert_eq!(log, expected);
    assert_eq!((&report.outcome, report.dropped_jobs), (&Outcome::Quiescent, 0));
    assert_eq!(report.elapsed.as_millis(), end.into());
    report
}

fn response(report: &Report, task: &str) -> u64 {
    report.task(task).expect("the report has every task").response.max / 1_000_000
}

#[test]
fn partitions_overlap_and_levels_preempt_within_their_own() {
    let script = || {
        app::a1::spawn(&[Say("a1"), Spend(10), Say("a1 ends")]).unwrap();
        app::b1::spawn(&[Say("b1"), Spend(4), Say("b1 ends")]).unwrap();
        app::a2::spawn_at(at(3), &[Say("a2"), Spend(2), Say("a2 ends")]).unwrap();
        app::b2::spawn_at(at(3), &[Say("b2"), Spend(3), Say("b2 ends")]).unwrap();
    };
    let expected = [
        (0, "a1"),
        (0, "b1"),
        (3, "a2"),
        (3, "b2"),
        (5, "a2 ends"),
        (6, "b2 ends"),
        (7, "b1 ends"),
        (12, "a1 ends"),
    ];
    let report = plays(script, 12, &expected);
    assert_eq!(["a1", "a2", "b1", "b2"].map(|task| response(&report, task)), [12, 2, 7, 3]);
    // Preempting jobs do not count in its execution time.
    assert_eq!(report.task("a1").unwrap().execution.max, 10_000_000);
}

#[test]
fn cross_partition_spawn_runs_at_same_instant() {
    let script = || {
        const THERE: &[Step] = &[Say("there"), Spend(3), Say("there ends")];
        app::a1::spawn(&[
            Spend(2),
            Do(|| app::b1::spawn(THERE).unwrap()),
            Say("spawned"),
            Spend(2),
            Say("a1 ends"),
        ])
        .unwrap();
    };
    plays(script, 5, &[(2, "spawned"), (2, "there"), (4, "a1 ends"), (5, "there ends")]);
}

#[test]
fn arms_timers_of_busy_partitions() {
    // `b` has no work at 1 ms and is in the middle of a job at 7 ms.
    let script = || {
        app::a1::spawn(&[
            Spend(1),
            Do(|| {
                app::b2::spawn_at(at(4), &[Say("first"), Spend(6), Say("first ends")]).unwrap();
            }),
            Spend(6),
            Do(|| {
                app::b3::spawn_at(at(8), &[Say("second"), Spend(1)]).unwrap();
            }),
            Say("armed"),
        ])
        .unwrap();
    };
    plays(script, 11, &[(4, "first"), (7, "armed"), (8, "second"), (11, "first ends")]);
}

#[test]
fn armed_jobs_are_cancelled_and_moved_across_partitions() {
    let script = || {
        app::a1::spawn(&[
            Do(|| {
                let never = app::b1::spawn_at(at(100), &[Say("never")]).unwrap();
                let sooner = app::b1::spawn_at(at(50), &[Say("sooner")]).unwrap();
                let later = app::b1::spawn_at(at(6), &[Say("later")]).unwrap();
                punctual::spend(punctual::Duration::from_millis(5));
                assert_eq!(never.cancel().map(<[Step]>::len), Ok(1));
                sooner.reschedule_at(at(7)).unwrap();
                later.reschedule_at(at(8)).unwrap();
            }),
            Say("moved"),
        ])
        .unwrap();
    };
    // The canceled job does not keep the run alive.
    plays(script, 8, &[(5, "moved"), (7, "sooner"), (8, "later")]);
}

#[test]
fn cross_partition_lock_is_fifo_and_waiters_spin() {
    let script = || {
        app::a1::spawn(&[X(&[Say("a1 in"), Spend(4)]), Say("a1 out"), Spend(1)]).unwrap();
        app::b1::spawn_at(at(1), &[Say("b1 asks"), X(&[Say("b1 in"), Spend(2)])]).unwrap();
        // While `b1` waits its partition is at the top level, and so is `a1`'s while it holds the
        // lock.
        app::b3::spawn_at(at(2), &[Say("b3")]).unwrap();
        app::a2::spawn_at(at(3), &[Say("a2 asks"), X(&[Say("a2 in"), Spend(2)])]).unwrap();
        app::b2::spawn_at(at(3), &[Say("b2 asks"), X(&[Say("b2 in"), Spend(1)]), Say("b2 out")]).unwrap();
    };
    let expected = [
        (0, "a1 in"),
        (1, "b1 asks"),
        (4, "a2 asks"),
        (4, "b1 in"),
        (6, "b3"),
        (6, "b2 asks"),
        (6, "a2 in"),
        (8, "a1 out"),
        (8, "b2 in"),
        (9, "b2 out"),
    ];
    let report = plays(script, 9, &expected);
    // Waiting occupies the CPU: it is part of the execution time. Jobs released during it precede
    // the end.
    assert_eq!(report.task("b1").unwrap().execution.max, 5_000_000);
    assert_eq!(["a1", "a2", "b1", "b2", "b3"].map(|task| response(&report, task)), [9, 5, 8, 6, 4]);
}

#[test]
fn resources_of_group_share_lock_and_nest_in_any_order() {
    let script = || {
        app::a1::spawn(&[X(&[Spend(2), Y(&[Say("a1 in both"), Spend(2)])]), Say("a1 out")]).unwrap();
        app::b1::spawn_at(at(1), &[Y(&[Say("b1 in y"), Spend(1), X(&[Say("b1 in both")])])]).unwrap();
        app::b3::spawn_at(at(2), &[X(&[Say("b3 in z")])]).unwrap();
    };
    let expected = [(2, "a1 in both"), (4, "a1 out"), (4, "b1 in y"), (5, "b1 in both"), (5, "b3 in z")];
    plays(script, 5, &expected);
}

#[test]
fn lock_groups_are_independent() {
    let script = || {
        app::a1::spawn(&[X(&[Say("a1 in x"), Spend(5)])]).unwrap();
        app::b3::spawn_at(at(1), &[X(&[Say("b3 in z"), Spend(1)]), Say("b3 out")]).unwrap();
    };
    plays(script, 5, &[(0, "a1 in x"), (1, "b3 in z"), (2, "b3 out")]);
}

#[test]
fn end_of_time_finishes_running_jobs() {
    let script = || {
        app::a1::spawn(&[X(&[Spend(8)]), Say("a1 ends")]).unwrap();
        app::b1::spawn(&[Spend(1), X(&[Spend(2)]), Say("b1 ends")]).unwrap();
        app::b2::spawn_at(at(6), &[Say("never")]).unwrap();
    };
    let (log, report) = run_with(&until_ms(5), script);
    assert_eq!(log, [(8, "a1 ends"), (10, "b1 ends"), (10, "hook")]);
    assert_eq!((report.outcome, report.elapsed.as_millis()), (Outcome::TimeUp, 10));
    assert_eq!(report.dropped_jobs, 1, "the one that was armed");
}

#[test]
fn shutdown_lets_other_partition_finish() {
    let script = || {
        app::a1::spawn(&[Spend(10), Say("a1 ends")]).unwrap();
        app::b1::spawn(&[Spend(3), Do(punctual::shutdown), Do(|| app::a2::spawn(&[]).unwrap()), Spend(3)])
            .unwrap();
        app::a2::spawn_at(at(5), &[Say("never")]).unwrap();
    };
    let (log, report) = run_with(&Config::new().virtual_time(), script);
    assert_eq!(log, [(10, "a1 ends"), (10, "hook")]);
    assert_eq!((&report.outcome, response(&report, "b1")), (&Outcome::Shutdown, 6));
}

#[test]
fn panic_in_critical_section_releases_it_and_drops_waiting_jobs() {
    let script = || {
        app::b1::spawn(&[X(&[Spend(3), Do(|| panic!("here"))])]).unwrap();
        app::a1::spawn(&[Spend(1), X(&[Say("a1 in"), Spend(2)]), Say("a1 out")]).unwrap();
        app::a1::spawn(&[Say("never")]).unwrap();
    };
    let (log, report) = run_with(&Config::new().virtual_time(), script);
    assert_eq!(log, [(3, "a1 in"), (5, "a1 out"), (5, "hook")]);
    let expected = Outcome::Panicked { task: "b1".into(), message: "here".into() };
    assert_eq!((report.outcome.clone(), report.exit_code(), report.dropped_jobs), (expected, 101, 1));
}

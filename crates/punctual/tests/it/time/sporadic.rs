//! Minimum intervals between releases: early ones are counted, delayed or rejected.

use super::*;

#[punctual::app(main = false, partitions = [a, b])]
mod app {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use crate::log::Log;
    use punctual::prelude::*;
    use punctual::{Instant, SpawnError};

    #[shared]
    struct Shared {
        log: Log,
    }

    #[local]
    struct Local {
        line: UnixStream,
        other_end: UnixStream,
    }

    #[init]
    fn init(_: init::Context, log: Log, script: fn()) -> (Shared, Local) {
        let (line, other_end) = UnixStream::pair().expect("sockets can be made");
        script();
        (Shared { log }, Local { line, other_end })
    }

    pub(super) fn at(ms: u64) -> Instant {
        Instant::from_ticks(0) + ms.millis()
    }

    #[task(core = a, priority = 3, capacity = 16)]
    fn act(_: act::Context, what: fn()) {
        what();
    }

    #[task(core = a, priority = 4, min_interval = 10.millis(), shared = [&log])]
    fn counted(cx: counted::Context, what: &'static str) {
        cx.shared.log.note(what);
    }

    #[task(core = a, priority = 2, min_interval = 10.millis(), burst = 2, capacity = 8, shared = [&log])]
    fn queued(cx: queued::Context, what: &'static str) {
        cx.shared.log.note(what);
    }

    /// Above `act`, so that its spawns are calls.
    #[task(core = a, priority = 5, min_interval = 10.millis(), burst = 2, on_early = delay, capacity = 2,
        shared = [&log])]
    fn delayed(cx: delayed::Context, what: &'static str) {
        cx.shared.log.note(what);
    }

    #[task(core = b, min_interval = 10.millis(), on_early = delay, shared = [&log])]
    fn elsewhere(cx: elsewhere::Context, what: &'static str) {
        cx.shared.log.note(what);
    }

    #[task(core = a, priority = 1, min_interval = 10.millis(), on_early = reject, shared = [&log])]
    fn rejected(cx: rejected::Context, what: &'static str) {
        cx.shared.log.note(what);
    }

    #[task(core = a, priority = 6, capacity = 8, local = [other_end])]
    fn write(cx: write::Context) {
        cx.local.other_end.write_all(b"x").expect("there is room");
    }

    #[task(core = b, priority = 2, binds = line, min_interval = 10.millis(), on_early = delay,
        shared = [&log], local = [line])]
    fn reads(cx: reads::Context) {
        let read = cx.local.line.read(&mut [0; 8]).expect("there is something");
        cx.shared.log.note(["", "read 1", "read 2", "read 3"][read]);
    }

    pub(super) fn refused<A>(released: Result<(), SpawnError<A>>) -> A {
        let error = released.expect_err("it is too early");
        assert!(error.is_too_early());
        error.into_inner()
    }
}

fn run(script: fn()) -> (Vec<(u64, &'static str)>, Report) {
    let log = Log::default();
    let report = app::run(Config::new().virtual_time(), log.clone(), script).unwrap();
    assert_eq!(report.outcome, Outcome::Quiescent);
    assert_eq!(report.dropped_jobs, 0);
    (log.take(), report)
}

fn early(report: &Report, task: &str) -> u64 {
    report.task(task).expect("the report has every task").early
}

#[test]
fn early_calls_take_place_and_are_counted() {
    let (log, report) = run(|| {
        for ms in [0, 10, 19, 29, 30] {
            app::act::spawn_at(app::at(ms), || app::counted::spawn("called").unwrap()).unwrap();
        }
    });
    assert_eq!(log, [0, 10, 19, 29, 30].map(|ms| (ms, "called")));
    // At 19 ms and at 30 ms: 29 is ten after 19.
    assert_eq!(early(&report, "counted"), 2);
    let task = report.task("counted").unwrap();
    assert_eq!((task.min_interval, task.burst), (Some(Duration::from_millis(10)), 1));
    assert!(
        report.to_string().contains("counted: 2 releases came too early: more than 1 in 10.0 ms"),
        "{report}"
    );
}

#[test]
fn queued_and_timed_releases_count_from_their_release() {
    let (log, report) = run(|| {
        // Released at 0, 0 and 0, run after `act`.
        app::act::spawn_at(app::at(0), || {
            for what in ["a", "b", "c"] {
                app::queued::spawn(what).unwrap();
            }
            punctual::spend(Duration::from_millis(50));
        })
        .unwrap();
        // 60 and 69 are two; 70 is ten after 60.
        for ms in [60, 69, 70, 78] {
            app::queued::spawn_at(app::at(ms), "timed").unwrap();
        }
    });
    let expected =
        [(50, "a"), (50, "b"), (50, "c"), (60, "timed"), (69, "timed"), (70, "timed"), (78, "timed")];
    assert_eq!(log, expected);
    // `c`, and the one at 78 ms: 69 is nine before it.
    assert_eq!(early(&report, "queued"), 2);
}

#[test]
fn early_releases_wait_for_interval_in_order() {
    let (log, report) = run(|| {
        app::act::spawn_at(app::at(5), || {
            app::delayed::spawn("a").unwrap();
            app::delayed::spawn("b").unwrap();
            // These two are released at 15 ms, and there is no more room.
            app::delayed::spawn("c").unwrap();
            app::delayed::spawn("d").unwrap();
            assert!(app::delayed::spawn("e").unwrap_err().is_full());
        })
        .unwrap();
        app::act::spawn_at(app::at(20), || app::delayed::spawn("f").unwrap()).unwrap();
        app::act::spawn_at(app::at(40), || app::delayed::spawn("g").unwrap()).unwrap();
    });
    // A spawn rejected for lack of room has not used up an interval.
    let expected = [(5, "a"), (5, "b"), (15, "c"), (15, "d"), (25, "f"), (40, "g")];
    assert_eq!(log, expected);
    assert_eq!(early(&report, "delayed"), 3);
    let task = report.task("delayed").unwrap();
    assert_eq!(task.response.max, 0, "a delayed job is released when it may be");
    assert!(
        report.to_string().contains("delayed: 3 releases came too early and waited: more than 2 in"),
        "{report}"
    );
}

#[test]
fn early_releases_from_another_partition_wait() {
    let (log, report) = run(|| {
        app::act::spawn_at(app::at(3), || {
            app::elsewhere::spawn("a").unwrap();
        })
        .unwrap();
        app::act::spawn_at(app::at(4), || app::elsewhere::spawn("b").unwrap()).unwrap();
    });
    assert_eq!((log, early(&report, "elsewhere")), (vec![(3, "a"), (13, "b")], 1));
}

#[test]
fn rejected_releases_return_arguments() {
    let (log, report) = run(|| {
        app::act::spawn_at(app::at(0), || app::rejected::spawn("a").unwrap()).unwrap();
        app::act::spawn_at(app::at(9), || {
            assert_eq!(app::refused(app::rejected::spawn("b")), "b");
        })
        .unwrap();
        app::act::spawn_at(app::at(10), || {
            app::rejected::spawn("c").unwrap();
            assert_eq!(app::refused(app::rejected::spawn("d")), "d");
        })
        .unwrap();
    });
    assert_eq!((log, early(&report, "rejected")), (vec![(0, "a"), (10, "c")], 2));
    assert!(report.to_string().contains("rejected: 2 releases came too early and were rejected"), "{report}");
}

#[test]
fn early_events_wait_in_source_for_interval() {
    let (log, report) = run(|| {
        for ms in [2, 3, 4, 12] {
            app::act::spawn_at(app::at(ms), || app::write::spawn().unwrap()).unwrap();
        }
    });
    // Data written at 3 and 4 ms is read by one job, at 12 ms, together with the data written then:
    // `write` goes first.
    let read: Vec<_> = log.iter().map(|&(ms, what)| (ms, what)).collect();
    assert_eq!(read, [(2, "read 1"), (12, "read 3")]);
    assert_eq!(early(&report, "reads"), 1);
}

mod unmonitored {
    use super::*;

    #[punctual::app(main = false, monitor = false)]
    mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            act::spawn().unwrap();
            queued::spawn_after(3.millis()).unwrap();
            (Shared {}, Local {})
        }

        #[task(priority = 2)]
        fn act(_: act::Context) {
            called::spawn().unwrap();
            queued::spawn().unwrap();
            punctual::spend(5.millis());
            called::spawn().unwrap();
        }

        #[task(priority = 3, min_interval = 10.millis())]
        fn called(_: called::Context) {}

        #[task(priority = 1, min_interval = 4.millis(), capacity = 2)]
        fn queued(_: queued::Context) {}
    }

    #[test]
    fn intervals_are_watched_without_monitoring() {
        let report = app::run(Config::new().virtual_time()).unwrap();
        assert!(!report.task("called").unwrap().measured);
        // Released at 0 and 5 ms, and at 0 and 3 ms.
        assert_eq!((early(&report, "called"), early(&report, "queued")), (1, 1));
    }
}

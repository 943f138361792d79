//! Start of an app with several parts on threads of the kernel.

use std::sync::Mutex;

use crate::privileges;
use punctual::Config;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use test_skip::{Need, skip};

#[punctual::app(executor = "global", main = false)]
mod app {
    use std::sync::Mutex;

    #[shared]
    struct Shared {
        order: &'static Mutex<Vec<&'static str>>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, order: &'static Mutex<Vec<&'static str>>) -> (Shared, Local) {
        low::spawn().unwrap();
        high::spawn().unwrap();
        (Shared { order }, Local {})
    }

    #[task(priority = 1, shared = [&order])]
    fn low(cx: low::Context) {
        cx.shared.order.lock().unwrap().push("low");
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [&order])]
    fn high(cx: high::Context) {
        cx.shared.order.lock().unwrap().push("high");
    }
}

/// On one CPU a level that starts first would prevent the thread that starts the others from
/// running.
#[test]
fn global_executor_levels_start_from_top() {
    static ORDER: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    if !privileges::real_time() {
        skip(Need::RealTime, "the order of levels");
        return;
    }
    let _alone = crate::alone();
    let allowed = sched_getaffinity(None).expect("a thread may ask where it runs");
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).expect("it runs somewhere"));
    sched_setaffinity(None, &one).expect("a thread may choose among its CPUs");
    app::run(Config::new(), &ORDER).expect("nothing is missing");
    assert_eq!(*ORDER.lock().unwrap(), ["high", "low"]);
}

/// Refused by `strict`, unless the polled CPU happens to be isolated.
#[punctual::app(partitions = [ordinary, fast(poll)], strict, main = false)]
mod refused {
    #[shared]
    struct Shared {
        value: Box<u32>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { value: Box::new(7) }, Local {})
    }

    #[task(shared = [&value])]
    fn uses(cx: uses::Context) {
        assert_eq!(**cx.shared.value, 7);
        punctual::shutdown();
    }

    #[task(core = fast, shared = [&value])]
    fn uses_too(cx: uses_too::Context) {
        assert_eq!(**cx.shared.value, 7);
        punctual::shutdown();
    }
}

/// Other threads may spawn as soon as a run begins, and their jobs need resources that will not
/// exist.
#[test]
fn failed_start_runs_nothing() {
    let _alone = crate::alone();
    use std::sync::atomic::{AtomicBool, Ordering};
    static OVER: AtomicBool = AtomicBool::new(false);
    let spawner = std::thread::spawn(|| {
        let mut accepted = 0;
        while !OVER.load(Ordering::Relaxed) {
            accepted +=
                u32::from(refused::uses::spawn().is_ok()) + u32::from(refused::uses_too::spawn().is_ok());
            std::thread::yield_now();
        }
        accepted
    });
    for _ in 0..40 {
        if let Ok(report) = refused::run(punctual::Config::new()) {
            assert_eq!(report.exit_code(), 0, "{report}");
        }
    }
    OVER.store(true, Ordering::Relaxed);
    assert!(spawner.join().expect("it does not panic") > 0, "nothing was spawned while a run began");
}

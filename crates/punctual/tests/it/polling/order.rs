//! The order of jobs: by level, at the boundaries between jobs, and in virtual time exactly.

use punctual::Config;

use crate::log::Log;

/// `low` takes 10 ms; `high` is released by the clock in the middle of it, and by another
/// partition.
#[punctual::app(partitions = [other, fast(poll)], main = false)]
mod app {
    use punctual::prelude::*;

    use super::Log;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        a: Log,
        b: Log,
        c: Log,
        d: Log,
    }

    #[init]
    fn init(_: init::Context, log: Log) -> (Shared, Local) {
        low::spawn(1).unwrap();
        low::spawn(2).unwrap();
        low::spawn(3).unwrap();
        from_elsewhere::spawn_after(12.millis()).unwrap();
        (Shared {}, Local { a: log.clone(), b: log.clone(), c: log.clone(), d: log })
    }

    #[task(core = fast, priority = 1, capacity = 3, execution = 10.millis(), local = [a])]
    fn low(cx: low::Context, n: u32) {
        cx.local.a.note(["", "low 1", "low 2", "low 3"][n as usize]);
        if n == 1 {
            middle::spawn().unwrap();
            cx.local.a.note("low 1 goes on");
        }
    }

    /// Spawned by a job below it: a call, as on other executors.
    #[task(core = fast, priority = 2, local = [b])]
    fn middle(cx: middle::Context) {
        cx.local.b.note("middle");
    }

    #[task(core = fast, priority = 3, period = 1.secs(), offset = 4.millis(), local = [c])]
    fn high(cx: high::Context) {
        cx.local.c.note("high");
    }

    #[task(core = other)]
    fn from_elsewhere(_: from_elsewhere::Context) {
        highest::spawn().unwrap();
    }

    #[task(core = fast, priority = 4, local = [d])]
    fn highest(cx: highest::Context) {
        cx.local.d.note("highest");
    }
}

#[test]
fn only_spawned_jobs_preempt_job() {
    let log = Log::default();
    let until = punctual::Duration::from_millis(100);
    app::run(Config::new().virtual_time().until(until), log.clone())
        .expect("virtual time has no requirements");
    let expected = [
        (0, "low 1"),
        (0, "middle"),
        (0, "low 1 goes on"),
        (10, "high"),
        (10, "low 2"),
        (20, "highest"),
        (20, "low 3"),
    ];
    assert_eq!(log.take(), expected);
}

//! virtual-only: the times have to be exact
//! one-cpu: the times are those of tasks that share a CPU
//!
//! The priority ceiling protocol: an intermediate task cannot prolong a critical section.
//!
//! `s1` is used by `low` and `high`, `s2` by `middle` and `high`, so both ceilings are 3. `low`
//! holds `s1` from 1 ms to 6 ms. `middle` is released at 2 ms and `high` at 4 ms; neither is above
//! the ceiling, so neither starts, and `low` completes its critical section undisturbed. At 6 ms it
//! unlocks and the highest waiting task goes first. So `high` waits 2 ms for a lock that it needs,
//! and not for `middle`, which executes for 3 ms: without the protocol `middle` would preempt
//! `low`, and `high` would wait for both.

use punctual::{Config, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time())?;
    for (task, response_ms) in [("high", 5), ("middle", 10), ("low", 13)] {
        assert_eq!(report.task(task).unwrap().response.max, response_ms * 1_000_000, "R of {task}");
    }
    Ok(())
}

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        s1: (),
        s2: (),
    }

    #[local]
    struct Local {}

    fn note(event: &str) {
        println!("{:2} ms: {event}", punctual::now().duration_since_epoch().as_millis());
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        middle::spawn_after(2.millis()).unwrap();
        high::spawn_after(4.millis()).unwrap();
        (Shared { s1: (), s2: () }, Local {})
    }

    #[task(priority = 3, shared = [s1, s2])]
    fn high(mut cx: high::Context) {
        note("    high starts");
        punctual::spend(1.millis());
        cx.shared.s1.lock(|()| punctual::spend(1.millis()));
        cx.shared.s2.lock(|()| punctual::spend(1.millis()));
        note("    high ends");
    }

    #[task(priority = 2, shared = [s2])]
    fn middle(mut cx: middle::Context) {
        note("  middle starts");
        punctual::spend(1.millis());
        cx.shared.s2.lock(|()| punctual::spend(2.millis()));
        note("  middle ends");
    }

    #[task(priority = 1, shared = [s1])]
    fn low(mut cx: low::Context) {
        note("low starts");
        punctual::spend(1.millis());
        cx.shared.s1.lock(|()| {
            note("low locks s1");
            punctual::spend(5.millis());
            note("low unlocks s1");
        });
        punctual::spend(1.millis());
        note("low ends");
    }
}

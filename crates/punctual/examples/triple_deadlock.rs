//! virtual-only: the times have to be exact
//! one-cpu: the times are those of tasks that share a CPU
//!
//! Three tasks and three resources in a circle: no deadlock, and no unnecessary waiting.
//!
//! `high` locks `a` then `b`, `middle` locks `b` then `c`, `low` locks `c` then `a`. The ceilings
//! are 3 for `a` and `b`, and 2 for `c`.
//!
//! * From 0 ms `low` holds `c`: the level is 2. `middle`, released at 1 ms, is not above it and
//!   waits.
//! * From 2 ms `low` holds `a` too: the level is 3. `high`, released at 3 ms, waits.
//! * At 4 ms `low` releases `a`: the level is 2 again, and `high` starts, in the middle of the
//!   section on `c`, which it does not use. It finds `a` and `b` free.
//! * At 7 ms `low` releases `c`, and `middle` starts and finds `b` and `c` free.

use punctual::{Config, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time())?;
    for (task, response_ms) in [("high", 3), ("middle", 8), ("low", 10)] {
        assert_eq!(report.task(task).unwrap().response.max, response_ms * 1_000_000, "R of {task}");
    }
    Ok(())
}

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        a: (),
        b: (),
        c: (),
    }

    #[local]
    struct Local {}

    fn note(event: &str) {
        println!("{:2} ms: {event}", punctual::now().duration_since_epoch().as_millis());
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        middle::spawn_after(1.millis()).unwrap();
        high::spawn_after(3.millis()).unwrap();
        (Shared { a: (), b: (), c: () }, Local {})
    }

    #[task(priority = 3, shared = [a, b])]
    fn high(mut cx: high::Context) {
        note("    high starts");
        cx.shared.a.lock(|()| {
            note("    high holds a");
            punctual::spend(1.millis());
            cx.shared.b.lock(|()| {
                note("    high holds a and b");
                punctual::spend(1.millis());
            });
        });
        note("    high ends");
    }

    #[task(priority = 2, shared = [b, c])]
    fn middle(mut cx: middle::Context) {
        note("  middle starts");
        cx.shared.b.lock(|()| {
            note("  middle holds b");
            punctual::spend(1.millis());
            cx.shared.c.lock(|()| {
                note("  middle holds b and c");
                punctual::spend(1.millis());
            });
        });
        note("  middle ends");
    }

    #[task(priority = 1, shared = [c, a])]
    fn low(mut cx: low::Context) {
        note("low starts");
        cx.shared.c.lock(|()| {
            note("low holds c");
            punctual::spend(2.millis());
            cx.shared.a.lock(|()| {
                note("low holds c and a");
                punctual::spend(2.millis());
            });
            note("low holds c");
            punctual::spend(1.millis());
        });
        punctual::spend(1.millis());
        note("low ends");
    }
}

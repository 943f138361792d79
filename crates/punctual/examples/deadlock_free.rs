//! virtual-only: the times have to be exact
//! one-cpu: the times are those of tasks that share a CPU
//!
//! Two tasks lock two resources in opposite order, and cannot deadlock.
//!
//! With ordinary mutexes `low` would hold `b` and wait for `a` while `high` holds `a` and waits for
//! `b`. Here both ceilings are 2, the level of `high`. `high` is released at 1 ms, while `low`
//! holds `b`: it does not start, so it cannot take `a` in between. `low` takes `a` as well and
//! releases both at 4 ms. Only then does `high` start, and finds both free.

use punctual::{Config, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time())?;
    for (task, response_ms) in [("high", 5), ("low", 7)] {
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
    }

    #[local]
    struct Local {}

    fn note(event: &str) {
        println!("{} ms: {event}", punctual::now().duration_since_epoch().as_millis());
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        high::spawn_after(1.millis()).unwrap();
        (Shared { a: (), b: () }, Local {})
    }

    #[task(priority = 2, shared = [a, b])]
    fn high(mut cx: high::Context) {
        note("  high starts");
        cx.shared.a.lock(|()| {
            note("  high holds a");
            punctual::spend(1.millis());
            cx.shared.b.lock(|()| {
                note("  high holds a and b");
                punctual::spend(1.millis());
            });
        });
        note("  high ends");
    }

    #[task(priority = 1, shared = [a, b])]
    fn low(mut cx: low::Context) {
        note("low starts");
        cx.shared.b.lock(|()| {
            note("low holds b");
            punctual::spend(2.millis());
            cx.shared.a.lock(|()| {
                note("low holds b and a");
                punctual::spend(2.millis());
            });
        });
        punctual::spend(1.millis());
        note("low ends");
    }
}

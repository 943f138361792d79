//! virtual-only: the times have to be exact
//! one-cpu: the times are those of tasks that share a CPU
//!
//! A task waits for at most one critical section of a lower task, regardless of the number of its
//! resources.
//!
//! `high` uses `a` and `b`, and `low` and `middle` use one of them each; both ceilings are 3. With
//! priority inheritance alone `middle`, released at 1 ms, would preempt `low` and lock `b`. Then
//! `high`, released at 2 ms, would wait first for `low` to release `a` and then for `middle` to
//! release `b`: a double inversion, and a response time of 7 ms. Here `middle` does not start while
//! `low` holds `a`, and so cannot hold `b` when `high` is released. `high` waits once, from 2 ms to
//! 4 ms, and its response time is 4 ms.

use punctual::{Config, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time())?;
    for (task, response_ms) in [("high", 4), ("middle", 8), ("low", 10)] {
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
        println!("{:2} ms: {event}", punctual::now().duration_since_epoch().as_millis());
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        low::spawn().unwrap();
        middle::spawn_after(1.millis()).unwrap();
        high::spawn_after(2.millis()).unwrap();
        (Shared { a: (), b: () }, Local {})
    }

    #[task(priority = 3, shared = [a, b])]
    fn high(mut cx: high::Context) {
        note("    high starts");
        cx.shared.a.lock(|()| punctual::spend(1.millis()));
        cx.shared.b.lock(|()| punctual::spend(1.millis()));
        note("    high ends");
    }

    #[task(priority = 2, shared = [b])]
    fn middle(mut cx: middle::Context) {
        note("  middle starts");
        cx.shared.b.lock(|()| punctual::spend(3.millis()));
        note("  middle ends");
    }

    #[task(priority = 1, shared = [a])]
    fn low(mut cx: low::Context) {
        note("low starts");
        cx.shared.a.lock(|()| punctual::spend(4.millis()));
        punctual::spend(1.millis());
        note("low ends");
    }
}

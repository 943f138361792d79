//! A periodic task that calls a task above it, and leaves the rest to one below: for `punctual rta` to bound.
//!
//!     rta_calls SECONDS
//!
//! In `PUNCTUAL_PROFILE=FILE` is what was seen of it.

use std::process::ExitCode;

use punctual_lab::Result;

fn main() -> Result<ExitCode> {
    punctual_lab::run_for_seconds(app::run)
}

#[punctual::app(main = false, profile)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        sum: u64,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { sum: 0 }, Local {})
    }

    #[task(priority = 3, deadline = 1.millis(), shared = [sum])]
    fn act(mut cx: act::Context) {
        cx.shared.sum.lock(|sum| *sum += 1);
        punctual::spend(50.micros());
    }

    #[task(priority = 2, period = 1.millis())]
    fn sample(_: sample::Context) {
        // First, since nothing says when in a job it spawns: so `log` waits for all of this one, as its bound has it.
        let _ = log::spawn();
        punctual::spend(100.micros());
        let _ = act::spawn();
    }

    #[task(priority = 1, deadline = 1.millis(), shared = [sum])]
    fn log(mut cx: log::Context) {
        punctual::spend(80.micros());
        cx.shared.sum.lock(|sum| {
            punctual::spend(20.micros());
            *sum += 1;
        });
    }
}

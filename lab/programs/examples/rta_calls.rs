//! A periodic task that calls a higher task, and spawns a lower one: an input for `punctual rta`.
//!
//!     rta_calls SECONDS
//!
//! `PUNCTUAL_PROFILE=FILE` selects the file for the observations.

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
        // First, since the position of a spawn within a job is not declared: so `log` waits for all
        // of this job, as in its bound.
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

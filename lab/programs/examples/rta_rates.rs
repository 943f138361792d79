//! Tasks of three rates, of which the fastest and the slowest share a resource: an input for
//! `punctual rta`.
//!
//!     rta_rates SECONDS
//!
//! `PUNCTUAL_PROFILE=FILE` selects the file for the observations.
//!
//! Releases are at multiples of 500 µs. Each job of `slow` enters its critical section a little
//! later than the previous one, so that a release eventually coincides with the start of the
//! section; all its jobs take the same time.

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
    struct Local {
        jobs: u64,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { sum: 0 }, Local { jobs: 0 })
    }

    #[task(priority = 3, period = 500.micros(), shared = [sum])]
    fn fast(mut cx: fast::Context) {
        punctual::spend(60.micros());
        cx.shared.sum.lock(|sum| *sum += 1);
    }

    #[task(priority = 2, period = 1.millis())]
    fn middle(_: middle::Context) {
        punctual::spend(150.micros());
    }

    #[task(priority = 1, period = 5.millis(), shared = [sum], local = [jobs])]
    fn slow(mut cx: slow::Context) {
        let before = 130 + *cx.local.jobs % 170;
        *cx.local.jobs += 1;
        punctual::spend(before.micros());
        cx.shared.sum.lock(|sum| {
            punctual::spend(40.micros());
            *sum += 1;
        });
        punctual::spend((300 - before).micros());
    }
}

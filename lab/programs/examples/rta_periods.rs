//! Eight tasks of moderate periods, two of which share a resource: an input for `punctual rta` on a
//! machine with disturbances.
//!
//!     rta_periods SECONDS
//!
//! They have 2000 jobs per second and need a tenth of the CPU, so occasional losses of the CPU for
//! some milliseconds, to the host of a virtual machine for example, make jobs late without
//! exceeding the bounds. The priorities are above those of other programs' threads.

use std::process::ExitCode;

use punctual_lab::Result;

/// Above the usual priorities of other programs, and below the kernel's stopper and migration
/// threads.
const BASE: u8 = 80;

fn main() -> Result<ExitCode> {
    punctual_lab::run_for_seconds(|config| app::run(config.priority_base(BASE)))
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

    #[task(priority = 8, period = 2.millis(), deadline = 2.millis(), shared = [sum])]
    fn current(mut cx: current::Context) {
        punctual::spend(20.micros());
        cx.shared.sum.lock(|sum| *sum += 1);
    }

    #[task(priority = 7, period = 2.millis())]
    fn position(_: position::Context) {
        punctual::spend(20.micros());
    }

    #[task(priority = 6, period = 4.millis())]
    fn velocity(_: velocity::Context) {
        punctual::spend(30.micros());
    }

    #[task(priority = 5, period = 4.millis())]
    fn limits(_: limits::Context) {
        punctual::spend(30.micros());
    }

    #[task(priority = 4, period = 5.millis())]
    fn estimate(_: estimate::Context) {
        punctual::spend(50.micros());
    }

    #[task(priority = 3, period = 10.millis())]
    fn setpoint(_: setpoint::Context) {
        punctual::spend(50.micros());
    }

    #[task(priority = 2, period = 10.millis())]
    fn monitor(_: monitor::Context) {
        punctual::spend(50.micros());
    }

    #[task(priority = 1, period = 10.millis(), shared = [sum])]
    fn log(mut cx: log::Context) {
        punctual::spend(50.micros());
        cx.shared.sum.lock(|sum| {
            punctual::spend(20.micros());
            *sum += 1;
        });
    }
}

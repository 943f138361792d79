//! Eight tasks of moderate periods, two of which share a resource: for `punctual rta` to bound on a machine that is not quiet.
//!
//!     rta_periods SECONDS
//!
//! They have 2000 jobs a second and need a tenth of the CPU, so what takes it from them now and then for some milliseconds, such as
//! the host of a virtual machine, makes jobs late and leaves them a bound. The priorities are high, so that no thread of
//! another program is above them.

use std::process::ExitCode;

use punctual_lab::Result;

/// Above what other programs usually take, and below the kernel's threads for stopping and migrating.
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

//! virtual-only: the plant is simulated in the app's own time
//! one-cpu: `control` sees what `plant` has just done, since it is below
//!
//! A controller and a model of its plant, in one app, in virtual time.
//!
//! `plant` advances a heated room by one second, `control` switches the heater every ten. If both
//! are released, `plant` goes first, because it is above: the controller always sees the current
//! state of the room. Ten minutes take no real time, and every run is the same.

use punctual::{Config, Duration, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new().virtual_time().until(Duration::from_minutes(10)))?;
    println!("{} after {} s", report.outcome, report.elapsed.as_secs());
    Ok(())
}

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        celsius: f64,
        heating: bool,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { celsius: 15.0, heating: false }, Local {})
    }

    #[task(priority = 2, period = 1.secs(), shared = [celsius, heating])]
    fn plant(cx: plant::Context) {
        (cx.shared.celsius, cx.shared.heating).lock(|celsius, heating| {
            let heater = if *heating { 0.125 } else { 0.0 };
            *celsius += heater - (*celsius - 10.0) / 256.0;
        });
    }

    #[task(priority = 1, period = 10.secs(), shared = [celsius, heating])]
    fn control(cx: control::Context) {
        let seconds = cx.released.duration_since_epoch().as_secs();
        (cx.shared.celsius, cx.shared.heating).lock(|celsius, heating| {
            let before = *heating;
            *heating = if *heating { *celsius < 21.0 } else { *celsius < 19.0 };
            if *heating != before {
                println!("{seconds:3} s: {celsius:.1} °C, heater {}", if *heating { "on" } else { "off" });
            }
        });
    }
}

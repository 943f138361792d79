//! A real-time controller.
//!
//! | task | level | released | does |
//! |---|---|---|---|
//! | `control` | 2 | every millisecond | reads the sensor, computes the output |
//! | `alarm` | 1 | by `control` | says that the sensor is out of range |
//!
//! `cargo test` runs it in virtual time; `cargo run` on threads of the kernel, until Ctrl-C.

#[punctual::app]
mod controller {
    use punctual::prelude::*;

    /// The sensor is trusted up to this.
    const LIMIT: f32 = 10.0;

    #[shared]
    struct Shared {
        setpoint: f32,
    }

    #[local]
    struct Local {
        value: f32,
    }

    /// Before the first job: open devices here, allocate, and start threads by `punctual::background`.
    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { setpoint: 1.0 }, Local { value: 0.0 })
    }

    #[task(priority = 2, period = 1.millis(), deadline = 500.micros(), shared = [setpoint], local = [value])]
    fn control(mut cx: control::Context) {
        let setpoint = cx.shared.setpoint.lock(|setpoint| *setpoint);
        // In place of your sensor and actuator: a value that follows the setpoint.
        let value = cx.local.value;
        *value += (setpoint - *value) / 100.0;
        if value.abs() > LIMIT {
            // One that waits already says it.
            let _ = alarm::spawn(*value);
        }
    }

    #[task(priority = 1, shared = [setpoint])]
    fn alarm(mut cx: alarm::Context, value: f32) {
        cx.shared.setpoint.lock(|setpoint| *setpoint = 0.0);
        punctual::log!(Warn, "the sensor says {value}: back to zero");
    }
}

#[cfg(test)]
mod tests {
    use punctual::{Config, Duration};

    /// A minute of control takes a moment, and is the same each time.
    #[test]
    fn controls_every_millisecond_and_never_late() {
        let config = Config::new().virtual_time().until(Duration::from_minutes(1));
        let report = super::controller::run(config).expect("virtual time needs nothing");
        let control = report.task("control").expect("it is declared");
        assert_eq!((control.jobs, control.overruns, control.misses), (60_000, 0, 0));
        assert_eq!(report.task("alarm").map(|alarm| alarm.jobs), Some(0));
    }
}

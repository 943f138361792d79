//! A real-time controller.
//!
//! | task | level | released | does |
//! |---|---|---|---|
//! | `control` | 2 | every millisecond | reads the sensor, computes the output |
//! | `steer` | 1 | by a line on the standard input | sets the setpoint |
//! | `alarm` | 1 | by `control` | logs that the sensor is out of range |
//!
//! `cargo test` runs it in virtual time; `cargo run` on threads of the kernel, until Ctrl-C.

use std::io::BufRead;
use std::process::ExitCode;

use punctual::Config;

fn main() -> ExitCode {
    eprintln!("write a setpoint, such as 0.5; Ctrl-C ends the run");
    let reader = punctual::background::spawn("setpoints", || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            match line.trim().parse::<f32>() {
                Ok(setpoint) if setpoint.is_finite() => {
                    if controller::steer::spawn(setpoint).is_err() {
                        eprintln!("{setpoint} is dropped, because the previous setpoint still waits");
                    }
                }
                _ => eprintln!("{line:?} is not a number; write a setpoint, such as 0.5"),
            }
        }
    });
    if let Err(error) = reader {
        eprintln!("setpoints are not read: {error}");
    }
    match controller::run(Config::from_env(), 1.0, |_| ()) {
        Ok(report) => {
            println!("{report}");
            report.exit_code().into()
        }
        Err(error) => {
            eprintln!("{error}");
            error.exit_code().into()
        }
    }
}

#[punctual::app(main = false)]
mod controller {
    use punctual::prelude::*;

    /// Maximum plausible reading of the sensor.
    const LIMIT: f32 = 10.0;

    #[shared]
    struct Shared {
        setpoint: f32,
    }

    #[local]
    struct Local {
        value: f32,
        at_end: fn(f32),
    }

    /// Before the first job: open devices here, allocate, and start threads by
    /// `punctual::background`. The arguments come from the caller of `run`: `main` or a test.
    #[init]
    fn init(_: init::Context, setpoint: f32, at_end: fn(f32)) -> (Shared, Local) {
        (Shared { setpoint }, Local { value: 0.0, at_end })
    }

    #[task(priority = 2, period = 1.millis(), deadline = 500.micros(), shared = [setpoint], local = [value])]
    fn control(mut cx: control::Context) {
        let setpoint = cx.shared.setpoint.lock(|setpoint| *setpoint);
        // Replace this by your sensor and actuator: a value that follows the setpoint.
        let value = cx.local.value;
        *value += (setpoint - *value) / 100.0;
        if value.abs() > LIMIT {
            // One waiting alarm is sufficient.
            let _ = alarm::spawn(*value);
        }
    }

    #[task(priority = 1, shared = [setpoint])]
    fn steer(mut cx: steer::Context, setpoint: f32) {
        cx.shared.setpoint.lock(|shared| *shared = setpoint);
        punctual::log!(Info, "the setpoint is {setpoint}");
    }

    #[task(priority = 1, shared = [setpoint])]
    fn alarm(mut cx: alarm::Context, value: f32) {
        cx.shared.setpoint.lock(|setpoint| *setpoint = 0.0);
        punctual::log!(Warn, "the sensor reads {value}, which is out of range; the setpoint is 0");
    }

    #[shutdown(local = [value, at_end])]
    fn shutdown(cx: shutdown::Context) {
        (cx.local.at_end)(*cx.local.value);
    }
}

/// In virtual time a minute takes a moment, and every run is the same. Tests run in parallel, and
/// the runs of the app are serialized.
#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use punctual::Duration;

    use super::*;

    #[test]
    fn reaches_setpoint_without_misses() {
        static VALUE: Mutex<f32> = Mutex::new(0.0);
        let config = Config::new().virtual_time().until(Duration::from_minutes(1));
        let at_end = |value| *VALUE.lock().unwrap() = value;
        let report = controller::run(config, 1.0, at_end).expect("virtual time has no requirements");
        let control = report.task("control").expect("it is declared");
        assert_eq!((control.jobs, control.overruns, control.misses), (60_000, 0, 0));
        assert_eq!(report.task("alarm").map(|alarm| alarm.jobs), Some(0));
        let value = *VALUE.lock().unwrap();
        assert!((value - 1.0).abs() < 0.001, "{value}");
    }

    #[test]
    fn value_out_of_range_raises_alarm() {
        let config = Config::new().virtual_time().until(Duration::from_secs(1));
        let report = controller::run(config, 20.0, |_| ()).expect("virtual time has no requirements");
        assert!(report.task("alarm").is_some_and(|alarm| alarm.jobs > 0), "{report}");
    }
}

//! A controller of two axes, pan and tilt, that follow setpoints.
//!
//! | task | level | released | does |
//! |---|---|---|---|
//! | `position` | 2 | every millisecond | reads both angles, computes and applies both torques |
//! | `steer` | 1 | by a line on the standard input | sets the setpoints |
//!
//! `cargo test` runs it in virtual time; `cargo run` on threads of the kernel, until Ctrl-C: write
//! `0.5 -0.2` to turn.

mod axis;

use std::io::BufRead;
use std::process::ExitCode;

use punctual::Config;

fn main() -> ExitCode {
    eprintln!("write two angles in radians, such as 0.5 -0.2; Ctrl-C ends the run");
    let reader = punctual::background::spawn("setpoints", || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            match setpoints(&line) {
                Some(wanted) => {
                    if gimbal::steer::spawn(wanted).is_err() {
                        eprintln!("{line:?} is dropped, because the previous setpoint still waits");
                    }
                }
                None => eprintln!("{line:?} is not a setpoint: give two angles in radians, from -1.5 to 1.5, as in 0.5 -0.2"),
            }
        }
    });
    if let Err(error) = reader {
        eprintln!("setpoints are not read: {error}");
    }
    match gimbal::run(Config::from_env(), [0.0; 2], |_| ()) {
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

/// Returns the angles in a line, if there are two that the gimbal can reach.
fn setpoints(line: &str) -> Option<[f32; 2]> {
    let mut angles = line.split_whitespace().map(|word| word.parse().ok());
    let both = [angles.next()??, angles.next()??];
    (angles.next().is_none() && both.iter().all(|angle: &f32| angle.abs() <= 1.5)).then_some(both)
}

#[punctual::app]
mod gimbal {
    use punctual::prelude::*;

    use crate::axis::{Axis, Controller, PERIOD};

    #[shared]
    struct Shared {
        setpoints: [f32; 2],
    }

    #[local]
    struct Local {
        axes: [Axis; 2],
        controllers: [Controller; 2],
        at_end: fn([f32; 2]),
    }

    /// Before the first job: open your motors and encoders here, in place of the simulated axes.
    #[init]
    fn init(_: init::Context, setpoints: [f32; 2], at_end: fn([f32; 2])) -> (Shared, Local) {
        let (axes, controllers) = (Default::default(), Default::default());
        (Shared { setpoints }, Local { axes, controllers, at_end })
    }

    #[task(priority = 2, period = 1.millis(), deadline = 500.micros(), shared = [setpoints], local = [axes, controllers])]
    fn position(mut cx: position::Context) {
        let setpoints = cx.shared.setpoints.lock(|setpoints| *setpoints);
        for ((axis, controller), setpoint) in cx.local.axes.iter_mut().zip(cx.local.controllers).zip(setpoints) {
            let torque = controller.torque(setpoint, axis.angle());
            axis.turn(torque, PERIOD);
        }
    }

    #[task(priority = 1, shared = [setpoints])]
    fn steer(mut cx: steer::Context, wanted: [f32; 2]) {
        cx.shared.setpoints.lock(|setpoints| *setpoints = wanted);
        let [pan, tilt] = wanted;
        punctual::log!(Info, "turning to {pan} and {tilt} rad");
    }

    #[shutdown(local = [axes, at_end])]
    fn shutdown(cx: shutdown::Context) {
        (cx.local.at_end)([cx.local.axes[0].angle(), cx.local.axes[1].angle()]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use punctual::{Config, Duration};

    use super::*;

    #[test]
    fn both_axes_arrive_in_two_seconds_and_no_job_is_late() {
        static ANGLES: Mutex<[f32; 2]> = Mutex::new([0.0; 2]);
        let config = Config::new().virtual_time().until(Duration::from_secs(2));
        let at_end = |angles| *ANGLES.lock().unwrap() = angles;
        let report = gimbal::run(config, [0.5, -0.2], at_end).expect("virtual time has no requirements");
        let position = report.task("position").expect("it is declared");
        assert_eq!((position.jobs, position.overruns, position.misses), (2_000, 0, 0));
        let [pan, tilt] = *ANGLES.lock().unwrap();
        assert!((pan - 0.5).abs() < 0.005 && (tilt + 0.2).abs() < 0.005, "{pan} {tilt}");
    }

    #[test]
    fn only_two_angles_within_reach_are_setpoints() {
        assert_eq!(setpoints("0.5 -0.2"), Some([0.5, -0.2]));
        for line in ["", "1", "1 x", "1 2", "NaN 0", "0 0 0"] {
            assert_eq!(setpoints(line), None, "{line}");
        }
    }
}

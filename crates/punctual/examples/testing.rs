//! virtual-only: the readings are played back in virtual time
//!
//! Testing an app: its inputs are arguments of `init`, its outputs are returned through a local and
//! the report.
//!
//! `main` and the two tests run the same app with different readings. In virtual time a run takes
//! no time, and runs are serialized, so that `cargo test` may run the tests in parallel.

// ANCHOR: app
use std::sync::mpsc::channel;

use punctual::report::Report;
use punctual::{Config, StartError};

#[punctual::app]
mod app {
    use std::sync::mpsc::Sender;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        readings: Vec<f32>,
        outputs: Sender<f32>,
    }

    /// The arguments are those of `app::run` after the configuration.
    #[init]
    fn init(_: init::Context, readings: Vec<f32>, outputs: Sender<f32>) -> (Shared, Local) {
        (Shared {}, Local { readings, outputs })
    }

    #[task(priority = 2, period = 1.millis(), deadline = 500.micros(), local = [readings, outputs, job: usize = 0])]
    fn control(cx: control::Context) {
        let Some(&reading) = cx.local.readings.get(*cx.local.job) else { return punctual::shutdown() };
        *cx.local.job += 1;
        if reading.abs() > 10.0 {
            alarm::spawn(reading).expect("one waits at most");
        }
        cx.local.outputs.send(reading.clamp(-10.0, 10.0)).expect("the caller receives it");
    }

    #[task(priority = 1)]
    fn alarm(_: alarm::Context, reading: f32) {
        punctual::log!(Warn, "the sensor reads {reading}");
    }
}
// ANCHOR_END: app

// ANCHOR: run
/// Runs the app with these readings. Returns its outputs and the report.
fn run(readings: &[f32]) -> Result<(Vec<f32>, Report), StartError> {
    let (sender, outputs) = channel();
    let report = app::run(Config::new().virtual_time(), readings.to_vec(), sender)?;
    Ok((outputs.iter().collect(), report))
}

fn main() -> Result<(), StartError> {
    let (outputs, report) = run(&[1.0, 20.0, -3.0])?;
    println!("{outputs:?}, {}", report.outcome);
    Ok(())
}
// ANCHOR_END: run

// ANCHOR: tests
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_limited_readings_and_none_is_late() {
        let (outputs, report) = run(&[0.5, -20.0, 11.0]).expect("virtual time has no requirements");
        assert_eq!(outputs, [0.5, -10.0, 10.0]);
        let control = report.task("control").expect("the app has this task");
        assert_eq!((control.overruns, control.misses), (0, 0));
    }

    #[test]
    fn reading_out_of_range_raises_alarm() {
        let alarms = |readings: &[f32]| {
            let (_, report) = run(readings).expect("virtual time has no requirements");
            report.task("alarm").map(|alarm| alarm.jobs)
        };
        assert_eq!([alarms(&[9.9]), alarms(&[9.9, 10.1])], [Some(0), Some(1)]);
    }
}
// ANCHOR_END: tests

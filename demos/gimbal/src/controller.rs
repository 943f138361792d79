//! The controller: the gimbal as a Punctual app, on Linux.

mod tasks;

use std::sync::mpsc::Sender;

use punctual::{Config, Duration, Report, StartError};

use crate::axes::Axes;
use crate::bus::Bus;
use crate::client::Gimbal;
use crate::control::POSITION_PERIOD_NS;
use crate::log::Recorder;

pub(crate) use crate::topics::Links;
use tasks::app;
pub use tasks::{Record, Recording, Setpoints};

/// The receiver of a run's record.
pub(crate) struct Records(Sender<Record>);

impl Records {
    pub(crate) fn hand_over(&self, record: Record) {
        // The receiver is gone only if the caller of `run` has panicked.
        let _ = self.0.send(record);
    }
}

/// The maximum number of recorded samples of a run.
const MAX_SAMPLES: u64 = 600_000;

/// The results of an app run and the record of the gimbal's motion.
#[derive(Debug)]
pub struct Outcome {
    /// The executor's report.
    pub report: Report,
    /// The motion, if the app started to move the gimbal.
    pub record: Option<Record>,
}

/// Runs the controller of `gimbal` for `seconds`. `links` carry its topics, if there are any.
///
/// # Errors
/// Returns an error if the app cannot start.
pub fn run(
    config: Config,
    gimbal: Gimbal<Bus>,
    seconds: f64,
    setpoints: Setpoints,
    links: Option<Links>,
) -> Result<Outcome, StartError> {
    let (sender, records) = std::sync::mpsc::channel();
    let config = config.until(Duration::from_nanos((seconds * 1e9) as u64));
    let periods = (seconds * 1e9) as u64 / POSITION_PERIOD_NS + 2;
    let every = periods.div_ceil(MAX_SAMPLES);
    let recording = Recording { recorder: Recorder::with_capacity((periods / every + 1) as usize), every };
    let report = app::run(config, gimbal, setpoints, recording, links, Records(sender))?;
    Ok(Outcome { report, record: records.try_recv().ok() })
}

/// Sets the setpoints by hand, at `time_s` of the run if given. Returns `false` if the app cannot
/// accept them.
///
/// For ordinary threads: it waits until the gimbal has started to move.
pub fn steer(time_s: Option<f64>, angles_rad: Axes<f64>) -> bool {
    app::steer_from_outside(time_s, angles_rad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::simulated;
    use crate::plant::GIMBAL;
    use crate::reference;
    use crate::setpoints::Timeline;

    #[test]
    fn matches_reference_bit_for_bit_in_virtual_time() {
        let timeline = Timeline::built_in(1.0);
        let setpoints = Setpoints::Timeline(timeline.clone());
        let outcome = run(Config::new().virtual_time(), simulated(), 1.0, setpoints, None).unwrap();
        let record = outcome.record.unwrap();
        // The last sample of the reference is at the very end, after the app has stopped.
        let reference = reference::run(GIMBAL, |t_ns| timeline.at(t_ns), 999_900_000);
        assert_eq!(record.recorder.samples(), reference.samples());
        assert_eq!(outcome.report.task("sample").unwrap().jobs, 10_000);
        assert_eq!(outcome.report.task("position").unwrap().jobs, 1_000);
        assert_eq!(outcome.report.task("current").unwrap().jobs, 10_000);
        assert_eq!(record.link.exchanges, 10_000);
    }
}

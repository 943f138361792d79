//! Parameters that can be changed while the gimbal is controlled: factors on the design gains.

use std::path::Path;

use punctual_bridge::parameters::{FileError, StartError};
use punctual_bridge::{Parameters, Topic, Tunable, TunableReader, Tuning, TuningServer};

use crate::axes::Axes;
use crate::control::PositionGains;
use crate::plant::GIMBAL;

/// The number of changes that may wait to be recorded.
const ROOM: usize = 16;

/// Factors on the gains of a position controller.
#[derive(Debug, Clone, Copy, PartialEq, Parameters)]
#[message(name = "gimbal_msgs/msg/AxisFactors")]
pub struct AxisFactors {
    /// On the proportional gain.
    #[parameter(default = 1.0, range = 0.1..=4.0)]
    pub proportional: f64,
    /// On the integral gain.
    #[parameter(default = 1.0, range = 0.0..=4.0)]
    pub integral: f64,
    /// On the derivative gain.
    #[parameter(default = 1.0, range = 0.0..=4.0)]
    pub derivative: f64,
}

/// Factors on the gains of both axes.
#[derive(Debug, Clone, Copy, PartialEq, Parameters)]
#[message(name = "gimbal_msgs/msg/Factors")]
pub struct Factors {
    /// Of the pan axis.
    #[parameter(nested)]
    pub pan: AxisFactors,
    /// Of the tilt axis.
    #[parameter(nested)]
    pub tilt: AxisFactors,
}

static FACTORS: Tunable<Factors> = Tunable::new();

/// The initial factors, and the factors after each change.
pub(crate) static CHANGES: Topic<Factors, ROOM> = Topic::new("/factors");

impl Factors {
    /// Returns the gains of the position controllers with these factors.
    pub fn gains(&self) -> Axes<PositionGains> {
        let factors = Axes::new(self.pan, self.tilt);
        GIMBAL.zip(factors).map(|(axis, AxisFactors { proportional, integral, derivative })| {
            let designed = PositionGains::for_axis(&axis);
            PositionGains {
                proportional_a_per_rad: designed.proportional_a_per_rad * proportional,
                integral_a_per_rad_s: designed.integral_a_per_rad_s * integral,
                derivative_a_s_per_rad: designed.derivative_a_s_per_rad * derivative,
                ..designed
            }
        })
    }
}

fn tuning(file: Option<&Path>) -> Result<Tuning<Factors>, FileError> {
    let tuning = Tuning::new(&FACTORS);
    match file {
        Some(file) => tuning.file(file),
        None => Ok(tuning),
    }
}

/// Checks a file of factors.
///
/// # Errors
/// Returns a [`FileError`] for the first error.
pub fn check(file: &Path) -> Result<(), FileError> {
    tuning(Some(file)).map(drop)
}

/// The reason why tuning does not start.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The file has changed since it was [checked](check).
    #[error(transparent)]
    File(#[from] FileError),
    /// The server does not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Lets `punctual set gimbal` change the factors, starting with those of a file; publishes them.
pub(crate) fn start(file: Option<&Path>) -> Result<TuningServer<Factors>, TuneError> {
    Ok(tuning(file)?.record(&CHANGES).start("gimbal")?)
}

/// Creates the reader for the task of the position controllers.
pub(crate) fn reader() -> TunableReader<Factors> {
    FACTORS.reader().expect("one app of this kind runs at a time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_unchanged() {
        let Axes { pan, tilt } = GIMBAL.map(|axis| PositionGains::for_axis(&axis));
        assert_eq!(Factors::DEFAULT.gains(), Axes::new(pan, tilt));
    }

    #[test]
    fn scales_gains_per_axis() {
        let tilt = AxisFactors { proportional: 2.0, integral: 0.5, derivative: 0.25 };
        let gains = Factors { tilt, ..Factors::DEFAULT }.gains();
        let designed = GIMBAL.map(|axis| PositionGains::for_axis(&axis));
        assert_eq!(gains.pan, designed.pan);
        let expected = PositionGains {
            proportional_a_per_rad: 2.0 * designed.tilt.proportional_a_per_rad,
            integral_a_per_rad_s: 0.5 * designed.tilt.integral_a_per_rad_s,
            derivative_a_s_per_rad: 0.25 * designed.tilt.derivative_a_s_per_rad,
            filter_s: designed.tilt.filter_s,
        };
        assert_eq!(gains.tilt, expected);
    }
}

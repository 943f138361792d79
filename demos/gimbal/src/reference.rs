//! The whole gimbal in ideal time: a run in which every task starts exactly on time.
//!
//! It is the reference for a real run. The code is that of the real run, from the setpoint to the
//! bytes on the bus; only the clock is replaced by a counter that advances by exactly one period.

use crate::axes::Axes;
use crate::client::Gimbal;
use crate::control::{CURRENT_PERIOD_NS, CurrentController, POSITION_PERIOD_NS, PositionController};
use crate::device::SimulatedGimbal;
use crate::log::{Recorder, Sample};
use crate::plant::{AxisParameters, SUPPLY_V};
use std::cell::Cell;

/// Runs the gimbal for `duration_ns` from time zero and records every period of the position
/// controller.
///
/// `setpoints` returns the setpoint angles at a time in nanoseconds. The order within a period is
/// that of the application: exchange with the voltages computed one period ago, then the position
/// controllers if it is their turn, then the current controllers.
pub fn run(
    parameters: Axes<AxisParameters>,
    mut setpoints: impl FnMut(u64) -> Axes<f64>,
    duration_ns: u64,
) -> Recorder {
    let now_ns = Cell::new(0);
    let mut gimbal = Gimbal::new(SimulatedGimbal::new(parameters, SUPPLY_V, || now_ns.get()));
    let mut position = Axes::<PositionController>::for_axes(parameters);
    let mut current = Axes::<CurrentController>::for_axes(parameters, SUPPLY_V);
    let mut recorder = Recorder::with_capacity((duration_ns / POSITION_PERIOD_NS) as usize + 1);

    let mut setpoint_a = Axes::both(0.0);
    let mut voltages_v = Axes::both(0.0);
    for t_ns in (0..=duration_ns).step_by(CURRENT_PERIOD_NS as usize) {
        now_ns.set(t_ns);
        let Ok(feedback) = gimbal.exchange(voltages_v) else {
            unreachable!("the simulated device takes and gives whole, undamaged frames")
        };
        if t_ns % POSITION_PERIOD_NS == 0 {
            let setpoint_rad = setpoints(t_ns);
            let measured_rad = feedback.angles_rad();
            setpoint_a = position.update(setpoint_rad, measured_rad);
            let true_rad = Some(gimbal.device().true_state().map(|state| state.angle_rad));
            recorder.record(Sample { t_ns, setpoint_rad, measured_rad, true_rad });
        }
        voltages_v = current.update(setpoint_a, feedback.currents_a());
    }
    recorder
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::RESOLUTION_RAD;
    use crate::plant::GIMBAL;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Returns the true angles of the axis chosen by `axis` after a step at time zero, one every
    /// millisecond.
    fn angles(recorder: &Recorder, axis: fn(Axes<f64>) -> f64) -> Vec<f64> {
        recorder.samples().iter().filter_map(|sample| sample.true_rad.map(axis)).collect()
    }

    #[test]
    fn settles_half_radian_within_one_second() {
        let recorder = run(GIMBAL, |_| Axes::new(0.5, -0.5), 3 * SECOND_NS);
        for angles in [angles(&recorder, |a| a.pan), angles(&recorder, |a| -a.tilt)] {
            let peak = angles.iter().copied().fold(0.0, f64::max);
            let worst_late = angles[1_000..].iter().map(|a| (a - 0.5).abs()).fold(0.0, f64::max);
            assert!(peak < 0.5 * 1.15, "overshoot to {peak} rad");
            assert!(worst_late < 2.0 * RESOLUTION_RAD, "off by {worst_late} rad after 1 s");
        }
    }

    #[test]
    fn does_not_wind_up_over_two_radians() {
        let setpoint = |t_ns| Axes::new(if t_ns < 2 * SECOND_NS { -1.0 } else { 1.0 }, 0.0);
        let recorder = run(GIMBAL, setpoint, 4 * SECOND_NS);
        let angles = angles(&recorder, |a| a.pan);
        let peak = angles[2_000..].iter().copied().fold(0.0, f64::max);
        assert!(peak < 1.0 + 2.0 * 0.15, "overshoot to {peak} rad");
        let worst_late = angles[3_500..].iter().map(|a| (a - 1.0).abs()).fold(0.0, f64::max);
        assert!(worst_late < 2.0 * RESOLUTION_RAD, "off by {worst_late} rad after 1.5 s");
    }

    #[test]
    fn repeats_runs_bit_for_bit() {
        let run = || run(GIMBAL, |_| Axes::new(0.3, 0.2), SECOND_NS / 2);
        assert_eq!(run().samples(), run().samples());
    }
}

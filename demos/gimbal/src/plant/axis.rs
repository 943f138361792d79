//! The equations of motion of one axis, one fixed step at a time.

use super::{AxisParameters, STEP_NS};
// On a bare board there is no `std` that has these functions: `bare/programs` brings them.
#[cfg(target_os = "none")]
use crate::float::Float as _;

/// Length of a step in seconds.
const STEP_S: f64 = STEP_NS as f64 * 1e-9;

/// Current, speed and angle of one axis.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AxisState {
    /// Armature current of the motor, in amperes.
    pub current_a: f64,
    /// Speed of the axis, in rad/s.
    pub speed_rad_s: f64,
    /// Angle of the axis, in radians.
    pub angle_rad: f64,
}

/// One axis: its state, and its parameters in the form a step needs them.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    state: AxisState,
    parameters: AxisParameters,
    /// The fraction of a current that is left one step after the voltage became zero,
    /// e^(−step·R/L).
    current_decay: f64,
    /// Torque per current and back-EMF per speed, both at the axis.
    axis_constant: f64,
    /// Change of speed in one step per torque.
    speed_per_torque: f64,
    /// Change of speed in one step that dry friction can prevent.
    friction_speed: f64,
}

impl Axis {
    pub(super) fn new(parameters: AxisParameters) -> Self {
        let motor = &parameters.motor;
        let speed_per_torque = STEP_S / parameters.inertia_kg_m2();
        Self {
            state: AxisState::default(),
            current_decay: (-STEP_S * motor.resistance_ohm / motor.inductance_h).exp(),
            axis_constant: parameters.axis_constant_nm_per_a(),
            speed_per_torque,
            friction_speed: parameters.coulomb_friction_nm * speed_per_torque,
            parameters,
        }
    }

    pub(super) const fn state(&self) -> &AxisState {
        &self.state
    }

    /// Advances by one step with `voltage_v` on the motor.
    pub(super) fn step(&mut self, voltage_v: f64) {
        let AxisState { current_a, speed_rad_s, angle_rad } = self.state;

        let settled_a = (voltage_v - self.axis_constant * speed_rad_s) / self.parameters.motor.resistance_ohm;
        let current_a = settled_a + (current_a - settled_a) * self.current_decay;

        let torque_nm =
            self.axis_constant * current_a - self.parameters.viscous_friction_nm_s_per_rad * speed_rad_s;
        let driven = speed_rad_s + torque_nm * self.speed_per_torque;
        let speed_rad_s = (driven.abs() - self.friction_speed).max(0.0).copysign(driven);

        let free_rad = angle_rad + speed_rad_s * STEP_S;
        let range = &self.parameters.range;
        let angle_rad = free_rad.clamp(range.min_rad, range.max_rad);
        // A hard stop absorbs all momentum: nothing bounces off it.
        let speed_rad_s = if angle_rad == free_rad { speed_rad_s } else { 0.0 };

        self.state = AxisState { current_a, speed_rad_s, angle_rad };
    }
}

#[cfg(test)]
mod tests {
    use super::super::parameters::{AngleRange, PAN, TILT};
    use super::*;

    fn run(axis: &mut Axis, voltage_v: f64, seconds: f64) {
        for _ in 0..(seconds / STEP_S).round() as u64 {
            axis.step(voltage_v);
        }
    }

    fn endless(parameters: AxisParameters) -> Axis {
        let range = AngleRange { min_rad: f64::NEG_INFINITY, max_rad: f64::INFINITY };
        Axis::new(AxisParameters { range, ..parameters })
    }

    #[test]
    fn reaches_speed_of_balanced_torques() {
        for (parameters, voltage_v) in [(PAN, 12.0), (PAN, -24.0), (TILT, 3.0)] {
            let mut axis = endless(parameters);
            run(&mut axis, voltage_v, 2.0);
            let resistance = parameters.motor.resistance_ohm;
            let constant = parameters.axis_constant_nm_per_a();
            // constant·i = viscous·ω + coulomb, with i = (V − constant·ω) / R
            let expected = (constant * voltage_v / resistance
                - parameters.coulomb_friction_nm.copysign(voltage_v))
                / (parameters.viscous_friction_nm_s_per_rad + constant * constant / resistance);
            let error = (axis.state.speed_rad_s - expected).abs() / expected.abs();
            assert!(error < 1e-9, "{} rad/s, expected {expected}", axis.state.speed_rad_s);
        }
    }

    #[test]
    fn draws_voltage_over_resistance_with_locked_rotor() {
        let mut axis = Axis::new(PAN);
        run(&mut axis, 6.0, 2.0);
        assert_eq!(axis.state.angle_rad, PAN.range.max_rad, "driven against the stop, it is locked");
        assert_eq!(axis.state.speed_rad_s, 0.0);
        assert!((axis.state.current_a - 6.0 / PAN.motor.resistance_ohm).abs() < 1e-12);
    }

    #[test]
    fn raises_current_with_electrical_time_constant() {
        let mut axis = Axis::new(PAN);
        // Too heavy to turn in the tested time.
        axis.speed_per_torque = 0.0;
        axis.friction_speed = 0.0;
        let time_constant_s = PAN.motor.inductance_h / PAN.motor.resistance_ohm;
        for step in 1..40 {
            axis.step(2.0);
            let expected =
                2.0 / PAN.motor.resistance_ohm * (1.0 - (-f64::from(step) * STEP_S / time_constant_s).exp());
            assert!((axis.state.current_a - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn loses_energy_without_voltage() {
        let mut axis = endless(PAN);
        axis.state = AxisState { current_a: 0.0, speed_rad_s: 30.0, angle_rad: 0.0 };
        let energy_j = |state: &AxisState| {
            0.5 * PAN.inertia_kg_m2() * state.speed_rad_s.powi(2)
                + 0.5 * PAN.motor.inductance_h * state.current_a.powi(2)
        };
        let mut last_j = energy_j(&axis.state);
        for _ in 0..40_000 {
            axis.step(0.0);
            let now_j = energy_j(&axis.state);
            assert!(now_j <= last_j, "energy rose from {last_j} J to {now_j} J");
            last_j = now_j;
        }
        assert_eq!(axis.state.speed_rad_s, 0.0, "dry friction brings it to rest in finite time");
        assert!(last_j < 1e-12);
    }

    #[test]
    fn holds_axis_until_friction_is_overcome() {
        let breakaway_a = PAN.coulomb_friction_nm / PAN.axis_constant_nm_per_a();
        let breakaway_v = breakaway_a * PAN.motor.resistance_ohm;
        let mut axis = Axis::new(PAN);
        run(&mut axis, 0.99 * breakaway_v, 0.5);
        assert_eq!(axis.state.angle_rad, 0.0);
        run(&mut axis, 1.05 * breakaway_v, 0.5);
        assert!(axis.state.angle_rad > 0.0);
    }

    #[test]
    fn stops_at_hard_stop_and_moves_away_again() {
        let mut axis = Axis::new(TILT);
        run(&mut axis, -24.0, 0.5);
        assert_eq!(axis.state.angle_rad, TILT.range.min_rad);
        assert_eq!(axis.state.speed_rad_s, 0.0);
        run(&mut axis, 2.0, 0.2);
        assert!(axis.state.angle_rad > TILT.range.min_rad);
        assert!(TILT.range.contains(axis.state.angle_rad));
    }
}

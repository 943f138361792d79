//! The inner loop: motor current to motor voltage, PI, 10 kHz.
//!
//! # Gains
//!
//! From voltage to current the motor is 1/(L·s + R), with the back-EMF as a slow disturbance. A PI
//! controller whose zero cancels that pole (Kp/Ki = L/R) leaves a pure integrator, and with
//! Kp = L·ωc and Ki = R·ωc the open loop is ωc/s.
//!
//! The period T of the loop is about as long as L/R, so the pole to cancel is that of the sampled
//! motor. With the voltage held over each period it is a = e^(−T·R/L). For the controller
//! u = Kp·e + I, I ← I + Ki·T·e the zero is 1 − Ki·T/Kp. With Ki = R·ωc unchanged and the zero
//! placed on the pole:
//!
//! Kp = R·ωc·T / (1 − a), which is L·ωc for short periods.
//!
//! A voltage computed from one exchange is sent with the next, one period later. The closed loop
//! then has the characteristic polynomial z² − z + ωc·T. With ωc·T = ¼ both of its roots are at ½:
//! the fastest response without overshoot. This determines the bandwidth, ωc = 1/(4·T) = 2500 rad/s
//! (398 Hz), and the phase margin, 90° − 1.5·T·ωc = 68.5°.

use super::Integral;
use crate::axes::Axes;
// A bare board has no `std` with these functions: `bare/programs` provides them.
#[cfg(target_os = "none")]
use crate::float::Float as _;
use crate::plant::{AxisParameters, MotorParameters};

/// Period of the current controller: 100 µs, that is 10 kHz.
pub const CURRENT_PERIOD_NS: u64 = 100_000;

/// Bandwidth of the current loop, in rad/s: a quarter of the sampling rate, see the module
/// documentation.
pub const CURRENT_BANDWIDTH_RAD_S: f64 = 0.25 / PERIOD_S;

const PERIOD_S: f64 = CURRENT_PERIOD_NS as f64 * 1e-9;

/// Gains of a current controller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurrentGains {
    /// Proportional gain, in V/A.
    pub proportional_v_per_a: f64,
    /// Integral gain, in V/(A·s).
    pub integral_v_per_a_s: f64,
}

impl CurrentGains {
    /// Returns the gains that give `motor` the bandwidth [`CURRENT_BANDWIDTH_RAD_S`].
    pub fn for_motor(motor: &MotorParameters) -> Self {
        let pole = (-PERIOD_S * motor.resistance_ohm / motor.inductance_h).exp();
        let integral_v_per_a_s = motor.resistance_ohm * CURRENT_BANDWIDTH_RAD_S;
        Self { proportional_v_per_a: integral_v_per_a_s * PERIOD_S / (1.0 - pole), integral_v_per_a_s }
    }
}

/// The current controller of one motor.
#[derive(Debug, Clone, Copy)]
pub struct CurrentController {
    gains: CurrentGains,
    integral_v: Integral,
}

impl CurrentController {
    /// Creates a controller without accumulated error that never requests more than `supply_v` in
    /// either direction.
    pub const fn new(gains: CurrentGains, supply_v: f64) -> Self {
        Self { gains, integral_v: Integral::new(supply_v) }
    }

    /// Returns the motor voltage for the next period, in volts.
    pub fn update(&mut self, setpoint_a: f64, measured_a: f64) -> f64 {
        let error_a = setpoint_a - measured_a;
        self.integral_v.limited_sum(
            self.gains.proportional_v_per_a * error_a,
            self.gains.integral_v_per_a_s * PERIOD_S * error_a,
        )
    }
}

impl Axes<CurrentController> {
    /// Creates the controllers of both motors, without accumulated error, which never request more
    /// than `supply_v` in either direction.
    pub fn for_axes(axes: Axes<AxisParameters>, supply_v: f64) -> Self {
        axes.map(|axis| CurrentController::new(CurrentGains::for_motor(&axis.motor), supply_v))
    }

    /// Updates the controller of each motor, pan first.
    pub fn update(&mut self, setpoints_a: Axes<f64>, measured_a: Axes<f64>) -> Axes<f64> {
        let inputs = setpoints_a.zip(measured_a);
        self.as_mut().zip(inputs).map(|(controller, (wanted, measured))| controller.update(wanted, measured))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::Axes;
    use crate::plant::{AngleRange, AxisParameters, PAN, Plant, SUPPLY_V};

    /// Returns the currents of a motor with a locked rotor, one per period, each voltage applied
    /// one period late.
    fn step_response(setpoint_a: f64, periods: u64) -> Vec<f64> {
        let range = AngleRange { min_rad: 0.0, max_rad: 0.0 };
        let mut plant = Plant::new(Axes::both(AxisParameters { range, ..PAN }), SUPPLY_V);
        let mut controller = CurrentController::new(CurrentGains::for_motor(&PAN.motor), SUPPLY_V);
        let mut voltage_v = 0.0;
        let exchange = |period: u64| {
            plant.advance_to(period * CURRENT_PERIOD_NS).unwrap();
            plant.set_voltages(Axes::both(voltage_v));
            let current_a = plant.state().pan.current_a;
            voltage_v = controller.update(setpoint_a, current_a);
            current_a
        };
        (0..periods).map(exchange).collect()
    }

    #[test]
    fn approaches_continuous_gains_for_slow_motor() {
        let slow = MotorParameters { inductance_h: 0.1, ..PAN.motor };
        let gains = CurrentGains::for_motor(&slow);
        assert!((gains.proportional_v_per_a / (0.1 * CURRENT_BANDWIDTH_RAD_S) - 1.0).abs() < 2e-3);
    }

    #[test]
    fn responds_to_step_as_double_pole_at_one_half() {
        let currents_a = step_response(1.0, 40);
        for (k, current_a) in currents_a.iter().enumerate() {
            // Step response of (1/4)/(z² − z + 1/4): 1 − (k + 1)/2^k.
            let expected = 1.0 - (k as f64 + 1.0) * 0.5_f64.powi(k as i32);
            assert!((current_a - expected).abs() < 1e-9, "period {k}: {current_a} A, expected {expected} A");
        }
    }

    #[test]
    fn does_not_wind_up_on_unreachable_setpoint() {
        let mut controller = CurrentController::new(CurrentGains::for_motor(&PAN.motor), SUPPLY_V);
        for _ in 0..10_000 {
            assert!(controller.update(100.0, 10.0).abs() <= SUPPLY_V);
        }
        assert_eq!(controller.update(100.0, 10.0), SUPPLY_V);
        assert!(controller.update(-2.0, 10.0) < SUPPLY_V, "leaves the limit with the first sample");
    }
}

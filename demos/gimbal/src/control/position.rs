//! The outer loop: angle to current setpoint, PID, 1 kHz.
//!
//! # Gains
//!
//! With the current under control, the axis is k/(J·s²) from current to angle (k: torque per
//! current at the axis, J: inertia at the axis); friction only adds damping. Such a double
//! integrator needs phase lead at the crossover ωc. The PD part Kp + Kd·s/(τ·s + 1) has its zero at
//! ωc/α and its pole at α·ωc, that is
//!
//! * τ = 1/(α·ωc),
//! * Kd = Kp·(α − 1/α)/ωc,
//! * Kp = J·ωc²/(α·k), because the PD part has the gain α·Kp at ωc.
//!
//! The integral part compensates friction. It becomes effective at ωi = ωc/β: Ki = Kp·ωc/β, with
//! β = 4·α for two coinciding real zeros.
//!
//! With α = 4 and ωc = 2π·16 rad/s the lead is 62°; the integral part costs 4° of it, and sampling
//! and the delay of the current loop cost another 4°. A unit test computes the remaining phase
//! margin from the gains: 54°. A lower crossover would increase the margin, but then dry friction,
//! which only the integral part overcomes, prevents the axis from settling within a second.
//!
//! The derivative acts only on the measurement, so that a step of the setpoint does not cause a
//! current spike. Its filter also spreads each count of the encoder over a few periods: on the pan
//! axis one count initially causes about 90 mA.

use super::Integral;
use crate::axes::Axes;
// A bare board has no `std` with these functions: `bare/programs` provides them.
#[cfg(target_os = "none")]
use crate::float::Float as _;
use crate::plant::AxisParameters;
use std::f64::consts::TAU;

/// Period of the position controller: 1 ms, that is 1 kHz.
pub const POSITION_PERIOD_NS: u64 = 1_000_000;

/// Crossover of the position loop, in rad/s.
pub const POSITION_BANDWIDTH_RAD_S: f64 = TAU * 16.0;

/// Ratio α of the derivative filter's pole to the crossover, and of the crossover to the zero.
const LEAD_RATIO: f64 = 4.0;

/// Ratio β of the crossover to the frequency below which the integral part dominates.
const INTEGRAL_RATIO: f64 = 4.0 * LEAD_RATIO;

const PERIOD_S: f64 = POSITION_PERIOD_NS as f64 * 1e-9;

/// Gains of a position controller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PositionGains {
    /// Proportional gain Kp, in A/rad.
    pub proportional_a_per_rad: f64,
    /// Integral gain Ki, in A/(rad·s).
    pub integral_a_per_rad_s: f64,
    /// Derivative gain Kd, in A·s/rad.
    pub derivative_a_s_per_rad: f64,
    /// Time constant τ of the derivative filter, in seconds.
    pub filter_s: f64,
}

impl PositionGains {
    /// Returns the gains that give `axis` the crossover [`POSITION_BANDWIDTH_RAD_S`].
    pub fn for_axis(axis: &AxisParameters) -> Self {
        let crossover = POSITION_BANDWIDTH_RAD_S;
        let proportional_a_per_rad =
            axis.inertia_kg_m2() * crossover.powi(2) / (LEAD_RATIO * axis.axis_constant_nm_per_a());
        Self {
            proportional_a_per_rad,
            integral_a_per_rad_s: proportional_a_per_rad * crossover / INTEGRAL_RATIO,
            derivative_a_s_per_rad: proportional_a_per_rad * (LEAD_RATIO - LEAD_RATIO.recip()) / crossover,
            filter_s: (LEAD_RATIO * crossover).recip(),
        }
    }
}

/// The position controller of one axis.
#[derive(Debug, Clone, Copy)]
pub struct PositionController {
    gains: PositionGains,
    integral_a: Integral,
    last_rad: Option<f64>,
    speed_rad_s: f64,
}

impl PositionController {
    /// Creates a controller without accumulated error that never requests more than `limit_a` in
    /// either direction.
    pub const fn new(gains: PositionGains, limit_a: f64) -> Self {
        Self { gains, integral_a: Integral::new(limit_a), last_rad: None, speed_rad_s: 0.0 }
    }

    /// Continues with other gains, from the current integral and speed.
    pub const fn set_gains(&mut self, gains: PositionGains) {
        self.gains = gains;
    }

    /// Returns the current setpoint for the next period, in amperes.
    ///
    /// The first call assumes that the axis is at rest.
    pub fn update(&mut self, setpoint_rad: f64, measured_rad: f64) -> f64 {
        let moved_rad = measured_rad - self.last_rad.replace(measured_rad).unwrap_or(measured_rad);
        let weight = PERIOD_S / (self.gains.filter_s + PERIOD_S);
        self.speed_rad_s += weight * (moved_rad / PERIOD_S - self.speed_rad_s);

        let error_rad = setpoint_rad - measured_rad;
        self.integral_a.limited_sum(
            self.gains.proportional_a_per_rad * error_rad
                - self.gains.derivative_a_s_per_rad * self.speed_rad_s,
            self.gains.integral_a_per_rad_s * PERIOD_S * error_rad,
        )
    }
}

impl Axes<PositionController> {
    /// Creates the controllers of both axes, without accumulated error.
    pub fn for_axes(axes: Axes<AxisParameters>) -> Self {
        axes.map(|axis| PositionController::new(PositionGains::for_axis(&axis), axis.motor.current_limit_a))
    }

    /// Updates the controller of each axis, pan first.
    pub fn update(&mut self, setpoints_rad: Axes<f64>, measured_rad: Axes<f64>) -> Axes<f64> {
        let inputs = setpoints_rad.zip(measured_rad);
        self.as_mut().zip(inputs).map(|(controller, (wanted, measured))| controller.update(wanted, measured))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{CURRENT_BANDWIDTH_RAD_S, CURRENT_PERIOD_NS};
    use crate::encoder::RESOLUTION_RAD;
    use crate::plant::{GIMBAL, PAN};
    use std::ops::{Add, Mul};

    #[derive(Clone, Copy)]
    struct Complex(f64, f64);

    impl Complex {
        /// e^(jωt)
        fn shift(omega: f64, seconds: f64) -> Self {
            Self((omega * seconds).cos(), (omega * seconds).sin())
        }

        fn recip(self) -> Self {
            let square = self.0 * self.0 + self.1 * self.1;
            Self(self.0 / square, -self.1 / square)
        }
    }

    impl Add for Complex {
        type Output = Self;
        fn add(self, other: Self) -> Self {
            Self(self.0 + other.0, self.1 + other.1)
        }
    }

    impl Mul for Complex {
        type Output = Self;
        fn mul(self, other: Self) -> Self {
            Self(self.0 * other.0 - self.1 * other.1, self.0 * other.1 + self.1 * other.0)
        }
    }

    /// Returns the gain and the phase in degrees, between −360 and 0, of the sampled open position
    /// loop.
    fn open_loop(axis: &AxisParameters, omega: f64) -> (f64, f64) {
        let real = |value| Complex(value, 0.0);
        let gains = PositionGains::for_axis(axis);
        let z = Complex::shift(omega, PERIOD_S);
        let integral = real(gains.integral_a_per_rad_s * PERIOD_S) * (z + real(-1.0)).recip();
        let weight = PERIOD_S / (gains.filter_s + PERIOD_S);
        let derivative = real(gains.derivative_a_s_per_rad / PERIOD_S * weight)
            * (z + real(-1.0))
            * (z + real(weight - 1.0)).recip();
        let controller = real(gains.proportional_a_per_rad) + integral + derivative;
        let held = (real(1.0) + z.recip() * real(-1.0)) * Complex(0.0, omega * PERIOD_S).recip();
        let current_period_s = CURRENT_PERIOD_NS as f64 * 1e-9;
        let quarter = real(CURRENT_BANDWIDTH_RAD_S * current_period_s);
        let zc = Complex::shift(omega, current_period_s);
        let current = quarter * (zc * zc + zc * real(-1.0) + quarter).recip();
        let mechanics = real(-axis.axis_constant_nm_per_a() / (axis.inertia_kg_m2() * omega * omega));

        let Complex(re, im) = controller * held * current * mechanics;
        let phase = im.atan2(re).to_degrees();
        (re.hypot(im), if phase > 0.0 { phase - 360.0 } else { phase })
    }

    #[test]
    fn crosses_over_at_designed_frequency_with_margin() {
        for axis in [GIMBAL.pan, GIMBAL.tilt] {
            // The gain decreases monotonically in this range.
            let (mut low, mut high) = (0.5 * POSITION_BANDWIDTH_RAD_S, 2.0 * POSITION_BANDWIDTH_RAD_S);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if open_loop(&axis, middle).0 > 1.0 { low = middle } else { high = middle }
            }
            assert!((low / POSITION_BANDWIDTH_RAD_S - 1.0).abs() < 0.1, "crossover at {low} rad/s");
            let margin = 180.0 + open_loop(&axis, low).1;
            assert!((53.0..55.0).contains(&margin), "phase margin {margin}°");
        }
    }

    #[test]
    fn limits_output_on_setpoint_step() {
        let gains = PositionGains::for_axis(&PAN);
        let mut controller = PositionController::new(gains, PAN.motor.current_limit_a);
        controller.update(0.0, 0.0);
        let step_a = controller.update(0.01, 0.0);
        assert!((step_a - 0.01 * gains.proportional_a_per_rad).abs() < 1e-12);
    }

    #[test]
    fn keeps_quantization_far_below_current_limit() {
        let gains = PositionGains::for_axis(&PAN);
        let mut controller = PositionController::new(gains, PAN.motor.current_limit_a);
        controller.update(0.0, 0.0);
        let kick_a = controller.update(0.0, RESOLUTION_RAD).abs();
        assert!(kick_a < 0.05 * PAN.motor.current_limit_a, "{kick_a} A");
    }
}

//! The cascaded controllers of one axis: current inside, position outside.
//!
//! The position controller turns an angle error into a current setpoint every
//! [`POSITION_PERIOD_NS`]; the current controller turns a current error into a motor voltage every
//! [`CURRENT_PERIOD_NS`]. The gains follow from the plant parameters and two bandwidths,
//! [`CURRENT_BANDWIDTH_RAD_S`] and [`POSITION_BANDWIDTH_RAD_S`], which differ by a factor of 25, so
//! that the outer loop can treat the inner one as a slightly delayed current source.
//!
//! Neither controller reads a clock: each must be called once per period, and jitter of the caller
//! is jitter in the loop.

mod current;
mod position;

pub use current::{CURRENT_BANDWIDTH_RAD_S, CURRENT_PERIOD_NS, CurrentController, CurrentGains};
pub use position::{POSITION_BANDWIDTH_RAD_S, POSITION_PERIOD_NS, PositionController, PositionGains};

/// The integral part of a controller with limited output.
#[derive(Debug, Clone, Copy)]
struct Integral {
    value: f64,
    output_limit: f64,
}

impl Integral {
    const fn new(output_limit: f64) -> Self {
        Self { value: 0.0, output_limit }
    }

    /// Returns the limited sum of the integral so far and the `other` parts; `increment` takes
    /// effect from the next call on.
    ///
    /// While the output is at its limit, the integral ignores increments that would drive it
    /// further beyond the limit. Otherwise it would wind up during every large step and cause
    /// overshoot afterwards.
    fn limited_sum(&mut self, other: f64, increment: f64) -> f64 {
        let wanted = other + self.value;
        let output = wanted.clamp(-self.output_limit, self.output_limit);
        if output == wanted || increment * wanted < 0.0 {
            self.value += increment;
        }
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clamps_integral_and_releases_it_at_once() {
        let mut integral = Integral::new(1.0);
        for _ in 0..1_000 {
            assert!(integral.limited_sum(0.5, 0.1) <= 1.0);
        }
        assert!(integral.value <= 0.5 + 0.1 + 1e-12);
        integral.limited_sum(0.5, -0.2);
        assert!(integral.limited_sum(0.5, 0.0) < 1.0);
    }
}

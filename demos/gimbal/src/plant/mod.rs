//! The simulated gimbal: two DC motors, each turning a geared axis between hard stops.
//!
//! # Time
//!
//! The plant has no clock. [`Plant::advance_to`] receives the time in nanoseconds and integrates
//! from the previous time to there, in whole steps of [`STEP_NS`], with the last voltages held
//! constant (as a motor driver does between two commands). The remaining fraction of a step is
//! carried to the next call, so the state at a given time does not depend on the number of calls
//! before it. Real jitter of the caller thus has exactly one effect: voltages that are held
//! slightly longer or shorter.
//!
//! # Step and method
//!
//! The step is 25 µs (40 kHz), four per period of the current controller. The shortest time
//! constant in the plant is that of the armature, L/R = 103 µs. Explicit Euler at the controller's
//! own 100 µs would be at the edge of instability there; instead the current decays exactly over
//! each step for the voltage held in it, the speed is advanced with the new current and the angle
//! with the new speed (semi-implicit Euler). This keeps the exchange of energy between the coil and
//! the rotor stable, needs no iteration, and costs the same number of operations at every step.
//!
//! Dry friction is applied last, as a change of speed that may stop the axis but not reverse it. An
//! axis at rest therefore stays at rest until the motor overcomes the friction, without chatter
//! around zero.

mod axis;
pub mod parameters;

pub use axis::AxisState;
pub use parameters::{AngleRange, AxisParameters, GIMBAL, MOTOR, MotorParameters, PAN, SUPPLY_V, TILT};

use crate::axes::Axes;
use axis::Axis;

/// Length of an integration step: 25 µs, that is 40 kHz.
pub const STEP_NS: u64 = 25_000;

/// The maximum number of steps of one [`Plant::advance_to`]: one second's worth.
///
/// A caller that paused for longer (a laptop lid, a debugger) must not wait for the whole gap
/// inside what may be a task with a deadline.
pub const MAX_STEPS_PER_ADVANCE: u64 = 1_000_000_000 / STEP_NS;

/// The plant could not reach the requested time in one call; its state is correct, but for an
/// earlier time.
///
/// Later calls continue from there and catch up, by at most one second each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the simulated plant is {owed_steps} steps of 25 µs behind")]
pub struct Behind {
    /// Steps still missing to the requested time.
    pub owed_steps: u64,
}

/// Both axes of the gimbal, the voltages on their motors, and the time up to which they have been
/// simulated.
#[derive(Debug, Clone)]
pub struct Plant {
    axes: Axes<Axis>,
    supply_v: f64,
    voltages_v: Axes<f64>,
    origin_ns: Option<u64>,
    steps: u64,
}

impl Plant {
    /// Creates a gimbal at rest at zero on both axes, with no voltage on the motors.
    pub fn new(parameters: Axes<AxisParameters>, supply_v: f64) -> Self {
        Self {
            axes: parameters.map(Axis::new),
            supply_v,
            voltages_v: Axes::both(0.0),
            origin_ns: None,
            steps: 0,
        }
    }

    /// Sets the motor voltages from here on, and returns whether the supply limited one of them.
    pub fn set_voltages(&mut self, volts: Axes<f64>) -> bool {
        let supply_v = self.supply_v;
        self.voltages_v = volts.map(|v| v.clamp(-supply_v, supply_v));
        self.voltages_v != volts
    }

    /// Simulates up to `now_ns` and returns the number of steps made.
    ///
    /// The first call switches the plant on: it defines the time of the initial state and makes no
    /// step. A time before the one already reached makes no step, either.
    ///
    /// # Errors
    ///
    /// Returns [`Behind`] if more than [`MAX_STEPS_PER_ADVANCE`] steps were due; that many have
    /// then been made.
    pub fn advance_to(&mut self, now_ns: u64) -> Result<u64, Behind> {
        let origin_ns = *self.origin_ns.get_or_insert(now_ns);
        let due = (now_ns.saturating_sub(origin_ns) / STEP_NS).saturating_sub(self.steps);
        let made = due.min(MAX_STEPS_PER_ADVANCE);
        for _ in 0..made {
            self.axes.pan.step(self.voltages_v.pan);
            self.axes.tilt.step(self.voltages_v.tilt);
        }
        self.steps += made;
        match due - made {
            0 => Ok(made),
            owed_steps => Err(Behind { owed_steps }),
        }
    }

    /// Returns the state of each axis at the simulated time.
    pub fn state(&self) -> Axes<AxisState> {
        self.axes.as_ref().map(|axis| *axis.state())
    }

    /// Returns the number of steps made since the plant was switched on.
    pub const fn steps(&self) -> u64 {
        self.steps
    }
}

impl Default for Plant {
    /// Creates the gimbal of this demo, see [`parameters`].
    fn default() -> Self {
        Self::new(GIMBAL, SUPPLY_V)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn powered(volts: Axes<f64>) -> Plant {
        let mut plant = Plant::default();
        plant.advance_to(7_000).unwrap();
        plant.set_voltages(volts);
        plant
    }

    #[test]
    fn only_sets_origin_on_first_call() {
        let mut plant = Plant::default();
        assert_eq!(plant.advance_to(9_000_000_000), Ok(0));
        assert_eq!(plant.advance_to(9_000_024_999), Ok(0));
        assert_eq!(plant.advance_to(9_000_025_000), Ok(1));
    }

    #[test]
    fn reaches_same_state_however_time_is_cut() {
        let end_ns = 7_000 + 50_000_003;
        let mut whole = powered(Axes::new(3.0, -2.0));
        whole.advance_to(end_ns).unwrap();

        let mut cut = powered(Axes::new(3.0, -2.0));
        let (mut now_ns, mut stride_ns) = (7_000, 1);
        while now_ns < end_ns {
            cut.advance_to(now_ns).unwrap();
            // Strides from 1 ns to 97 µs, never a multiple of the step for long.
            stride_ns = (stride_ns * 31 + 7) % 97_003;
            now_ns += stride_ns + 1;
        }
        cut.advance_to(end_ns).unwrap();

        assert_eq!(cut.steps(), 50_000_003 / STEP_NS);
        assert_eq!(cut.steps(), whole.steps());
        assert_eq!(cut.state(), whole.state(), "bit for bit");
    }

    #[test]
    fn ignores_time_going_backwards() {
        let mut plant = powered(Axes::both(5.0));
        plant.advance_to(1_000_000).unwrap();
        let before = plant.state();
        assert_eq!(plant.advance_to(500_000), Ok(0));
        assert_eq!(plant.advance_to(0), Ok(0));
        assert_eq!(plant.state(), before);
    }

    #[test]
    fn bounds_reports_and_makes_up_for_long_gap() {
        let mut plant = powered(Axes::both(0.5));
        let end_ns = 7_000 + 2_500_000_000;
        assert_eq!(plant.advance_to(end_ns), Err(Behind { owed_steps: 60_000 }));
        assert_eq!(plant.advance_to(end_ns), Err(Behind { owed_steps: 20_000 }));
        assert_eq!(plant.advance_to(end_ns), Ok(20_000));

        let mut prompt = powered(Axes::both(0.5));
        for ms in 1..=2_500 {
            prompt.advance_to(7_000 + ms * 1_000_000).unwrap();
        }
        assert_eq!(plant.state(), prompt.state());
        assert!(matches!(plant.advance_to(u64::MAX), Err(Behind { .. })));
    }

    #[test]
    fn limits_voltage_to_supply() {
        let mut plant = Plant::default();
        assert!(!plant.set_voltages(Axes::new(SUPPLY_V, -SUPPLY_V)));
        assert!(plant.set_voltages(Axes::new(0.0, 2.0 * SUPPLY_V)));
        assert_eq!(plant.voltages_v, Axes::new(0.0, SUPPLY_V));
    }
}

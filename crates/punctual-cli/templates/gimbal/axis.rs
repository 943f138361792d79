//! One axis: a simulated one, and its controller.

/// The time between two jobs of the controller, in seconds.
pub const PERIOD: f32 = 0.001;

/// Maximum torque of the motor, in N m.
const MAX_TORQUE: f32 = 0.5;
/// Moment of inertia in kg m².
const INERTIA: f32 = 0.01;
/// Friction in N m s.
const FRICTION: f32 = 0.02;
/// Encoder steps per revolution.
const STEPS: f32 = 8192.0;

/// A motor with an encoder, simulated.
#[derive(Debug, Default)]
pub struct Axis {
    angle: f32,
    speed: f32,
}

impl Axis {
    /// Returns the encoder's reading, in radians.
    pub fn angle(&self) -> f32 {
        let step = std::f32::consts::TAU / STEPS;
        (self.angle / step).round() * step
    }

    /// Applies this torque, in N m, for `seconds`.
    pub fn turn(&mut self, torque: f32, seconds: f32) {
        self.speed += (torque - FRICTION * self.speed) / INERTIA * seconds;
        self.angle += self.speed * seconds;
    }
}

/// A position controller: proportional to the error, with damping by the filtered speed.
///
/// Against a constant load, such as an axis out of balance, it needs an integral as well.
#[derive(Debug, Default)]
pub struct Controller {
    before: Option<f32>,
    speed: f32,
}

impl Controller {
    const STIFFNESS: f32 = 4.0;
    const DAMPING: f32 = 0.4;

    /// Returns the torque that moves `angle` to `setpoint`, limited to the motor's maximum.
    pub fn torque(&mut self, setpoint: f32, angle: f32) -> f32 {
        let speed = (angle - self.before.replace(angle).unwrap_or(angle)) / PERIOD;
        self.speed += 0.2 * (speed - self.speed);
        let wanted = Self::STIFFNESS * (setpoint - angle) - Self::DAMPING * self.speed;
        wanted.clamp(-MAX_TORQUE, MAX_TORQUE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_exceeds_motor_limits() {
        let mut controller = Controller::default();
        assert_eq!(controller.torque(100.0, 0.0), MAX_TORQUE);
        assert_eq!(controller.torque(-100.0, 0.0), -MAX_TORQUE);
    }
}

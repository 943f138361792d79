//! Every parameter of the simulated gimbal, with its source.
//!
//! The motor values were chosen for this demo according to the datasheet class of a 25 mm, 20 W, 24
//! V brushed motor with ironless rotor and graphite brushes (the Maxon RE 25 class). The mechanics
//! are assumed: a small camera on a two-axis bracket. None of these values is a measurement of, or
//! a claim about, any particular gimbal.
//!
//! | Parameter                     | Pan              | Tilt             | Source                       |
//! |-------------------------------|------------------|------------------|------------------------------|
//! | Armature resistance           | 2.32 Ω           | 2.32 Ω           | datasheet class              |
//! | Armature inductance           | 0.238 mH         | 0.238 mH         | datasheet class              |
//! | Torque = back-EMF constant    | 23.4 mN·m/A      | 23.4 mN·m/A      | datasheet class              |
//! | Rotor inertia                 | 1.08·10⁻⁶ kg·m²  | 1.08·10⁻⁶ kg·m²  | datasheet class              |
//! | Current limit (controller)    | 2.0 A            | 2.0 A            | assumed, for short times     |
//! | Supply                        | 24 V             | 24 V             | nominal voltage of the class |
//! | Gear ratio, motor : axis      | 30               | 30               | assumed                      |
//! | Load inertia, at the axis     | 2.0·10⁻³ kg·m²   | 0.8·10⁻³ kg·m²   | assumed                      |
//! | Viscous friction, at the axis | 4·10⁻³ N·m·s/rad | 4·10⁻³ N·m·s/rad | assumed                      |
//! | Coulomb friction, at the axis | 40 mN·m          | 30 mN·m          | assumed (¹)                  |
//! | Mechanical range              | ±2.5 rad         | ±1.0 rad         | assumed                      |
//!
//! (¹) The no-load current of the class, 37 mA, makes 26 mN·m after the gear; the rest is for
//! bearings.
//!
//! The gear is assumed to be stiff and free of play, its losses to be part of the friction, and the
//! axes not to influence each other: a balanced camera turned slowly couples them only slightly.

use crate::axes::Axes;

/// Supply of the motor drivers, in volts: the maximum motor voltage in either direction.
pub const SUPPLY_V: f64 = 24.0;

/// A brushed DC motor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MotorParameters {
    /// Armature resistance, in ohms.
    pub resistance_ohm: f64,
    /// Armature inductance, in henries.
    pub inductance_h: f64,
    /// Torque per current in N·m/A, which is also the back-EMF per speed in V·s/rad.
    pub torque_constant_nm_per_a: f64,
    /// Moment of inertia of the rotor, in kg·m².
    pub rotor_inertia_kg_m2: f64,
    /// Largest current a controller should request, in amperes.
    pub current_limit_a: f64,
}

/// The angles between the two hard stops of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AngleRange {
    /// Lower hard stop, in radians.
    pub min_rad: f64,
    /// Upper hard stop, in radians.
    pub max_rad: f64,
}

/// One axis of the gimbal with its motor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisParameters {
    /// The motor that drives the axis.
    pub motor: MotorParameters,
    /// Turns of the motor per turn of the axis.
    pub gear_ratio: f64,
    /// Moment of inertia of the load on the axis, in kg·m².
    pub load_inertia_kg_m2: f64,
    /// Viscous friction at the axis, in N·m·s/rad.
    pub viscous_friction_nm_s_per_rad: f64,
    /// Coulomb (dry) friction at the axis, in N·m; static friction is assumed to be equal.
    pub coulomb_friction_nm: f64,
    /// The mechanical range.
    pub range: AngleRange,
}

/// The motor on both axes.
pub const MOTOR: MotorParameters = MotorParameters {
    resistance_ohm: 2.32,
    inductance_h: 0.238e-3,
    torque_constant_nm_per_a: 23.4e-3,
    rotor_inertia_kg_m2: 1.08e-6,
    current_limit_a: 2.0,
};

/// The pan axis: carries the tilt axis and the camera.
pub const PAN: AxisParameters = AxisParameters {
    motor: MOTOR,
    gear_ratio: 30.0,
    load_inertia_kg_m2: 2.0e-3,
    viscous_friction_nm_s_per_rad: 4.0e-3,
    coulomb_friction_nm: 40.0e-3,
    range: AngleRange { min_rad: -2.5, max_rad: 2.5 },
};

/// The tilt axis: carries the camera.
pub const TILT: AxisParameters = AxisParameters {
    motor: MOTOR,
    gear_ratio: 30.0,
    load_inertia_kg_m2: 0.8e-3,
    viscous_friction_nm_s_per_rad: 4.0e-3,
    coulomb_friction_nm: 30.0e-3,
    range: AngleRange { min_rad: -1.0, max_rad: 1.0 },
};

/// The gimbal of this demo.
pub const GIMBAL: Axes<AxisParameters> = Axes::new(PAN, TILT);

impl AngleRange {
    /// Returns whether `angle_rad` can be reached; `false` for a NaN.
    pub fn contains(&self, angle_rad: f64) -> bool {
        (self.min_rad..=self.max_rad).contains(&angle_rad)
    }
}

impl AxisParameters {
    /// Returns the moment of inertia at the axis, in kg·m²: the load, and the rotor through the
    /// gear.
    pub fn inertia_kg_m2(&self) -> f64 {
        self.load_inertia_kg_m2 + self.motor.rotor_inertia_kg_m2 * self.gear_ratio * self.gear_ratio
    }

    /// Returns the torque at the axis per motor current in N·m/A, and back-EMF per speed of the
    /// axis in V·s/rad.
    pub fn axis_constant_nm_per_a(&self) -> f64 {
        self.motor.torque_constant_nm_per_a * self.gear_ratio
    }
}

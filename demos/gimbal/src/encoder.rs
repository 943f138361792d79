//! The 13-bit absolute encoder on each axis: the quantization of angles.

// A bare board has no `std` with these functions: `bare/programs` provides them.
#[cfg(target_os = "none")]
use crate::float::Float as _;
use std::f64::consts::TAU;

/// Counts in a full turn.
pub const COUNTS_PER_TURN: i32 = 1 << 13;

/// Angle of one count, in radians: 766.99 µrad.
pub const RESOLUTION_RAD: f64 = TAU / COUNTS_PER_TURN as f64;

/// Smallest count: half a turn below zero.
pub const MIN_COUNT: i16 = -(COUNTS_PER_TURN / 2) as i16;

/// Largest count: one short of half a turn above zero.
pub const MAX_COUNT: i16 = (COUNTS_PER_TURN / 2 - 1) as i16;

/// Returns the count nearest to `angle_rad`, from [`MIN_COUNT`] to [`MAX_COUNT`].
///
/// The encoder is absolute within one turn: an angle that differs by a full turn has the same
/// count.
pub fn count(angle_rad: f64) -> i16 {
    let half_turn = f64::from(COUNTS_PER_TURN / 2);
    let nearest = (angle_rad / RESOLUTION_RAD).round();
    // The remainder is within one turn, so the conversion is exact.
    ((nearest + half_turn).rem_euclid(f64::from(COUNTS_PER_TURN)) - half_turn) as i16
}

/// Returns the angle in the middle of `count`, in radians.
pub fn angle_rad(count: i16) -> f64 {
    f64::from(count) * RESOLUTION_RAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::f64::consts::PI;

    #[test]
    fn resolves_767_microradians() {
        assert!((RESOLUTION_RAD * 1e6 - 766.99).abs() < 0.005);
    }

    #[test]
    fn wraps_at_half_turn() {
        assert_eq!(count(0.0), 0);
        assert_eq!(count(-PI), MIN_COUNT);
        assert_eq!(count(PI), MIN_COUNT);
        assert_eq!(count(PI - RESOLUTION_RAD), MAX_COUNT);
    }

    proptest! {
        #[test]
        fn quantizes_within_half_count(angle in -3.1..3.1_f64) {
            prop_assert!((angle_rad(count(angle)) - angle).abs() <= 0.5 * RESOLUTION_RAD + 1e-12);
        }

        #[test]
        fn round_trips_every_count_and_angle(n in MIN_COUNT..=MAX_COUNT) {
            prop_assert_eq!(count(angle_rad(n)), n);
        }

        #[test]
        fn clamps_any_float_to_valid_count(angle in any::<f64>()) {
            prop_assert!((MIN_COUNT..=MAX_COUNT).contains(&count(angle)));
        }
    }
}

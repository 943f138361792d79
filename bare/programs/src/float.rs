//! Methods of `f64` that `std` provides and `core` lacks, as far as the programs need them.

/// Methods that `f64` has without this trait if `std` is available.
pub trait Float {
    /// Returns *e* to the power of `self`.
    fn exp(self) -> Self;

    /// Raises `self` to the power `exponent`.
    fn powi(self, exponent: i32) -> Self;

    /// Returns the remainder of the Euclidean division.
    fn rem_euclid(self, divisor: Self) -> Self;

    /// Returns the nearest integer; halves are rounded away from zero.
    fn round(self) -> Self;
}

impl Float for f64 {
    fn exp(self) -> Self {
        libm::exp(self)
    }

    fn powi(self, exponent: i32) -> Self {
        libm::pow(self, exponent.into())
    }

    fn rem_euclid(self, divisor: Self) -> Self {
        let remainder = libm::fmod(self, divisor);
        if remainder < 0.0 { remainder + divisor.abs() } else { remainder }
    }

    fn round(self) -> Self {
        libm::round(self)
    }
}

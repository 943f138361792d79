//! What `std` has of `f64`, and `core` has not, as far as programs need it.

/// Functions that `f64` has by itself where there is `std`.
pub trait Float {
    /// *e* to the power of this.
    fn exp(self) -> Self;

    /// This times itself, so many times.
    fn powi(self, exponent: i32) -> Self;

    /// The remainder of the Euclidean division.
    fn rem_euclid(self, divisor: Self) -> Self;

    /// The nearest integer; halves are rounded away from zero.
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

//! Sums of utilizations, exact as long as they fit.

use std::cmp::Ordering;

/// A non-negative fraction. If its parts overflow, it is rounded up slightly.
#[derive(Debug, Clone, Copy)]
pub struct Fraction {
    numerator: u128,
    denominator: u128,
}

/// Denominator of rounded fractions.
const ROUNDED: u128 = 1 << 60;

impl Fraction {
    /// 0.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };
    /// 1.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// Creates a fraction. A denominator of 0 counts as 1.
    #[must_use]
    pub fn new(numerator: u128, denominator: u128) -> Self {
        let denominator = denominator.max(1);
        let divisor = greatest_common_divisor(numerator, denominator);
        Self { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let exact = || {
            let divisor = greatest_common_divisor(self.denominator, other.denominator);
            let denominator = self.denominator.checked_mul(other.denominator / divisor)?;
            let own = self.numerator.checked_mul(other.denominator / divisor)?;
            let others = other.numerator.checked_mul(self.denominator / divisor)?;
            Some(Self::new(own.checked_add(others)?, denominator))
        };
        exact().unwrap_or_else(|| {
            let numerator = self.rounded_up().saturating_add(other.rounded_up());
            Self { numerator, denominator: ROUNDED }
        })
    }

    /// Returns the product with an integer.
    #[must_use]
    pub fn times(self, factor: u64) -> Self {
        let divisor = greatest_common_divisor(u128::from(factor), self.denominator).max(1);
        match self.numerator.checked_mul(u128::from(factor) / divisor) {
            Some(numerator) => Self { numerator, denominator: self.denominator / divisor },
            None => {
                Self { numerator: self.rounded_up().saturating_mul(u128::from(factor)), denominator: ROUNDED }
            }
        }
    }

    fn rounded_up(self) -> u128 {
        let (whole, rest) = (self.numerator / self.denominator, self.numerator % self.denominator);
        let shifted = match rest.checked_mul(ROUNDED) {
            Some(product) => product.div_ceil(self.denominator),
            None => rest.div_ceil(self.denominator / ROUNDED).min(ROUNDED),
        };
        whole.saturating_mul(ROUNDED).saturating_add(shifted)
    }

    /// Converts to `f64`.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Fraction {}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    /// Compares by continued fractions, which cannot overflow.
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b) = ((self.numerator, self.denominator), (other.numerator, other.denominator));
        loop {
            let by_whole = (a.0 / a.1).cmp(&(b.0 / b.1));
            let (rest_a, rest_b) = (a.0 % a.1, b.0 % b.1);
            if by_whole.is_ne() || rest_a == 0 || rest_b == 0 {
                return by_whole.then(rest_a.min(1).cmp(&rest_b.min(1)));
            }
            // The larger remainder has the smaller reciprocal.
            (a, b) = ((b.1, rest_b), (a.1, rest_a));
        }
    }
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_exactly() {
        let third = Fraction::new(1, 3);
        assert_eq!(third.plus(third).plus(third), Fraction::ONE);
        assert_eq!(Fraction::new(7, 20).times(20), Fraction::new(7, 1));
        assert!(Fraction::new(1, 3).plus(Fraction::new(1, 4)) < Fraction::new(3, 5));
    }

    #[test]
    fn orders_fractions_whose_products_overflow() {
        let (huge, half) = (u128::MAX, u128::MAX / 2);
        assert!(Fraction::new(half, huge) < Fraction::new(half + 1, huge));
        assert!(Fraction::new(huge - 1, huge) < Fraction::ONE);
        assert!(Fraction::ZERO < Fraction::new(1, huge));
        for (a, b) in [(1_u128, 2_u128), (2, 3), (3, 5), (5, 5), (7, 5), (0, 9)] {
            for (c, d) in [(1_u128, 2_u128), (2, 3), (3, 5), (4, 4), (9, 5), (0, 1)] {
                assert_eq!(
                    Fraction::new(a, b).cmp(&Fraction::new(c, d)),
                    (a * d).cmp(&(c * b)),
                    "{a}/{b} {c}/{d}"
                );
            }
        }
    }

    #[test]
    fn rounds_inexact_results_up() {
        let mut sum = Fraction::ZERO;
        let primes = [999_999_937_u128, 999_999_929, 999_999_893, 999_999_883, 999_999_797, 999_999_761];
        for prime in primes {
            sum = sum.plus(Fraction::new(1, prime));
        }
        let least = Fraction::new(6, 1_000_000_000);
        assert!(sum > least && sum < Fraction::new(7, 1_000_000_000));
    }
}

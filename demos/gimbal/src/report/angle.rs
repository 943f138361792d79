//! Angles in the form people read.

use std::fmt::{self, Display, Formatter};

/// Microradians, with decimals only where they say something.
pub(super) struct Microradians(pub(super) f64);

impl Display for Microradians {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let decimals = match self.0.abs() {
            0.0 => 0,
            ..1.0 => 3,
            ..10.0 => 2,
            ..1000.0 => 1,
            _ => 0,
        };
        write!(f, "{:.decimals$}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_say_something() {
        let texts = [0.0, 0.1234, -9.876, 766.99, 1_000.4].map(|angle| Microradians(angle).to_string());
        assert_eq!(texts, ["0", "0.123", "-9.88", "767.0", "1000"]);
    }
}

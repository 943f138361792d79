//! Services of the platforms, independent of apps: Linux and virtual time in a process, or a board.
//!
//! The feature `std` selects between a process and a board. Both provide the port of a partition,
//! [`AppPort`], the system's error, and statics with a value for each thread.

use core::fmt;

pub use crate::platform::port::*;

/// Nanoseconds; prints three significant digits and a unit.
#[derive(Clone, Copy)]
pub(crate) struct Nanos(pub(crate) u64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = match self.0 {
            ns @ 0..1_000 => return write!(f, "{ns} ns"),
            1_000..999_500 => ("µs", 1_000),
            999_500..999_500_000 => ("ms", 1_000_000),
            _ => ("s", 1_000_000_000),
        };
        let in_units_of = |part: u64| self.0.saturating_add(part / 2) / part;
        let [hundredths, tenths] = [in_units_of(scale / 100), in_units_of(scale / 10)];
        if hundredths < 1_000 {
            write!(f, "{}.{:02} {unit}", hundredths / 100, hundredths % 100)
        } else if tenths < 1_000 {
            write!(f, "{}.{} {unit}", tenths / 10, tenths % 10)
        } else {
            write!(f, "{} {unit}", Count(in_units_of(scale)))
        }
    }
}

/// A count; groups thousands.
pub(crate) struct Count(pub(crate) u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1_000 {
            return write!(f, "{}", self.0);
        }
        write!(f, "{} {:03}", Count(self.0 / 1_000), self.0 % 1_000)
    }
}

/// The suspensions of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Suspensions {
    /// Number of voluntary switches.
    pub(crate) count: u64,
    /// Time off the CPU, in ns; 0 without a suspension.
    pub(crate) time: u64,
}

impl Suspensions {
    pub(crate) const NONE: Self = Self { count: 0, time: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_three_digits_and_unit() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (1_234, "1.23 µs"),
            (9_994, "9.99 µs"),
            (9_996, "10.0 µs"),
            (12_359, "12.4 µs"),
            (99_960, "100 µs"),
            (100_900, "101 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (2_500_000_000, "2.50 s"),
            (u64::MAX, "18 446 744 073 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(Nanos(ns).to_string(), text);
        }
    }

    #[test]
    fn groups_thousands() {
        let cases = [(0, "0"), (999, "999"), (57_667, "57 667"), (1_002_003, "1 002 003")];
        for (count, text) in cases {
            assert_eq!(Count(count).to_string(), text);
        }
    }
}

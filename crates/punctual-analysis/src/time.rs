//! Times: integer nanoseconds, written with a unit.
//!
//! ```
//! use punctual_analysis::time::parse;
//!
//! assert_eq!(parse("1.5ms"), Ok(1_500_000));
//! assert_eq!(parse("2 µs"), Ok(2_000));
//! assert!(parse("100").unwrap_err().contains("unit"));
//! ```

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// Nanoseconds, up to five hundred years.
pub type Nanos = u64;

/// Longest time in a model: one year, so that sums of several times cannot overflow.
pub const MAX_TIME: Nanos = 366 * 24 * 3600 * 1_000_000_000;

const UNITS: [(&str, u64); 6] =
    [("ns", 1), ("us", 1_000), ("µs", 1_000), ("μs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Parses a time such as `100us`, `1.5 ms` or `2s`.
///
/// # Errors
/// Returns the problem and the correct form.
pub fn parse(text: &str) -> Result<Nanos, String> {
    let trimmed = text.trim();
    if trimmed.starts_with(['-', '−']) {
        return Err(format!("`{text}` is a negative time; times are 0 or more"));
    }
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
    let (digits, unit) = (trimmed[..end].replace('_', ""), trimmed[end..].trim_start());
    let is_zero = digits.bytes().all(|digit| digit == b'0');
    // A zero with a unit is no better answer where a time is required.
    if digits.is_empty() || (unit.is_empty() && is_zero) {
        return Err(format!("`{text}` is no time; write a number with a unit, as in \"100us\""));
    }
    if unit.is_empty() {
        return Err(format!("`{text}` has no unit; write \"{trimmed}us\", or with ns, ms or s"));
    }
    let Some(&(_, size)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("`{unit}` is no unit of time; units are ns, us, ms and s"));
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return Err(format!("`{text}` is no number with a unit"));
    }
    let too_long = || format!("`{text}` is longer than a year; give a shorter time");
    let mut ns = decimal(whole).and_then(|whole| whole.checked_mul(size)).ok_or_else(too_long)?;
    let mut place = size;
    for digit in fraction.bytes().map(|byte| u64::from(byte - b'0')) {
        if place % 10 != 0 {
            if digit == 0 {
                continue;
            }
            return Err(format!("`{text}` is no whole number of nanoseconds"));
        }
        place /= 10;
        ns = ns.checked_add(digit * place).ok_or_else(too_long)?;
    }
    if ns > MAX_TIME { Err(too_long()) } else { Ok(ns) }
}

fn decimal(digits: &str) -> Option<u64> {
    if digits.is_empty() { Some(0) } else { digits.parse().ok() }
}

/// A time in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Time(pub(crate) Nanos);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Time;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a time with a unit, as in \"100us\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                parse(text).map(Time).map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Time, E> {
                if number < 0 {
                    return Err(E::custom(format!("{number} is a negative time; times are 0 or more")));
                }
                Err(E::custom(format!("{number} has no unit; write \"{number}us\", or with ns, ms or s")))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Time, E> {
                Err(E::custom(format!("{number} has no unit; write \"{number}us\", or with ns, ms or s")))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Time, E> {
                Err(E::invalid_type(Unexpected::Float(number), &self))
            }
        }

        deserializer.deserialize_any(Text)
    }
}

/// A positive factor as a fraction, for exact scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// Numerator.
    pub numerator: u64,
    /// Denominator; not zero.
    pub denominator: u64,
}

impl Ratio {
    /// The factor 1.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// Parses a decimal number such as `1.25`, or a percentage such as `125%`.
    ///
    /// # Errors
    /// Returns the problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (digits, mut denominator) = match text.strip_suffix('%') {
            Some(digits) => (digits.trim_end(), 100_u64),
            None => (text, 1),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{whole}{fraction}");
        if all.is_empty() || all.len() > 12 || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("`{text}` is no factor; write a number such as 1.2 or 120%"));
        }
        denominator *= 10_u64.pow(u32::try_from(fraction.len()).unwrap_or(12));
        let numerator = all.parse().map_err(|_| format!("`{text}` is too large a factor"))?;
        Ok(Self { numerator, denominator })
    }

    /// Scales a time, rounded up; saturates.
    #[must_use]
    pub fn of(self, ns: Nanos) -> Nanos {
        let product = u128::from(ns) * u128::from(self.numerator);
        u64::try_from(product.div_ceil(u128::from(self.denominator.max(1)))).unwrap_or(Nanos::MAX)
    }

    /// Converts the factor to `f64`.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_exactly() {
        let cases = [
            ("0s", 0),
            ("7ns", 7),
            ("100us", 100_000),
            ("0.001us", 1),
            (".5ms", 500_000),
            ("1.50 ms", 1_500_000),
            ("1_000µs", 1_000_000),
            ("2s", 2_000_000_000),
            ("1.0ns", 1),
        ];
        for (text, ns) in cases {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn error_explains_invalid_time() {
        for (text, part) in [
            ("", "no time"),
            ("us", "no time"),
            ("100", "no unit"),
            ("0", "no time"),
            ("-1us", "negative"),
            ("1h", "no unit of time"),
            ("1.5ns", "whole number of nanoseconds"),
            ("1.2.3us", "no number"),
            (".us", "no number"),
            ("99999999999999999999s", "longer than a year"),
            ("32000000s", "longer than a year"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn rounds_scaled_times_up() {
        let ratio = Ratio::parse("1.2").unwrap();
        assert_eq!((ratio.of(10), ratio.of(1), ratio.of(0)), (12, 2, 0));
        assert_eq!(Ratio::parse("150%").unwrap().of(100), 150);
        assert_eq!(Ratio { numerator: u64::MAX, denominator: 1 }.of(2), u64::MAX);
        for text in ["", ".", "-1", "x", "1e3", "nan", "1234567890123"] {
            assert!(Ratio::parse(text).is_err(), "{text}");
        }
    }
}

//! Number formats for human readers: three significant digits, grouped thousands, and a suitable
//! unit.
//!
//! A missing number is a dash, never a zero.
//!
//! ```
//! use punctual_report::format::{format_count, format_micros, format_nanos};
//!
//! assert_eq!(format_nanos(81_960.0), "82.0 µs");
//! assert_eq!(format_micros(1_812_400), "1 812");
//! assert_eq!(format_count(1_234_567), "1 234 567");
//! ```

/// The text for a missing number.
pub const NONE: &str = "–";

/// Formats a count with grouped thousands.
#[must_use]
pub fn format_count(count: u64) -> String {
    grouped(&count.to_string())
}

/// Formats a count with its noun, in the plural unless the count is one.
///
/// ```
/// # use punctual_report::format::format_counted;
/// assert_eq!([1, 2_000].map(|count| format_counted(count, "CPU")), ["1 CPU", "2 000 CPUs"]);
/// ```
#[must_use]
pub fn format_counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", format_count(count))
}

/// Formats a number with three significant digits, or with all digits before the point; at most
/// three decimals.
///
/// ```
/// # use punctual_report::format::format_significant;
/// let texts = [0.0, 0.1234, -9.876, 766.99, 123_456.7, f64::NAN].map(format_significant);
/// assert_eq!(texts, ["0", "0.123", "−9.88", "767", "123 457", "–"]);
/// ```
#[must_use]
pub fn format_significant(value: f64) -> String {
    if value.is_nan() {
        return NONE.into();
    }
    let size = value.abs();
    let decimals = match size {
        0.0 => 0,
        ..0.9995 => 3,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    let digits = if size.is_finite() { format!("{size:.decimals$}") } else { "∞".into() };
    // A value rounded to zero has no sign.
    let sign = if value < 0.0 && digits.contains(|digit| !matches!(digit, '0' | '.')) { "−" } else { "" };
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    format!("{sign}{}{fraction}", grouped(whole))
}

/// Formats nanoseconds with three significant digits and the unit that leaves one to three of them
/// before the point.
///
/// ```
/// # use punctual_report::format::format_nanos;
/// let texts = [0.0, 5.321, 999.6, -1_500.0, 2.5e9].map(format_nanos);
/// assert_eq!(texts, ["0 ns", "5.32 ns", "1.00 µs", "−1.50 µs", "2.50 s"]);
/// ```
#[must_use]
pub fn format_nanos(ns: f64) -> String {
    if ns.is_nan() {
        return NONE.into();
    }
    // Chosen by the rounded value.
    let (unit, size) = unit(ns.abs() / 0.9995);
    format!("{} {unit}", format_significant(ns / size))
}

/// Formats nanoseconds as microseconds without the unit, for columns and axes that name it.
#[must_use]
pub fn format_micros(ns: u64) -> String {
    format_significant(ns as f64 / 1e3)
}

/// Formats nanoseconds with the unit that leaves up to four digits before the point, so that the
/// parts of a time have the same unit as their sum. Only short times have a decimal.
///
/// ```
/// # use punctual_report::format::format_part;
/// let texts = [999, 3_000, 1_812_400, 12_345_678_901].map(format_part);
/// assert_eq!(texts, ["999 ns", "3.0 µs", "1 812 µs", "12 s"]);
/// ```
#[must_use]
pub fn format_part(ns: u64) -> String {
    let (unit, size) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..9_950 => return format!("{}.{} µs", (ns + 50) / 1_000, (ns + 50) % 1_000 / 100),
        9_950..9_999_500 => ("µs", 1_000),
        9_999_500..9_999_500_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    // Rounds without overflow for any number.
    let whole = ns / size + u64::from(ns % size >= size / 2);
    format!("{} {unit}", format_count(whole))
}

/// Returns the unit that leaves one to three digits of a time before the point, and its length in
/// nanoseconds.
#[must_use]
pub fn unit(ns: f64) -> (&'static str, f64) {
    match ns {
        ..1e3 => ("ns", 1.0),
        ..1e6 => ("µs", 1e3),
        ..1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    }
}

/// Formats nanoseconds as seconds with six decimals, as other tools print the times of a trace.
///
/// ```
/// # use punctual_report::format::format_clock;
/// assert_eq!(format_clock(1_234_567_899), "1.234567");
/// ```
#[must_use]
pub fn format_clock(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// Groups digits by three.
fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && digit.is_ascii_digit() {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number in a text, without its spaces and unit.
    fn number(text: &str) -> f64 {
        let digits = text.trim_end_matches(|c: char| c.is_alphabetic()).replace(' ', "").replace('−', "-");
        digits.parse().unwrap()
    }

    #[test]
    fn groups_counts_by_thousands() {
        let texts = [0, 999, 1_000, 70_005, 1_234_567].map(format_count);
        assert_eq!(texts, ["0", "999", "1 000", "70 005", "1 234 567"]);
        assert_eq!(format_count(u64::MAX).replace(' ', ""), u64::MAX.to_string());
    }

    #[test]
    fn rounds_to_three_digits_or_whole_number() {
        let cases = [
            (0, "0"),
            (7, "0.007"),
            (999, "0.999"),
            (1_000, "1.00"),
            (9_994, "9.99"),
            (9_995, "10.0"),
            (99_949, "99.9"),
            (99_950, "100"),
            (1_812_400, "1 812"),
            (1_234_567_890, "1 234 568"),
            (u64::MAX, "18 446 744 073 709 552"),
        ];
        for (ns, text) in cases {
            assert_eq!(format_micros(ns), text);
        }
    }

    #[test]
    fn changes_unit_after_rounding() {
        let cases = [
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (99_960.0, "100 µs"),
            (999_499.0, "999 µs"),
            (999_500.0, "1.00 ms"),
            (1e13, "10 000 s"),
        ];
        for (ns, text) in cases {
            assert_eq!((format_nanos(ns), format_nanos(-ns)), (text.to_owned(), format!("−{text}")));
        }
    }

    #[test]
    fn prints_non_finite_numbers() {
        assert_eq!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(format_nanos), ["–", "∞ s", "−∞ s"]);
        assert_eq!([-0.0, -0.0001, f64::MIN_POSITIVE].map(format_significant), ["0", "0.000", "0.000"]);
        assert!(format_significant(f64::MAX).len() > 300);
    }

    #[test]
    fn rounds_every_magnitude_within_half_a_percent() {
        // Steps through all magnitudes without a pattern.
        let mut ns = 1_u64;
        while ns < u64::MAX / 3 {
            ns += ns / 7 + 1;
            let exact = ns as f64;
            for (text, unit) in [(format_nanos(exact), unit(exact / 0.9995).1), (format_micros(ns), 1e3)] {
                let error = (number(&text) * unit - exact).abs();
                assert!(error <= exact * 0.005 + 0.5, "{ns} as {text}");
            }
        }
    }

    #[test]
    fn formats_parts_with_few_digits() {
        let cases = [
            (0, "0 ns"),
            (9_949, "9.9 µs"),
            (9_950, "10 µs"),
            (9_999_499, "9 999 µs"),
            (9_999_500, "10 ms"),
            (u64::MAX, "18 446 744 074 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(format_part(ns), text);
        }
    }
}

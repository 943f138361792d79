//! From times to positions in a chart, and the round ones to mark on the way.

use std::ops::RangeInclusive;

use punctual_html::Grouped;

/// A unit of time: its name and how many ns it is.
pub(super) type Unit = (&'static str, f64);

/// The unit that leaves one to three digits of a time.
pub(super) fn unit(ns: f64) -> Unit {
    match ns {
        ..1e3 => ("ns", 1.0),
        ..1e6 => ("µs", 1e3),
        ..1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    }
}

/// A linear scale of ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linear {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Linear {
    /// Maps `from` to `start` and `to` to `end`.
    pub(super) fn new(from: f64, to: f64, start: f64, end: f64) -> Self {
        // Some length, whatever it is given.
        Self { from, to: to.max(from + 1.0), start, end }
    }

    pub(super) fn at(&self, ns: f64) -> f64 {
        self.start + (ns - self.from) / (self.to - self.from) * (self.end - self.start)
    }

    /// At most about `count` round values, as they read in `unit`.
    pub(super) fn ticks(&self, count: f64, unit: Unit) -> Vec<(f64, String)> {
        let step = round_step((self.to - self.from) / unit.1 / count.max(1.0));
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let (first, last) = ((self.from / unit.1 / step).ceil(), (self.to / unit.1 / step).floor());
        (first as i64..=last as i64)
            .map(|n| {
                let value = n as f64 * step;
                let text = if value >= 10_000.0 {
                    Grouped(value as u64).to_string()
                } else {
                    format!("{value:.decimals$}").replace('-', "−")
                };
                (value * unit.1, text)
            })
            .collect()
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * 0.999);
    factor.unwrap_or(10.0) * power
}

/// A logarithmic scale over whole decades.
#[derive(Debug, Clone)]
pub(super) struct Log {
    decades: RangeInclusive<i32>,
    linear: (f64, f64),
}

impl Log {
    /// Maps ten to the power of each end of `decades` to `start` and `end`.
    pub(super) fn new(decades: RangeInclusive<i32>, start: f64, end: f64) -> Self {
        Self { decades, linear: (start, end) }
    }

    /// Where `value` is; one outside the decades is at the nearer end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let (low, high) = (f64::from(*self.decades.start()), f64::from(*self.decades.end()));
        let exponent = value.max(1e-3).log10().clamp(low, high);
        self.linear.0 + (exponent - low) / (high - low) * (self.linear.1 - self.linear.0)
    }

    /// The exponents of the decades.
    pub(super) fn exponents(&self) -> RangeInclusive<i32> {
        self.decades.clone()
    }
}

/// The whole decades around `min..=max`, at least one; both must be positive.
pub(super) fn decades(min: f64, max: f64) -> RangeInclusive<i32> {
    let from = (min.log10() + 1e-9).floor() as i32;
    from..=((max.log10() - 1e-9).ceil() as i32).max(from + 1)
}

/// A power of ten of ns in the unit that suits it: `100 µs`.
pub(super) fn decade_of_time(exponent: i32) -> String {
    let ns = 10_f64.powi(exponent);
    let (name, size) = unit(ns * 1.001);
    format!("{} {name}", (ns / size * 10.0).round() / 10.0)
}

/// A power of ten as a count: `100`, `1k`, `10M`.
pub(super) fn decade_of_counts(exponent: i32) -> String {
    let (power, suffix) = match exponent {
        ..=2 => (exponent, ""),
        3..=5 => (exponent - 3, "k"),
        6..=8 => (exponent - 6, "M"),
        _ => (exponent - 9, "G"),
    };
    format!("{}{suffix}", 10_f64.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[(f64, String)]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_in_their_unit() {
        let scale = Linear::new(0.0, 2_034_000.0, 100.0, 1100.0);
        assert_eq!(labels(&scale.ticks(5.0, unit(2_034_000.0))), ["0.0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(scale.ticks(5.0, unit(1e6))[1].0, 500_000.0);
        assert_eq!((scale.at(0.0), scale.at(1_017_000.0)), (100.0, 600.0));
        assert_eq!(labels(&Linear::new(0.0, 0.0, 0.0, 1.0).ticks(3.0, unit(1.0))), ["0.0", "0.5", "1.0"]);
    }

    #[test]
    fn decades_hold_what_is_in_them() {
        let scale = Log::new(decades(250.0, 3_000.0), 0.0, 50.0);
        assert_eq!(scale.exponents(), 2..=4);
        assert_eq!((scale.at(1_000.0), scale.at(0.0), scale.at(1e30)), (25.0, 0.0, 50.0));
        assert_eq!(decades(100.0, 1_000.0), 2..=3);
        let times = [-1, 0, 2, 3, 6, 8, 9, 11].map(decade_of_time);
        assert_eq!(times, ["0.1 ns", "1 ns", "100 ns", "1 µs", "1 ms", "100 ms", "1 s", "100 s"]);
        assert_eq!([0, 2, 3, 5, 6].map(decade_of_counts), ["1", "100", "1k", "100k", "1M"]);
    }
}

//! Maps values to positions in a drawing, with ticks at round values.
//!
//! Positions are always finite: values outside a logarithmic scale map to its nearer end, and NaN
//! maps to the start.
//!
//! ```
//! use punctual_report::scale::{Linear, Log, decade_of_time, decades};
//!
//! let seconds = Linear::new(0.0, 2.0, 100.0, 500.0);
//! assert_eq!(seconds.at(0.5), 200.0);
//! let labels: Vec<String> = seconds.ticks(4, 1.0).into_iter().map(|tick| tick.1).collect();
//! assert_eq!(labels, ["0.0", "0.5", "1.0", "1.5", "2.0"]);
//!
//! let nanoseconds = Log::new(decades(250.0, 30_000.0), 0.0, 300.0);
//! assert_eq!(nanoseconds.at(1_000.0), 100.0);
//! assert_eq!(nanoseconds.exponents().map(decade_of_time).collect::<Vec<_>>(), ["100 ns", "1 µs", "10 µs", "100 µs"]);
//! ```

use std::ops::RangeInclusive;

use crate::format::{format_significant, unit};

/// A value to mark, and its label.
pub type Tick = (f64, String);

/// The maximum number of ticks of a scale.
const MAX_TICKS: u32 = 100;

/// A linear scale.
#[derive(Debug, Clone, Copy)]
pub struct Linear {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Linear {
    /// Maps `from` to `start` and `to` to `end`. An empty or NaN span becomes one of 1.
    #[must_use]
    pub fn new(from: f64, to: f64, start: f64, end: f64) -> Self {
        // Keeps the length of the span finite.
        const BOUND: f64 = f64::MAX / 4.0;
        let from = if from.is_nan() { 0.0 } else { from.clamp(-BOUND, BOUND) };
        let (to, least) = (to.clamp(-BOUND, BOUND), from.abs() * 1e-9);
        let to = if to - from > least { to } else { from + least.max(1.0) };
        Self { from, to, start, end }
    }

    /// Returns the position of `value`.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let at = self.start + (value - self.from) / (self.to - self.from) * (self.end - self.start);
        if at.is_finite() { at } else { self.start }
    }

    /// Returns about `count` round values, at least two, labeled in multiples of `unit` with as
    /// many decimals as distinguish them.
    #[must_use]
    pub fn ticks(&self, count: u32, unit: f64) -> Vec<Tick> {
        let (from, to) = (self.from / unit, self.to / unit);
        let count = count.clamp(1, MAX_TICKS);
        let step = round_step((to - from) / f64::from(count));
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let first = (from / step).ceil();
        let values = (0..=2 * MAX_TICKS).map(|n| (first + f64::from(n)) * step);
        let values = values.take_while(|value| *value <= to + step * 1e-9);
        let ticks: Vec<Tick> = values
            .map(|value| {
                let label = match value.abs() {
                    1_000.0.. => format_significant(value),
                    // Adding zero removes the sign of negative zero.
                    _ => format!("{:.decimals$}", value + 0.0).replace('-', "−"),
                };
                (value * unit, label)
            })
            .collect();
        // A single value shows no scale.
        if ticks.len() < 2 && count < MAX_TICKS { self.ticks(count + 1, unit) } else { ticks }
    }
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * 0.999);
    factor.unwrap_or(10.0) * power
}

/// A logarithmic scale over whole decades.
#[derive(Debug, Clone)]
pub struct Log {
    decades: RangeInclusive<i32>,
    linear: Linear,
}

impl Log {
    /// Maps ten to the power of each end of `decades` to `start` and `end`.
    #[must_use]
    pub fn new(decades: RangeInclusive<i32>, start: f64, end: f64) -> Self {
        let linear = Linear::new(f64::from(*decades.start()), f64::from(*decades.end()), start, end);
        Self { decades, linear }
    }

    /// Returns the position of `value`; a value outside the decades maps to the nearer end.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let (low, high) = (f64::from(*self.decades.start()), f64::from(*self.decades.end()));
        // Zero and negative numbers have no logarithm.
        self.linear.at(value.max(f64::MIN_POSITIVE).log10().max(low).min(high))
    }

    /// Returns the exponents of the decades.
    #[must_use]
    pub fn exponents(&self) -> RangeInclusive<i32> {
        self.decades.clone()
    }
}

/// Returns the exponents of the whole decades around `min..=max`, at least one decade. Values
/// without a logarithm count as 1.
#[must_use]
pub fn decades(min: f64, max: f64) -> RangeInclusive<i32> {
    let exponent = |value: f64| if value > 0.0 && value.is_finite() { value.log10() } else { 0.0 };
    let from = (exponent(min) + 1e-9).floor() as i32;
    from..=((exponent(max) - 1e-9).ceil() as i32).max(from + 1)
}

/// Formats a power of ten of nanoseconds in the suitable unit: `100 µs`.
#[must_use]
pub fn decade_of_time(exponent: i32) -> String {
    // Scaled up slightly, because powers are not exact.
    let (name, size) = unit(10_f64.powi(exponent) * 1.001);
    format!("{} {name}", 10_f64.powi(exponent - size.log10().round() as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    /// Numbers of all magnitudes and signs, and NaN.
    const HOSTILE: [f64; 13] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        1e-300,
        -1e-300,
        1.8e19,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];

    #[test]
    fn linear_ticks_are_round_in_their_unit() {
        let scale = Linear::new(-0.31, 0.62, 100.0, 0.0);
        assert_eq!(labels(&scale.ticks(5, 1.0)), ["−0.2", "0.0", "0.2", "0.4", "0.6"]);
        assert_eq!((scale.at(-0.31), scale.at(0.62)), (100.0, 0.0));
        assert_eq!(Linear::new(0.0, 10.0, 0.0, 1.0).ticks(10, 1.0).len(), 11);
        let scale = Linear::new(0.0, 2_034_000.0, 100.0, 1100.0);
        assert_eq!(labels(&scale.ticks(5, 1e6)), ["0.0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(scale.ticks(5, 1e6)[1].0, 500_000.0);
        assert_eq!(labels(&Linear::new(0.0, 4e4, 0.0, 1.0).ticks(2, 1.0)), ["0", "20 000", "40 000"]);
        assert_eq!(labels(&Linear::new(-3.5, 4.4, 0.0, 1.0).ticks(2, 1.0)), ["−2", "0", "2", "4"]);
    }

    #[test]
    fn gives_finite_positions_and_few_ticks() {
        for (from, to) in HOSTILE.into_iter().flat_map(|from| HOSTILE.map(|to| (from, to))) {
            let (linear, log) = (Linear::new(from, to, 0.0, 500.0), Log::new(decades(from, to), 0.0, 500.0));
            for value in HOSTILE {
                assert!(linear.at(value).is_finite(), "{value} in {from}..{to}");
                assert!((0.0..=500.0).contains(&log.at(value)), "{value} in {from}..{to}");
            }
            for count in [0, 5, u32::MAX] {
                let ticks = linear.ticks(count, 1.0);
                assert!(ticks.len() <= 2 * MAX_TICKS as usize + 1);
                assert!(ticks.iter().all(|tick| linear.at(tick.0).is_finite()), "{ticks:?} in {from}..{to}");
            }
        }
    }

    #[test]
    fn covers_all_values_with_decades() {
        let scale = Log::new(decades(250.0, 3_000.0), 0.0, 50.0);
        assert_eq!(scale.exponents(), 2..=4);
        assert_eq!((scale.at(1_000.0), scale.at(0.0), scale.at(1e30)), (25.0, 0.0, 50.0));
        assert_eq!((decades(100.0, 1_000.0), decades(5.0, 5.0)), (2..=3, 0..=1));
        let times = [-1, 0, 2, 3, 6, 8, 9, 11].map(decade_of_time);
        assert_eq!(times, ["0.1 ns", "1 ns", "100 ns", "1 µs", "1 ms", "100 ms", "1 s", "100 s"]);
    }
}

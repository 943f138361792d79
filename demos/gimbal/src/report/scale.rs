//! From values to positions in a chart, and the round values to mark on the way.

use std::ops::RangeInclusive;

/// A linear scale.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linear {
    from: f64,
    to: f64,
    start_px: f64,
    end_px: f64,
}

impl Linear {
    /// Maps `from` to `start_px` and `to` to `end_px`.
    pub(super) const fn new(from: f64, to: f64, start_px: f64, end_px: f64) -> Self {
        Self { from, to, start_px, end_px }
    }

    pub(super) fn px(&self, value: f64) -> f64 {
        self.start_px + (value - self.from) / (self.to - self.from) * (self.end_px - self.start_px)
    }

    /// At most about `count` round values, with as many decimals as it takes to tell them apart.
    pub(super) fn ticks(&self, count: u32) -> Vec<(f64, String)> {
        let step = round_step((self.to - self.from) / f64::from(count));
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let (first, last) = ((self.from / step).ceil() as i64, (self.to / step).floor() as i64);
        (first..=last)
            .map(|n| {
                let value = n as f64 * step;
                (value, format!("{value:.decimals$}").replace('-', "−"))
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
#[derive(Debug, Clone, Copy)]
pub(super) struct Log {
    decades: (i32, i32),
    linear: Linear,
}

impl Log {
    /// Maps ten to the power of each end of `decades` to `start_px` and `end_px`.
    pub(super) fn new(decades: RangeInclusive<i32>, start_px: f64, end_px: f64) -> Self {
        let (from, to) = decades.into_inner();
        Self { decades: (from, to), linear: Linear::new(f64::from(from), f64::from(to), start_px, end_px) }
    }

    /// Position of `value`; one outside the decades is at the nearer end.
    pub(super) fn px(&self, value: f64) -> f64 {
        let exponent = value.log10().max(f64::from(self.decades.0)).min(f64::from(self.decades.1));
        self.linear.px(exponent)
    }

    /// The decades.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        (self.decades.0..=self.decades.1)
            .map(|exponent| (10_f64.powi(exponent), decade_label(exponent)))
            .collect()
    }
}

fn decade_label(exponent: i32) -> String {
    match exponent {
        ..0 => format!("{:.*}", exponent.unsigned_abs() as usize, 10_f64.powi(exponent)),
        0..=2 => format!("{}", 10_u32.pow(exponent.unsigned_abs())),
        3..=5 => format!("{}k", 10_u32.pow(exponent.unsigned_abs() - 3)),
        6..=8 => format!("{}M", 10_u32.pow(exponent.unsigned_abs() - 6)),
        _ => format!("1e{exponent}"),
    }
}

/// The whole decades around `min..=max`, at least one; both must be positive.
pub(super) fn decades(min: f64, max: f64) -> RangeInclusive<i32> {
    let from = min.log10().floor() as i32;
    from..=(max.log10().ceil() as i32).max(from + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[(f64, String)]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let scale = Linear::new(-0.31, 0.62, 100.0, 0.0);
        assert_eq!(labels(&scale.ticks(5)), ["−0.2", "0.0", "0.2", "0.4", "0.6"]);
        assert_eq!(labels(&Linear::new(0.0, 10.0, 0.0, 1.0).ticks(10)).len(), 11);
        assert_eq!(scale.px(-0.31), 100.0);
        assert_eq!(scale.px(0.62), 0.0);
    }

    #[test]
    fn log_ticks_are_the_decades() {
        let scale = Log::new(decades(0.25, 3_000.0), 0.0, 50.0);
        assert_eq!(labels(&scale.ticks()), ["0.1", "1", "10", "100", "1k", "10k"]);
        assert_eq!(scale.px(1.0), 10.0);
        assert_eq!(scale.px(0.0), 0.0);
        assert_eq!(scale.px(1e9), 50.0);
    }
}

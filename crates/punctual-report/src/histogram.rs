//! A histogram of durations, with two logarithmic axes, because one late job among millions
//! matters.
//!
//! ```
//! use punctual_report::chart::Size;
//! use punctual_report::histogram::Histogram;
//!
//! // Upper bound of each bucket in nanoseconds, and its count.
//! let responses = Histogram::new([(2_000, 9_998), (64_000, 2)], 61_700);
//! let size = Size { class: "histogram", width: 430.0, height: 160.0 };
//! let drawing = responses.draw("bar", &Histogram::decades([&responses]), size, "Response times");
//! assert!(drawing.contains("max 61.7 µs"));
//! ```

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::chart::{Plot, Size};
use crate::format::{format_count, format_counted, format_nanos};
use crate::scale::{Log, decade_of_time, decades};
use crate::svg::Mark;

/// Bars per decade.
const BARS: f64 = 10.0;

/// Shorter times are drawn as this time, in ns; zeros have a separate bar.
const MIN_TIME: f64 = 10.0;

/// The width of the bar of zeros, and its distance from the scale.
const ZERO: f64 = 20.0;
const APART: f64 = 26.0;

/// Buckets of durations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<(u64, u64)>,
    max: u64,
}

impl Histogram {
    /// Creates a histogram from the upper bound in nanoseconds and the count of each bucket, and
    /// the longest duration. The last bucket may extend far beyond it.
    pub fn new(buckets: impl IntoIterator<Item = (u64, u64)>, max: u64) -> Self {
        let occupied = buckets.into_iter().filter(|&(_, count)| count > 0);
        Self { buckets: occupied.map(|(upper, count)| (upper.min(max), count)).collect(), max }
    }

    /// Returns the decades of nanoseconds that cover all histograms, so that their drawings can be
    /// compared.
    pub fn decades<'a>(all: impl IntoIterator<Item = &'a Self>) -> RangeInclusive<i32> {
        let (mut shortest, mut longest) = (f64::INFINITY, MIN_TIME);
        for Self { buckets, max } in all {
            let times = buckets.iter().map(|bucket| bucket.0).filter(|&ns| ns > 0);
            shortest = times.fold(shortest, |shortest, ns| shortest.min((ns as f64).max(MIN_TIME)));
            longest = longest.max(*max as f64);
        }
        decades(shortest.min(longest), longest)
    }

    /// Draws the histogram over these decades, with bars of that class. Screen readers read `label`
    /// instead of it.
    #[must_use]
    pub fn draw(&self, class: &str, decades_ns: &RangeInclusive<i32>, size: Size, label: &str) -> String {
        let mut plot = Plot::new(size);
        let (zeros, bars) = self.bars(f64::from(*decades_ns.start()) * BARS);
        let tallest = bars.values().copied().chain([zeros]).max().unwrap_or(0).max(1);
        let bottom = plot.bottom;
        // A count of one has no height on a logarithmic scale; this makes it visible.
        let y = Log::new(decades(1.0, tallest as f64), bottom - 6.0, plot.top);
        let every = y.exponents().count() / 5 + 1;
        let at = |exponent: i32| 10_f64.powi(exponent);
        let counts = y.exponents().step_by(every).map(at);
        plot.y_axis("jobs", counts.map(|count| (y.at(count), format_count(count as u64))));
        let first = if zeros > 0 { plot.left + ZERO + APART } else { plot.left };
        let x = Log::new(decades_ns.clone(), first, plot.right);
        let mut bar = |from: f64, to: f64, count: u64, what: &str| {
            let (at, size) = ((from + 0.5, y.at(count as f64)), (to - from - 1.0).max(1.0));
            let mark = Mark::titled(format!("{}: {what}", format_counted(count, "job"))).data("n", count);
            plot.svg.rect(class, at, (size, bottom - at.1), &mark);
        };
        if zeros > 0 {
            bar(plot.left + 4.0, plot.left + ZERO - 2.0, zeros, "no time at all");
        }
        for (&number, &count) in &bars {
            let edge = |number: i32| 10_f64.powf(f64::from(number) / BARS);
            let (low, high) = (edge(number), edge(number + 1));
            bar(x.at(low), x.at(high), count, &format!("{} to {}", format_nanos(low), format_nanos(high)));
        }
        if zeros > 0 {
            plot.svg.line("axis", (plot.left, bottom), (plot.left + ZERO, bottom));
            let middle = (plot.left + ZERO / 2.0 + 1.0, bottom + 17.0);
            plot.svg.text("tick", middle, crate::svg::Anchor::Middle, "0");
        }
        plot.x_axis(first, x.exponents().map(|exponent| (x.at(at(exponent)), decade_of_time(exponent))));
        if self.max > 0 {
            let max = x.at((self.max as f64).max(MIN_TIME));
            plot.svg.line("max", (max, plot.top - 6.0), (max, bottom));
            plot.max_label(max, &format!("max {}", format_nanos(self.max as f64)));
        }
        plot.finish(&Mark::titled(label))
    }

    /// Returns the count of zeros, and the count of each bar, by its number from 1 ns on; bars
    /// below number `lowest` count toward that one.
    fn bars(&self, lowest: f64) -> (u64, BTreeMap<i32, u64>) {
        let (mut zeros, mut bars) = (0_u64, BTreeMap::<i32, u64>::new());
        for &(upper, count) in &self.buckets {
            let bar = match upper {
                0 => &mut zeros,
                ns => {
                    // A bar includes its upper bound, as a bucket does.
                    let number = ((ns as f64).max(MIN_TIME).log10() * BARS - 1e-9).ceil() - 1.0;
                    bars.entry(number.max(lowest) as i32).or_default()
                }
            };
            *bar = bar.saturating_add(count);
        }
        (zeros, bars)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(buckets: &[(u64, u64)], max: u64) -> Vec<u64> {
        let histogram = Histogram::new(buckets.iter().copied(), max);
        let size = Size { class: "wide", width: 400.0, height: 150.0 };
        let drawing = histogram.draw("bar", &Histogram::decades([&histogram]), size, "R");
        assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
        let counts = drawing.split("data-n=\"").skip(1);
        counts.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn draws_every_bucket() {
        let buckets = [(0, 40), (1_500, 1_000), (2_500, 2), (3_000, 0), (50_000, 1), (u64::MAX, 1)];
        assert_eq!(drawn(&buckets, 12_345_678), [40, 1_000, 2, 1, 1]);
        let spread: Vec<(u64, u64)> = (1..3_000).map(|n| (n * 977, n % 3)).collect();
        let all = spread.iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(drawn(&spread, 3_000_000).iter().sum::<u64>(), all);
    }

    #[test]
    fn groups_counts_of_the_axis_by_thousands() {
        let histogram = Histogram::new([(1_500, 700_000)], 1_500);
        let size = Size { class: "wide", width: 400.0, height: 150.0 };
        let drawing = histogram.draw("bar", &Histogram::decades([&histogram]), size, "R");
        for label in ["1", "100", "10 000", "1 000 000"] {
            assert!(drawing.contains(&format!(">{label}</text>")), "{label}: {drawing}");
        }
    }

    #[test]
    fn draws_empty_zero_and_infinite_values() {
        assert!(drawn(&[], 0).is_empty());
        assert_eq!(drawn(&[(0, 7)], 0), [7]);
        assert_eq!(drawn(&[(1, 1), (u64::MAX, u64::MAX)], u64::MAX), [1, u64::MAX]);
    }

    #[test]
    fn covers_shortest_and_longest_in_common_decades() {
        let fast = Histogram::new([(2_000, 3), (9_000, 1)], 9_000);
        let slow = Histogram::new([(250_000, 1)], 240_000);
        assert_eq!(Histogram::decades([&fast, &slow]), 3..=6);
        assert_eq!(Histogram::decades([]), 1..=2);
    }
}

//! A histogram of durations, logarithmic both ways, because one late job among millions is what matters.

use super::data::Distribution;
use super::scale::{Log, decades};
use super::svg::{Anchor, Svg};
use punctual_html::Micros;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// Bars in a decade. The buckets of a distribution are gathered into these by their upper bounds.
const BARS_PER_DECADE: f64 = 10.0;

/// Durations below are shown as if they were this long, in microseconds.
const SHORTEST_US: f64 = 0.1;

const LEFT: f64 = 44.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 36.0;

/// The decades of microseconds that hold all of `distributions`, so that their histograms can be compared.
pub(super) fn common_decades<'a>(
    distributions: impl Iterator<Item = &'a Distribution>,
) -> RangeInclusive<i32> {
    let (mut shortest_us, mut longest_us) = (f64::INFINITY, SHORTEST_US);
    for distribution in distributions {
        for (upper_ns, _) in occupied(distribution) {
            shortest_us = shortest_us.min(micros(upper_ns).max(SHORTEST_US));
        }
        longest_us = longest_us.max(micros(distribution.max_ns));
    }
    decades(shortest_us.min(longest_us), longest_us)
}

/// Draws the histogram over the `decades` of microseconds, to be shown where the style sheet shows `class`.
pub(super) fn draw(
    distribution: &Distribution,
    label: &str,
    decades_us: &RangeInclusive<i32>,
    (class, width, height): (&str, f64, f64),
    out: &mut impl fmt::Write,
) -> fmt::Result {
    let (right, bottom) = (width - RIGHT, height - BOTTOM);
    let mut bars: BTreeMap<i32, u64> = BTreeMap::new();
    for (upper_ns, count) in occupied(distribution) {
        let exponent = micros(upper_ns).max(SHORTEST_US).log10();
        // A bar holds the values up to and including its end, as a bucket does.
        let bar = (exponent * BARS_PER_DECADE - 1e-9).ceil() as i32 - 1;
        *bars.entry(bar.max(decades_us.start() * BARS_PER_DECADE as i32)).or_default() += count;
    }
    let tallest = bars.values().copied().max().unwrap_or(1);

    let x = Log::new(decades_us.clone(), LEFT, right);
    let y_decades = decades(1.0, tallest as f64);
    // A count of one is no height on a logarithmic scale; this much makes it a bar.
    let foot = 5.0;
    let y = Log::new(y_decades.clone(), bottom - foot, TOP);

    let mut svg = Svg::new(width, height);
    let every = (y_decades.end() / 4 + 1) as usize;
    for (value, text) in y.ticks().into_iter().step_by(every) {
        let at = y.px(value);
        svg.line("grid", (LEFT, at), (right, at))?;
        svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &text)?;
    }
    for (bar, count) in bars {
        let edge = |bar: i32| x.px(10_f64.powf(f64::from(bar) / BARS_PER_DECADE));
        let (from, to, top) = (edge(bar), edge(bar + 1), y.px(count as f64));
        svg.rect("bar", (from + 0.5, top), ((to - from - 1.0).max(1.0), bottom - top))?;
    }
    svg.line("axis", (LEFT, bottom), (right, bottom))?;
    for (value, text) in x.ticks() {
        let at = x.px(value);
        svg.line("axis", (at, bottom), (at, bottom + 4.0))?;
        svg.text("tick", (at, bottom + 17.0), Anchor::Middle, &text)?;
    }
    svg.text("title", (LEFT - 8.0, 12.0), Anchor::End, "jobs")?;
    svg.text("title", (right, height - 4.0), Anchor::End, "µs")?;

    let at = x.px(micros(distribution.max_ns).max(SHORTEST_US));
    svg.line("max", (at, TOP - 4.0), (at, bottom))?;
    let text = format!("max {} µs", Micros(distribution.max_ns));
    let (offset, anchor) = if at > 0.5 * (LEFT + right) { (3.0, Anchor::End) } else { (-3.0, Anchor::Start) };
    svg.text("max-label", (at + offset, 12.0), anchor, &text)?;
    svg.finish(class, label, out)
}

fn occupied(distribution: &Distribution) -> impl Iterator<Item = (u64, u64)> {
    // The last bucket may reach far beyond the longest duration in it.
    let max_ns = distribution.max_ns;
    let occupied = distribution.buckets.iter().filter(|(_, count)| *count > 0);
    occupied.map(move |&(upper_ns, count)| (upper_ns.min(max_ns), count))
}

fn micros(ns: u64) -> f64 {
    ns as f64 * 1e-3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(distribution: &Distribution) -> String {
        let decades = common_decades([distribution].into_iter());
        let mut out = String::new();
        draw(distribution, "jitter", &decades, ("wide", 400.0, 150.0), &mut out).unwrap();
        assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
        out
    }

    #[test]
    fn every_bucket_is_part_of_a_bar() {
        let buckets = vec![(1_500, 5), (2_500, 2), (50_000, 1), (u64::MAX, 1)];
        let drawing = drawn(&Distribution { max_ns: 70_000, buckets, ..Distribution::default() });
        assert_eq!(drawing.matches("class=\"bar\"").count(), 4);
        assert!(drawing.contains("max 70.0 µs"));
    }

    #[test]
    fn nothing_and_zero_are_drawn_too() {
        drawn(&Distribution::default());
        let zeros = drawn(&Distribution { buckets: vec![(0, 1_000)], ..Distribution::default() });
        assert_eq!(zeros.matches("class=\"bar\"").count(), 1);
        drawn(&Distribution {
            max_ns: u64::MAX,
            buckets: vec![(u64::MAX, u64::MAX)],
            ..Distribution::default()
        });
    }

    #[test]
    fn the_common_range_is_whole_decades() {
        let fast =
            Distribution { max_ns: 9_000, buckets: vec![(2_000, 3), (9_000, 1)], ..Distribution::default() };
        let slow = Distribution { max_ns: 240_000, buckets: vec![(250_000, 1)], ..Distribution::default() };
        assert_eq!(common_decades([&fast, &slow].into_iter()), 0..=3);
    }
}

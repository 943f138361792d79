//! A histogram of a term, logarithmic both ways, because one late job among millions is what matters.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use punctual_html::Grouped;

use super::scale::{Log, decade_of_counts, decade_of_time, decades};
use super::svg::{Anchor, Svg};
use crate::explain;
use crate::stats::Quantity;

/// Bars in a decade.
const BARS: f64 = 10.0;

/// Times below are drawn as if they were this long, in ns; those that are no time at all have a bar of their own.
const SHORTEST: f64 = 10.0;

const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 160.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 24.0;
/// The bar of zeros lies left of the scale.
const ZERO: f64 = 20.0;
const APART: f64 = 26.0;

/// The decades of ns that hold all of those, so that the histograms of a task can be compared.
pub(super) fn common_decades<'a>(quantities: impl Iterator<Item = &'a Quantity>) -> RangeInclusive<i32> {
    let (mut shortest, mut longest) = (f64::INFINITY, SHORTEST);
    for quantity in quantities {
        let max = quantity.summary().max;
        let times = quantity.buckets().map(|(upper, _)| upper.min(max)).filter(|&ns| ns > 0);
        shortest = times.fold(shortest, |shortest, ns| shortest.min((ns as f64).max(SHORTEST)));
        longest = longest.max(max as f64);
    }
    decades(shortest.min(longest), longest)
}

/// Draws it over the decades.
pub(super) fn draw(
    quantity: &Quantity,
    class: &str,
    decades_ns: &RangeInclusive<i32>,
    label: &str,
) -> String {
    let max = quantity.summary().max;
    let mut zeros = 0;
    let mut bars: BTreeMap<i32, u64> = BTreeMap::new();
    let lowest = f64::from(*decades_ns.start()) * BARS;
    for (upper, count) in quantity.buckets() {
        // The last bucket may reach far beyond the longest time in it.
        match upper.min(max) {
            0 => zeros += count,
            ns => {
                // A bar holds the times up to and including its end, as a bucket does.
                let bar = ((ns as f64).max(SHORTEST).log10() * BARS - 1e-9).ceil() - 1.0;
                *bars.entry(bar.max(lowest) as i32).or_default() += count;
            }
        }
    }
    let tallest = bars.values().copied().chain([zeros]).max().unwrap_or(0).max(1);
    let bottom = HEIGHT - BOTTOM;
    let x = Log::new(decades_ns.clone(), LEFT + ZERO + APART, WIDTH - RIGHT);
    // A count of one is no height on a logarithmic scale; this much makes it a bar.
    let y = Log::new(decades(1.0, tallest as f64), bottom - 6.0, TOP);

    let mut svg = Svg::new(WIDTH);
    let every = (y.exponents().count() / 5 + 1).max(1);
    for exponent in y.exponents().step_by(every) {
        let at = y.at(10_f64.powi(exponent));
        svg.line("grid", (LEFT, at), (WIDTH - RIGHT, at));
        svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &decade_of_counts(exponent));
    }
    svg.text("tick", (LEFT - 8.0, 12.0), Anchor::End, "jobs");
    let of = |count, text: &str| format!("{} jobs: {text}", Grouped(count));
    let mut bar = |from: f64, to: f64, count: u64, text: &str| {
        let top = y.at(count as f64);
        let size = ((to - from - 1.0).max(1.0), bottom - top);
        svg.rect(class, (from + 0.5, top), size, &format!(" data-n=\"{count}\""), &of(count, text));
    };
    if zeros > 0 {
        bar(LEFT + 4.0, LEFT + ZERO - 2.0, zeros, "no time at all");
    }
    for (&number, &count) in &bars {
        let edge = |number: i32| 10_f64.powf(f64::from(number) / BARS);
        let (low, high) = (edge(number), edge(number + 1));
        let text = format!("{} to {}", explain::time(low as u64), explain::time(high as u64));
        bar(x.at(low), x.at(high), count, &text);
    }
    svg.line("axis", (LEFT + ZERO + APART, bottom), (WIDTH - RIGHT, bottom));
    if zeros > 0 {
        svg.line("axis", (LEFT, bottom), (LEFT + ZERO, bottom));
        svg.text("tick", (LEFT + ZERO / 2.0 + 1.0, bottom + 17.0), Anchor::Middle, "0");
    }
    let every = x.exponents().count() / 7 + 1;
    for exponent in x.exponents() {
        let at = x.at(10_f64.powi(exponent));
        svg.line("axis", (at, bottom), (at, bottom + 4.0));
        if ((exponent - x.exponents().start()) as usize).is_multiple_of(every) {
            let anchor = if at > WIDTH - RIGHT - 20.0 { Anchor::End } else { Anchor::Middle };
            let at = if at > WIDTH - RIGHT - 20.0 { WIDTH - 1.0 } else { at };
            svg.text("tick", (at, bottom + 17.0), anchor, &decade_of_time(exponent));
        }
    }
    if max > 0 {
        let at = x.at((max as f64).max(SHORTEST));
        svg.line("max", (at, TOP - 6.0), (at, bottom));
        let (at, anchor) = if at > 0.5 * WIDTH { (at + 3.0, Anchor::End) } else { (at - 3.0, Anchor::Start) };
        svg.text("max-label", (at, 13.0), anchor, &format!("max {}", explain::time(max)));
    }
    svg.finish("histogram", HEIGHT, "", label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Value;

    fn quantity(values: &[(u64, u64)]) -> Quantity {
        let mut quantity = Quantity::default();
        for &(ns, count) in values {
            (0..count).for_each(|_| quantity.record(Value::Exact(ns)));
        }
        quantity
    }

    fn drawn(quantity: &Quantity) -> Vec<u64> {
        let drawing = draw(quantity, "bar", &common_decades([quantity].into_iter()), "R");
        assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
        let counts = drawing.split("data-n=\"").skip(1);
        counts.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn every_job_is_in_a_bar() {
        let values = [(0, 40), (1_500, 1_000), (2_500, 2), (50_000, 1), (12_345_678, 1)];
        assert_eq!(drawn(&quantity(&values)), [40, 1_000, 2, 1, 1]);
        let spread: Vec<(u64, u64)> = (1..3_000).map(|n| (n * 977, n % 3)).collect();
        let jobs = spread.iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(drawn(&quantity(&spread)).iter().sum::<u64>(), jobs);
    }

    #[test]
    fn nothing_zero_and_the_endless_are_drawn_too() {
        assert!(drawn(&quantity(&[])).is_empty());
        assert_eq!(drawn(&quantity(&[(0, 7)])), [7]);
        assert_eq!(drawn(&quantity(&[(u64::MAX, 1), (1, 1)])), [1, 1]);
    }
}

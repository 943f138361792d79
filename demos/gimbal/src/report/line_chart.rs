//! A chart of series over time.

use super::scale::Linear;
use super::svg::{Anchor, Svg, decimate};
use std::fmt;
use std::ops::RangeInclusive;

/// A series and the class that gives it its looks; points are (time in nanoseconds, value).
pub(super) struct Series<'a> {
    pub(super) class: &'static str,
    pub(super) points: &'a [(u64, f64)],
}

/// What to draw.
pub(super) struct LineChart<'a> {
    /// Read out instead of the chart.
    pub(super) label: String,
    /// What the vertical axis shows, with its unit.
    pub(super) y_title: &'static str,
    /// Factor from the values of the series to that unit.
    pub(super) y_factor: f64,
    /// The part of time to show, in nanoseconds.
    pub(super) span_ns: RangeInclusive<u64>,
    /// From back to front.
    pub(super) series: Vec<Series<'a>>,
}

const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 36.0;

impl LineChart<'_> {
    /// Draws the chart in the size given, to be shown where the style sheet shows `class`.
    pub(super) fn draw(
        &self,
        class: &str,
        width: f64,
        height: f64,
        out: &mut impl fmt::Write,
    ) -> fmt::Result {
        let (right, bottom) = (width - RIGHT, height - BOTTOM);
        let (start_s, end_s) = (seconds(*self.span_ns.start()), seconds(*self.span_ns.end()));
        let x = Linear::new(start_s, end_s.max(start_s + 1e-9), LEFT, right);
        let (low, high) = self.y_range();
        let y = Linear::new(low, high, bottom, TOP);

        let mut svg = Svg::new(width, height);
        for (value, label) in y.ticks(((bottom - TOP) / 30.0) as u32 + 1) {
            let at = y.px(value);
            svg.line(if value == 0.0 { "grid zero" } else { "grid" }, (LEFT, at), (right, at))?;
            svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &label)?;
        }
        for (value, label) in x.ticks(((right - LEFT) / 90.0) as u32 + 1) {
            let at = x.px(value);
            svg.line("axis", (at, bottom), (at, bottom + 4.0))?;
            svg.text("tick", (at, bottom + 17.0), Anchor::Middle, &label)?;
        }
        svg.line("axis", (LEFT, bottom), (right, bottom))?;
        svg.text("title", (LEFT, 12.0), Anchor::Start, self.y_title)?;
        svg.text("title", (right, height - 4.0), Anchor::End, "time in s")?;
        for series in &self.series {
            let pixels =
                self.visible(series).map(|&(t_ns, value)| (x.px(seconds(t_ns)), y.px(value * self.y_factor)));
            svg.polyline(series.class, &decimate(pixels))?;
        }
        svg.finish(class, &self.label, out)
    }

    fn visible<'a>(&self, series: &Series<'a>) -> impl Iterator<Item = &'a (u64, f64)> {
        let span_ns = self.span_ns.clone();
        series.points.iter().filter(move |(t_ns, value)| span_ns.contains(t_ns) && value.is_finite())
    }

    /// The range of all that is visible, with some air; never empty.
    fn y_range(&self) -> (f64, f64) {
        let values =
            self.series.iter().flat_map(|series| self.visible(series)).map(|point| point.1 * self.y_factor);
        let (low, high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (v.min(low), v.max(high)));
        if low > high {
            return (-1.0, 1.0);
        }
        let air = if high > low { 0.06 * (high - low) } else { 1.0 };
        (low - air, high + air)
    }
}

fn seconds(t_ns: u64) -> f64 {
    t_ns as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degenerate_series_still_make_a_chart() {
        for points in [&[][..], &[(0, 1.0)], &[(0, f64::NAN), (5, f64::INFINITY)]] {
            let series = vec![Series { class: "run", points }];
            let chart =
                LineChart { label: String::new(), y_title: "rad", y_factor: 1.0, span_ns: 0..=0, series };
            let mut out = String::new();
            chart.draw("wide", 400.0, 200.0, &mut out).unwrap();
            assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
        }
    }
}

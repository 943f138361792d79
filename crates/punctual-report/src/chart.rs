//! Charts: a plot area with axes, and series over time.
//!
//! ```
//! use punctual_report::chart::{LineChart, Series, Size};
//!
//! let points: Vec<(u64, f64)> = (0..1_000_000).map(|ms| (ms * 1_000_000, (ms as f64 * 1e-4).sin())).collect();
//! let chart = LineChart {
//!     label: "An angle over time".into(),
//!     y_title: "angle in mrad",
//!     y_factor: 1e3,
//!     span_ns: 0..=1_000_000_000_000,
//!     series: vec![Series { class: "run", points: &points }],
//! };
//! let drawing = chart.draw(Size { class: "wide", width: 1080.0, height: 240.0 });
//! assert!(drawing.contains("angle in mrad") && drawing.len() < 100_000);
//! ```

use std::ops::RangeInclusive;

use crate::scale::{Linear, Tick};
use crate::svg::{Anchor, Mark, Svg, width};

/// The size of a drawing, and the style-sheet class that determines where it is shown.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// The class, such as `wide` or `narrow`.
    pub class: &'static str,
    /// In drawing units.
    pub width: f64,
    /// In drawing units.
    pub height: f64,
}

/// A drawing with a plot area and space for axes around it.
#[derive(Debug, Clone)]
pub struct Plot {
    /// The elements.
    pub svg: Svg,
    /// The edges of the plot area.
    pub left: f64,
    /// See `left`.
    pub right: f64,
    /// See `left`.
    pub top: f64,
    /// See `left`; the position of the horizontal axis.
    pub bottom: f64,
    size: Size,
}

impl Plot {
    /// Returns an empty plot.
    #[must_use]
    pub fn new(size: Size) -> Self {
        let (right, bottom) = (size.width - 14.0, size.height - 26.0);
        Self { svg: Svg::new(size.width), left: 52.0, right, top: 24.0, bottom, size }
    }

    /// Adds a line across the plot area, with a label, at each of the vertical positions, and the
    /// axis title above them. The labels may move `left`: call it before the horizontal scale is
    /// made.
    pub fn y_axis(&mut self, title: &str, ticks: impl IntoIterator<Item = Tick>) {
        let ticks: Vec<Tick> = ticks.into_iter().collect();
        // Long labels move the plot area instead of leaving the drawing.
        let widest = ticks.iter().map(|(_, label)| width(label)).fold(0.0, f64::max);
        self.left = self.left.max(widest + 8.0);
        for (at, label) in ticks {
            self.svg.line("grid", (self.left, at), (self.right, at));
            self.svg.text("tick", (self.left - 8.0, at + 4.0), Anchor::End, &label);
        }
        let (at, anchor) =
            if width(title) > self.left { (0.0, Anchor::Start) } else { (self.left - 8.0, Anchor::End) };
        self.svg.text("tick", (at, 12.0), anchor, title);
    }

    /// Adds the horizontal axis, starting at `from`, with a tick mark at each of the horizontal
    /// positions, and labels where they fit.
    pub fn x_axis(&mut self, from: f64, ticks: impl IntoIterator<Item = Tick>) {
        let bottom = self.bottom;
        self.svg.line("axis", (from, bottom), (self.right, bottom));
        let mut free = 0.0;
        for (at, label) in ticks {
            self.svg.line("axis", (at, bottom), (at, bottom + 4.0));
            let half = width(&label) / 2.0;
            let (text_at, anchor) = match at + half + 2.0 > self.size.width {
                true => (self.size.width, Anchor::End),
                false => (at, Anchor::Middle),
            };
            let begin = (at - half).min(self.size.width - 2.0 * half);
            if begin >= free {
                self.svg.text("tick", (text_at, bottom + 17.0), anchor, &label);
                free = begin + 2.0 * half + 6.0;
            }
        }
    }

    /// Adds the vertical axis of a scale between the bottom and the top, labeled in multiples of
    /// `unit`. It may move `left`, as [`y_axis`](Self::y_axis) does.
    pub fn y_scale(&mut self, title: &str, scale: &Linear, unit: f64) {
        let ticks = scale.ticks(((self.bottom - self.top) / 30.0) as u32 + 1, unit);
        self.y_axis(title, ticks.into_iter().map(|(value, label)| (scale.at(value), label)));
    }

    /// Adds the horizontal axis of a scale between the left and the right, labeled in multiples of
    /// `unit`, whose name is part of the last label.
    pub fn x_scale(&mut self, scale: &Linear, (name, unit): (&str, f64)) {
        let mut ticks = scale.ticks((((self.right - self.left) / 90.0) as u32 + 1).max(4), unit);
        if let Some((_, last)) = ticks.last_mut() {
            *last = format!("{last} {name}");
        }
        self.x_axis(self.left, ticks.into_iter().map(|(value, label)| (scale.at(value), label)));
    }

    /// Adds a label for the maximum, which is at `x`, above the plot area.
    pub fn max_label(&mut self, x: f64, text: &str) {
        let is_right = x > 0.5 * self.size.width;
        let (at, anchor) = if is_right { (x + 3.0, Anchor::End) } else { (x - 3.0, Anchor::Start) };
        self.svg.text("max-label", (at, 13.0), anchor, text);
    }

    /// Returns the finished drawing; screen readers read the title of `mark` instead of it.
    #[must_use]
    pub fn finish(self, mark: &Mark) -> String {
        self.svg.finish(self.size.class, self.size.height, mark)
    }
}

/// Points with their class.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    /// A style-sheet class.
    pub class: &'static str,
    /// Time in nanoseconds and value, ordered by time.
    pub points: &'a [(u64, f64)],
}

/// Series over time, as lines.
#[derive(Debug, Clone)]
pub struct LineChart<'a> {
    /// The accessible name of the chart.
    pub label: String,
    /// The title of the vertical axis, with its unit.
    pub y_title: &'static str,
    /// The factor from the values of the series to that unit.
    pub y_factor: f64,
    /// The time range to show, in nanoseconds.
    pub span_ns: RangeInclusive<u64>,
    /// From back to front.
    pub series: Vec<Series<'a>>,
}

impl LineChart<'_> {
    /// Draws the chart. In every column of one unit, the lowest and the highest value are drawn, so
    /// no spike is lost. Values that are not finite are skipped.
    #[must_use]
    pub fn draw(&self, size: Size) -> String {
        let mut plot = Plot::new(size);
        let (start_s, end_s) = (seconds(*self.span_ns.start()), seconds(*self.span_ns.end()));
        let (low, high) = self.y_range();
        let y = Linear::new(low, high, plot.bottom, plot.top);
        plot.y_scale(self.y_title, &y, 1.0);
        let x = Linear::new(start_s, end_s, plot.left, plot.right);
        plot.x_scale(&x, ("s", 1.0));
        for series in &self.series {
            let at = |&(t_ns, value): &(u64, f64)| (x.at(seconds(t_ns)), y.at(self.y_factor * value));
            plot.svg.polyline(series.class, &decimate(self.visible(series).map(at)));
        }
        plot.finish(&Mark::titled(self.label.as_str()))
    }

    fn visible<'a>(&self, series: &Series<'a>) -> impl Iterator<Item = &'a (u64, f64)> {
        let span_ns = self.span_ns.clone();
        series.points.iter().filter(move |(t_ns, value)| span_ns.contains(t_ns) && value.is_finite())
    }

    /// Returns the range of the visible values, with a margin; never empty.
    fn y_range(&self) -> (f64, f64) {
        let values = self.series.iter().flat_map(|series| self.visible(series));
        let values = values.map(|point| point.1 * self.y_factor);
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

/// Reduces a series to its visible points: `points` are positions, ordered by x.
///
/// Keeps the first, lowest, highest and last point of each column of one unit, so no spike is lost
/// regardless of the number of points in the column. Drops points in the middle of a level stretch.
fn decimate(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut decimated: Vec<(f64, f64)> = Vec::new();
    let mut column: Vec<(f64, f64)> = Vec::new();
    for point in points {
        if column.first().is_some_and(|first| first.0.floor() != point.0.floor()) {
            flush(&mut column, &mut decimated);
        }
        column.push(point);
    }
    flush(&mut column, &mut decimated);
    decimated
}

fn flush(column: &mut Vec<(f64, f64)>, decimated: &mut Vec<(f64, f64)>) {
    let by_y = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
    let (lowest, highest) = ((0..column.len()).min_by(by_y), (0..column.len()).max_by(by_y));
    let mut indices = [Some(0), lowest, highest, column.len().checked_sub(1)];
    indices.sort_unstable();
    let mut last = None;
    for index in indices.into_iter().flatten().filter(|&index| index < column.len()) {
        if last.replace(index) == Some(index) {
            continue;
        }
        let point = column[index];
        if let [.., before, between] = decimated[..]
            && before.1 == point.1
            && between.1 == point.1
        {
            decimated.pop();
        }
        decimated.push(point);
    }
    column.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_single_spike_among_many_points() {
        let spiky = (0..100_000).map(|n| (f64::from(n) / 1_000.0, if n == 51_234 { 80.0 } else { 10.0 }));
        let decimated = decimate(spiky);
        assert!(decimated.contains(&(51.234, 80.0)));
        assert!(decimated.len() < 10, "level stretches need only their ends");
        assert_eq!((decimated[0].0, decimated[decimated.len() - 1].0), (0.0, 99.999));
    }

    #[test]
    fn keeps_extremes_of_each_column_in_order() {
        let points = [(0.0, 5.0), (0.1, 9.0), (0.2, 6.0), (0.3, 1.0), (0.4, 4.0), (1.0, 3.0)];
        let expected = [(0.0, 5.0), (0.1, 9.0), (0.3, 1.0), (0.4, 4.0), (1.0, 3.0)];
        assert_eq!(decimate(points.into_iter()), expected);
        assert_eq!(decimate(std::iter::empty()), []);
    }

    #[test]
    fn draws_chart_of_degenerate_series() {
        let points: [&[(u64, f64)]; 4] =
            [&[], &[(0, 1.0)], &[(0, f64::NAN), (5, f64::INFINITY)], &[(0, f64::MAX), (u64::MAX, f64::MIN)]];
        for (points, end) in points.into_iter().flat_map(|points| [(points, 0), (points, u64::MAX)]) {
            let series = vec![Series { class: "run", points }];
            let chart =
                LineChart { label: String::new(), y_title: "rad", y_factor: 1e6, span_ns: 0..=end, series };
            let drawing = chart.draw(Size { class: "wide", width: 400.0, height: 200.0 });
            assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
        }
    }

    #[test]
    fn keeps_long_labels_inside_the_drawing() {
        let mut plot = Plot::new(Size { class: "wide", width: 400.0, height: 200.0 });
        let y = Linear::new(-50_000_000.0, 50_000_000.0, plot.bottom, plot.top);
        plot.y_scale("µrad", &y, 1.0);
        assert!(plot.left - 8.0 >= width("−50 000 000"), "{}", plot.left);
    }

    #[test]
    fn keeps_axis_labels_apart() {
        let mut plot = Plot::new(Size { class: "wide", width: 200.0, height: 100.0 });
        plot.x_axis(0.0, (0..20).map(|n| (f64::from(n) * 10.0, format!("{n}00 µs"))));
        let drawing = plot.finish(&Mark::none());
        assert_eq!(drawing.matches("class=\"axis\"").count(), 21);
        let labels: Vec<&str> = drawing.split("<text").skip(1).collect();
        let shown = ["300 µs", "800 µs", "1400 µs"];
        assert!(
            labels.len() == 3 && labels.iter().zip(shown).all(|(label, text)| label.contains(text)),
            "{drawing}"
        );
    }
}

//! A term of every job over the time of the recording, as in figures 11 to 16 of the *Timeflow* paper.

use std::fmt::Write as _;

use super::scale::{Linear, unit};
use super::series::{Extremes, Series, Track};
use super::svg::{Anchor, Short, Svg};
use super::text::width;
use crate::explain;

const WIDTH: f64 = 640.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 24.0;

/// Jobs that are all alike are a line of this height.
const LOWEST: f64 = 2.5;

/// A track of a task's series, and how to draw it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chart<'a> {
    pub(super) series: &'a Series,
    pub(super) track: Track,
    /// The class that gives it its colour.
    pub(super) class: &'a str,
    /// What of the term it is, if it is not the whole.
    pub(super) part: &'a str,
    /// The vertical axis reaches so far at least, in ns.
    pub(super) reach: u64,
    pub(super) height: f64,
}

/// The height of a chart that is not part of another.
pub(super) const HEIGHT: f64 = 160.0;

/// Draws it over the span of the recording.
pub(super) fn draw(chart: &Chart<'_>, span: (u64, u64), label: &str) -> String {
    let Chart { series, track, class, part, reach, height } = *chart;
    let points = || series.of(track);
    let longest = |best: (u64, u64), (at, Extremes { max, .. })| if max > best.1 { (at, max) } else { best };
    let (at_max, max) = points().fold((0, 0), longest);
    let length = span.1.saturating_sub(span.0) as f64;
    let bottom = height - BOTTOM;
    let x = Linear::new(0.0, length, LEFT, WIDTH - RIGHT);
    let y = Linear::new(0.0, max.max(reach) as f64, bottom, TOP);
    // Where the middle of the slot is.
    let place = |at: u64| {
        let middle = at.saturating_add(series.width() / 2);
        x.at(middle.saturating_sub(span.0) as f64).clamp(LEFT, WIDTH - RIGHT)
    };

    let mut svg = Svg::new(WIDTH);
    let y_unit = unit(max.max(reach) as f64);
    for (value, text) in y.ticks((bottom - TOP) / 28.0, y_unit) {
        let at = y.at(value);
        svg.line("grid", (LEFT, at), (WIDTH - RIGHT, at));
        svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &text);
    }
    svg.text("tick", (LEFT - 8.0, 12.0), Anchor::End, y_unit.0);
    let x_unit = unit(length);
    let ticks = x.ticks(7.0, x_unit);
    for (index, (value, text)) in ticks.iter().enumerate() {
        let at = x.at(*value);
        svg.line("axis", (at, bottom), (at, bottom + 4.0));
        let text = if index + 1 == ticks.len() { format!("{text} {}", x_unit.0) } else { text.clone() };
        let edge = WIDTH - width(&text) / 2.0;
        let (at, anchor) = if at > edge { (WIDTH, Anchor::End) } else { (at, Anchor::Middle) };
        svg.text("tick", (at, bottom + 17.0), anchor, &text);
    }
    svg.line("axis", (LEFT, bottom), (WIDTH - RIGHT, bottom));
    // Slots are as wide as they are, but wide enough to be seen.
    let wide = (x.at(series.width() as f64) - x.at(0.0)).clamp(2.5, 9.0);
    let mut d = String::new();
    for (at, Extremes { min, max }) in points() {
        let (top, foot) = (y.at(max as f64), y.at(min as f64));
        let spare = ((LOWEST - (foot - top)) / 2.0).max(0.0);
        let _ = write!(d, "M{} {}v{}", Short(place(at)), Short(top - spare), Short(foot - top + 2.0 * spare));
    }
    if !d.is_empty() {
        svg.path_wide(class, wide, &d);
    }
    if max > 0 {
        let at = place(at_max);
        let when = explain::time(at_max.saturating_sub(span.0));
        svg.dot("longest", (at, y.at(max as f64)), 3.5, &format!("{} at {when}", explain::time(max)));
        let text = format!("{part}max {}", explain::time(max));
        let (at, anchor) = if at > 0.5 * WIDTH { (at + 3.0, Anchor::End) } else { (at - 3.0, Anchor::Start) };
        svg.text("max-label", (at, 13.0), anchor, &text);
    }
    svg.finish("series", height, &format!(" data-max=\"{max}\""), label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::{Actor, Job, Sort, Value, blank};

    fn job(end: u64, response: Value) -> Job {
        Job { end, response, ..blank(Actor::Thread(7), Sort::Thread) }
    }

    fn drawn(series: &Series, track: Track, span: (u64, u64)) -> String {
        draw(&Chart { series, track, class: "points R", part: "", reach: 0, height: HEIGHT }, span, "R")
    }

    #[test]
    fn the_greatest_is_drawn_at_the_top_and_jobs_without_a_value_are_not() {
        let mut series = Series::default();
        for n in 0..100_000 {
            let ns = if n == 51_234 { 80_000 } else { 10_000 };
            series.record(&job(n * 1_000_000, Value::Exact(ns)));
        }
        series.record(&job(100_000_000_000, Value::Unknown));
        let drawing = drawn(&series, Track::Response, (0, 100_000_000_000));
        assert!(drawing.contains("data-max=\"80000\"") && drawing.contains("max 80 µs"), "{drawing}");
        let path = drawing.split("class=\"points R\"").nth(1).unwrap().split(" d=\"").nth(1).unwrap();
        let points = path.split('"').next().unwrap().split('M').skip(1);
        let tops: Vec<&str> = points.map(|point| point.split([' ', 'v']).nth(1).unwrap()).collect();
        assert_eq!(tops.iter().filter(|&&top| top == "24").count(), 1);
        assert!(!drawn(&series, Track::Jitter, (0, 1)).contains("points R"));
    }

    #[test]
    fn a_span_of_nothing_and_the_greatest_numbers_are_drawn() {
        let mut series = Series::default();
        series.record(&job(u64::MAX, Value::Exact(u64::MAX)));
        for span in [(0, 0), (0, u64::MAX), (u64::MAX, 5)] {
            let drawing = drawn(&series, Track::Response, span);
            assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
        }
    }
}

//! A term of every job over the time of the recording, as in figures 11 to 16 of the *Timeflow* paper.

use std::fmt::Write as _;

use punctual_report::chart::{Plot, Size};
use punctual_report::format::{format_nanos, unit};
use punctual_report::scale::Linear;
use punctual_report::svg::{Mark, Short};

use super::series::{Extremes, Series, Track};

const WIDTH: f64 = 640.0;

/// Jobs that are all alike are a line of this height.
const MIN_HEIGHT: f64 = 2.5;

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
    let mut plot = Plot::new(Size { class: "series", width: WIDTH, height });
    let x = Linear::new(0.0, length, plot.left, plot.right);
    let y = Linear::new(0.0, max.max(reach) as f64, plot.bottom, plot.top);
    let (y_unit, x_unit) = (unit(max.max(reach) as f64), unit(length));
    plot.y_scale(y_unit.0, &y, y_unit.1);
    plot.x_scale(&x, x_unit);
    // Where the middle of the slot is.
    let place = |at: u64| {
        let middle = at.saturating_add(series.width() / 2);
        x.at(middle.saturating_sub(span.0) as f64).clamp(plot.left, plot.right)
    };
    // Slots are as wide as they are, but wide enough to be seen.
    let wide = (x.at(series.width() as f64) - x.at(0.0)).clamp(2.5, 9.0);
    let mut d = String::new();
    for (at, Extremes { min, max }) in points() {
        let (top, foot) = (y.at(max as f64), y.at(min as f64));
        let spare = ((MIN_HEIGHT - (foot - top)) / 2.0).max(0.0);
        let _ = write!(d, "M{} {}v{}", Short(place(at)), Short(top - spare), Short(foot - top + 2.0 * spare));
    }
    if !d.is_empty() {
        plot.svg.path_of_width(class, wide, &d);
    }
    if max > 0 {
        let (at, longest) = (place(at_max), format_nanos(max as f64));
        let title = format!("{longest} at {}", format_nanos(at_max.saturating_sub(span.0) as f64));
        plot.svg.dot("longest", (at, y.at(max as f64)), 3.5, &Mark::titled(title));
        plot.max_label(at, &format!("{part}max {longest}"));
    }
    plot.finish(&Mark::titled(label).data("max", max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::{Actor, Bounds, Job, JobKind};

    fn job(end: u64, response: Bounds) -> Job {
        Job { end, response, ..Job::empty(Actor::Thread(7), JobKind::Thread) }
    }

    fn drawn(series: &Series, track: Track, span: (u64, u64)) -> String {
        draw(&Chart { series, track, class: "points R", part: "", reach: 0, height: HEIGHT }, span, "R")
    }

    #[test]
    fn draws_maximum_at_top_and_skips_unknown_values() {
        let mut series = Series::default();
        for n in 0..100_000 {
            let ns = if n == 51_234 { 80_000 } else { 10_000 };
            series.record(&job(n * 1_000_000, Bounds::Exact(ns)));
        }
        series.record(&job(100_000_000_000, Bounds::Unknown));
        let drawing = drawn(&series, Track::Response, (0, 100_000_000_000));
        assert!(drawing.contains("data-max=\"80000\"") && drawing.contains("max 80.0 µs"), "{drawing}");
        let path = drawing.split("class=\"points R\"").nth(1).unwrap().split(" d=\"").nth(1).unwrap();
        let points = path.split('"').next().unwrap().split('M').skip(1);
        let tops: Vec<&str> = points.map(|point| point.split([' ', 'v']).nth(1).unwrap()).collect();
        assert_eq!(tops.iter().filter(|&&top| top == "24").count(), 1);
        assert!(!drawn(&series, Track::Jitter, (0, 1)).contains("points R"));
    }

    #[test]
    fn draws_empty_span_and_greatest_numbers() {
        let mut series = Series::default();
        series.record(&job(u64::MAX, Bounds::Exact(u64::MAX)));
        for span in [(0, 0), (0, u64::MAX), (u64::MAX, 5)] {
            let drawing = drawn(&series, Track::Response, span);
            assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
        }
    }
}

//! A term of every job over the time of the recording, as in figures 11 to 16 of the *Timeflow* paper.

use std::fmt::Write as _;

use super::scale::{Linear, unit};
use super::series::{Extremes, Series, Track};
use super::svg::{Anchor, Short, Svg};
use crate::explain;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 160.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 24.0;

/// Draws those tracks of a task, each in its class, over the span of the recording.
pub(super) fn draw(series: &Series, tracks: &[(Track, &str)], span: (u64, u64), label: &str) -> String {
    let points = |track| series.of(track);
    let all = tracks.iter().flat_map(|&(track, _)| points(track));
    let (at_max, max) =
        all.fold((0, 0), |best, (at, Extremes { max, .. })| if max > best.1 { (at, max) } else { best });
    let length = span.1.saturating_sub(span.0) as f64;
    let bottom = HEIGHT - BOTTOM;
    let x = Linear::new(0.0, length, LEFT, WIDTH - RIGHT);
    let y = Linear::new(0.0, max as f64, bottom, TOP);
    // Where the middle of the slot is.
    let place = |at: u64| {
        let middle = at.saturating_add(series.width() / 2);
        x.at(middle.saturating_sub(span.0) as f64).clamp(LEFT, WIDTH - RIGHT)
    };

    let mut svg = Svg::new(WIDTH);
    let y_unit = unit(max as f64);
    for (value, text) in y.ticks(4.0, y_unit) {
        let at = y.at(value);
        svg.line("grid", (LEFT, at), (WIDTH - RIGHT, at));
        svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &text);
    }
    svg.text("tick", (LEFT - 8.0, 12.0), Anchor::End, y_unit.0);
    let x_unit = unit(length);
    for (value, text) in x.ticks(7.0, x_unit) {
        let at = x.at(value);
        svg.line("axis", (at, bottom), (at, bottom + 4.0));
        // The last one gives its unit; a tick too near to the edge would be cut.
        if at < WIDTH - RIGHT - 30.0 {
            svg.text("tick", (at, bottom + 17.0), Anchor::Middle, &text);
        }
    }
    svg.text("tick", (WIDTH - RIGHT, bottom + 17.0), Anchor::End, x_unit.0);
    svg.line("axis", (LEFT, bottom), (WIDTH - RIGHT, bottom));
    for &(track, class) in tracks {
        let mut d = String::new();
        for (at, Extremes { min, max }) in points(track) {
            let (top, foot) = (y.at(max as f64), y.at(min as f64));
            let _ = write!(d, "M{} {}v{}", Short(place(at)), Short(top), Short(foot - top));
        }
        if !d.is_empty() {
            svg.path(class, &d);
        }
    }
    if max > 0 {
        let at = place(at_max);
        let when = explain::time(at_max.saturating_sub(span.0));
        svg.dot("longest", (at, y.at(max as f64)), 3.5, &format!("{} at {when}", explain::time(max)));
        let text = format!("max {}", explain::time(max));
        let (at, anchor) = if at > 0.5 * WIDTH { (at + 3.0, Anchor::End) } else { (at - 3.0, Anchor::Start) };
        svg.text("max-label", (at, 13.0), anchor, &text);
    }
    svg.finish("series", HEIGHT, &format!(" data-max=\"{max}\""), label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::{Actor, Job, Sort, Value, blank};

    fn job(end: u64, response: Value) -> Job {
        Job { end, response, ..blank(Actor::Thread(7), Sort::Thread) }
    }

    #[test]
    fn the_greatest_is_drawn_at_the_top_and_jobs_without_a_value_are_not() {
        let mut series = Series::default();
        for n in 0..100_000 {
            let ns = if n == 51_234 { 80_000 } else { 10_000 };
            series.record(&job(n * 1_000_000, Value::Exact(ns)));
        }
        series.record(&job(100_000_000_000, Value::Unknown));
        let drawing = draw(&series, &[(Track::Response, "points R")], (0, 100_000_000_000), "R");
        assert!(drawing.contains("data-max=\"80000\"") && drawing.contains("max 80 µs"), "{drawing}");
        let path = drawing.split("class=\"points R\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        let tops: Vec<&str> =
            path.split('M').skip(1).map(|point| point.split([' ', 'v']).nth(1).unwrap()).collect();
        assert_eq!(tops.iter().filter(|&&top| top == "24").count(), 1);
        assert!(!draw(&series, &[(Track::Jitter, "points J")], (0, 1), "J").contains("points J"));
    }

    #[test]
    fn a_span_of_nothing_and_the_greatest_numbers_are_drawn() {
        let mut series = Series::default();
        series.record(&job(u64::MAX, Value::Exact(u64::MAX)));
        for span in [(0, 0), (0, u64::MAX), (u64::MAX, 5)] {
            let drawing = draw(&series, &[(Track::Response, "points R")], span, "R");
            assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
        }
    }
}

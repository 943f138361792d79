//! Charts of a task: a histogram of each term, and every job over time.

use std::fmt::Write as _;

use punctual_report::chart::{Plot, Size};
use punctual_report::format::{format_count, format_counted, format_nanos, unit};
use punctual_report::histogram::Histogram;
use punctual_report::page::{legend, note};
use punctual_report::scale::Linear;
use punctual_report::svg::{Mark, Short};
use punctual_trace::jobs::Job;
use punctual_trace::stats::{TaskStats, Term};

use super::series::{Extremes, Series, Track};
use super::{Report, page};

const HISTOGRAM: Size = Size { class: "histogram", width: 400.0, height: 160.0 };

/// Draws the charts. A series has at most `slots` slots; its points link to the jobs that are on
/// the page.
pub(super) fn draw(
    task: &TaskStats,
    report: &Report<'_>,
    slots: usize,
    retained: &[(String, &Job)],
) -> String {
    if task.jobs() == 0 {
        return note("No job of it is without a flaw, so there are no figures.");
    }
    let mut out = String::from("<h3>Every job</h3>");
    out += &legend(&[("longest", "longest job"), ("kept", "job that is shown above: select it")]);
    let name = page::name(task, report.names);
    let histograms = Term::ALL.map(|term| {
        let quantity = task.quantity(term);
        Histogram::new(quantity.buckets(), quantity.summary().max)
    });
    let decades = Histogram::decades(&histograms);
    let span = report.collector.span().unwrap_or_default();
    let series = report.collector.task(task.id()).map(|gathered| gathered.series.within(slots));
    for (term, histogram) in Term::ALL.into_iter().zip(&histograms) {
        let (letter, summary) = (term.letter(), task.summary(term));
        let head = format!("<i class=\"sign {letter}\">{letter}</i>{}", term.meaning());
        let nothing = match (summary.count, summary.max) {
            (0, _) => "unknown of every job".to_owned(),
            (_, 0) if summary.unknown > 0 => format!(
                "none seen, and unknown of {} of {}",
                format_count(summary.unknown),
                format_counted(summary.count + summary.unknown, "job")
            ),
            (_, 0) => "none in any job".to_owned(),
            _ => String::new(),
        };
        if !nothing.is_empty() {
            let _ = write!(out, "<p class=\"nothing\" data-term=\"{letter}\">{head}: {nothing}</p>");
            continue;
        }
        let _ = write!(out, "<figure class=\"pair\" data-term=\"{letter}\"><figcaption>{head}</figcaption>");
        let label = format!("Histogram of the {} of {name}", term.meaning());
        out += &histogram.draw(&format!("bar {letter}"), &decades, HISTOGRAM, &label);
        if let Some(series) = &series {
            let label = format!("The {} of every job of {name} over time", term.meaning());
            let _ = write!(out, "<div>{}</div>", over_time(term, (series, retained), span, &label));
        }
        out += "</figure>";
    }
    out
}

fn over_time(
    term: Term,
    (series, retained): (&Series, &[(String, &Job)]),
    span: (u64, u64),
    label: &str,
) -> String {
    // Each part has a separate chart, as in figure 13 of the paper: in a common chart, parts would
    // cover each other.
    let tracks = Track::of_term(term);
    let longest = |&track: &Track| series.of(track).map(|(_, Extremes { max, .. })| max).max();
    let reach = tracks.iter().filter_map(longest).max().unwrap_or(0);
    let height = if tracks.len() > 1 { HEIGHT * 0.6 } else { HEIGHT };
    let class = &format!("points {}", term.letter());
    let charts = tracks
        .into_iter()
        .map(|track| draw_over_time(&Chart { series, retained, track, class, reach, height }, span, label));
    charts.collect()
}

const WIDTH: f64 = 640.0;

/// Minimum height of the range between the lowest and the highest value of a slot.
const MIN_HEIGHT: f64 = 2.5;

/// A track of a task's series, with its presentation.
#[derive(Debug, Clone, Copy)]
struct Chart<'a> {
    series: &'a Series,
    /// Jobs on the page, with their anchors.
    retained: &'a [(String, &'a Job)],
    track: Track,
    /// CSS class, which sets the color.
    class: &'a str,
    /// Minimum upper end of the vertical axis, in ns.
    reach: u64,
    height: f64,
}

/// Height of a standalone chart.
const HEIGHT: f64 = 160.0;

/// Draws a term of every job over the span of the recording, as in figures 11 to 16 of the
/// *Timeflow* paper.
fn draw_over_time(chart: &Chart<'_>, span: (u64, u64), label: &str) -> String {
    let Chart { series, retained, track, class, reach, height } = *chart;
    let points = || series.of(track);
    let longest = |best: (u64, u64), (at, Extremes { max, .. })| if max > best.1 { (at, max) } else { best };
    let (at_max, max) = points().fold((0, 0), longest);
    let length = span.1.saturating_sub(span.0) as f64;
    let mut plot = Plot::new(Size { class: "series", width: WIDTH, height });
    let y = Linear::new(0.0, max.max(reach) as f64, plot.bottom, plot.top);
    let (y_unit, x_unit) = (unit(max.max(reach) as f64), unit(length));
    plot.y_scale(y_unit.0, &y, y_unit.1);
    let x = Linear::new(0.0, length, plot.left, plot.right);
    plot.x_scale(&x, x_unit);
    // The center of the slot.
    let place = |at: u64| {
        let middle = at.saturating_add(series.width() / 2);
        x.at(middle.saturating_sub(span.0) as f64).clamp(plot.left, plot.right)
    };
    // Slots are drawn to scale, within limits that keep them visible.
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
        let part = if track.part.is_empty() { String::new() } else { format!("{}: ", track.part) };
        plot.max_label(at, &format!("{part}max {longest}"));
    }
    for (id, job) in retained {
        let Some(value) = track.of(job) else { continue };
        let at = x.at(job.end.saturating_sub(span.0) as f64).clamp(plot.left, plot.right);
        plot.svg.link(id, |svg| svg.dot("kept", (at, y.at(value as f64)), 3.5, &Mark::none()));
    }
    plot.finish(&Mark::titled(label).data("max", max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_trace::jobs::{Actor, Bounds, JobKind};

    fn job(end: u64, response: Bounds) -> Job {
        Job { end, response, ..Job::empty(Actor::Thread(7), JobKind::Thread) }
    }

    fn drawn(series: &Series, term: Term, span: (u64, u64)) -> String {
        let track = Track::of_term(term)[0];
        let chart = Chart { series, retained: &[], track, class: "points R", reach: 0, height: HEIGHT };
        draw_over_time(&chart, span, "R")
    }

    #[test]
    fn draws_maximum_at_top_and_skips_unknown_values() {
        let mut series = Series::default();
        for n in 0..100_000 {
            let ns = if n == 51_234 { 80_000 } else { 10_000 };
            series.record(&job(n * 1_000_000, Bounds::Exact(ns)));
        }
        series.record(&job(100_000_000_000, Bounds::Unknown));
        let drawing = drawn(&series, Term::Response, (0, 100_000_000_000));
        assert!(drawing.contains("data-max=\"80000\"") && drawing.contains("max 80.0 µs"), "{drawing}");
        let path = drawing.split("class=\"points R\"").nth(1).unwrap().split(" d=\"").nth(1).unwrap();
        let points = path.split('"').next().unwrap().split('M').skip(1);
        let tops: Vec<&str> = points.map(|point| point.split([' ', 'v']).nth(1).unwrap()).collect();
        assert_eq!(tops.iter().filter(|&&top| top == "24").count(), 1);
        assert!(!drawn(&series, Term::Jitter, (0, 1)).contains("points R"));
    }

    #[test]
    fn draws_empty_span_and_greatest_numbers() {
        let mut series = Series::default();
        series.record(&job(u64::MAX, Bounds::Exact(u64::MAX)));
        for span in [(0, 0), (0, u64::MAX), (u64::MAX, 5)] {
            let drawing = drawn(&series, Term::Response, span);
            assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
        }
    }
}

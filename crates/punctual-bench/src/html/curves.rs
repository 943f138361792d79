//! The curves of the suite of that name: median, 99th percentile and maximum of each subject
//! against the varied parameter.

use punctual_report::format::format_nanos;
use punctual_report::scale::{Log, decade_of_time, decades};
use punctual_report::svg::{Anchor, Mark, Svg};

use crate::grouping::color;
use crate::model::{Row, Suite};
use crate::stats::Distribution;
use crate::subject::X;

const WIDTH: f64 = 1060.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 26.0;
/// The distance between labels.
const LABEL: f64 = 12.5;

/// A figure of a point.
type Figure = fn(&Distribution) -> f64;

/// The figures to draw for a point, with their style-sheet classes.
const LINES: [(&str, &str, Figure); 3] = [
    ("curve-max", "max", |figures| figures.max_ns),
    ("curve-p99", "p99", |figures| figures.p99_ns),
    ("curve-p50", "median", |figures| figures.p50_ns),
];

/// Returns the operations of a suite that have points, each with its drawing.
pub(super) fn draw(suite: &Suite) -> Vec<(String, String)> {
    let points: Vec<(&Row, f64, &Distribution)> = suite
        .rows
        .iter()
        .filter_map(|row| {
            let at = row.quantities.iter().find(|quantity| quantity.name == X)?;
            Some((row, at.value, row.figures.as_ref()?))
        })
        .collect();
    let mut operations: Vec<&str> = points.iter().map(|(row, ..)| row.operation.as_str()).collect();
    operations.dedup();
    let of = |operation: &str| {
        let of_it: Vec<_> = points.iter().copied().filter(|(row, ..)| row.operation == operation).collect();
        (operation.to_owned(), curve(operation, &of_it))
    };
    operations.into_iter().map(of).collect()
}

fn curve(operation: &str, points: &[(&Row, f64, &Distribution)]) -> String {
    // The values are spaced evenly, since they were chosen and are far apart.
    let mut values: Vec<(f64, &str)> =
        points.iter().map(|(row, at, _)| (*at, row.condition.as_deref().unwrap_or_default())).collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    values.dedup();
    let step = (WIDTH - RIGHT - LEFT) / values.len() as f64;
    let x = |at: f64| {
        let index = values.iter().position(|(value, _)| *value == at).unwrap_or(0);
        LEFT + step * (index as f64 + 0.5)
    };
    let all = points.iter().flat_map(|(_, _, figures)| LINES.map(|(.., value)| value(figures).max(0.1)));
    let (low, high) = all.fold((f64::INFINITY, 0.0_f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    let y = Log::new(decades(low, high), BOTTOM, TOP);
    let mut svg = Svg::new(WIDTH);
    for exponent in y.exponents() {
        let at = y.at(10_f64.powi(exponent));
        svg.line("grid", (LEFT, at), (WIDTH - RIGHT, at));
        svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &decade_of_time(exponent));
    }
    for (value, text) in &values {
        // The number and its unit; the heading names the quantity.
        let short: Vec<&str> = text.split(' ').take(2).collect();
        let short = if short.get(1) == Some(&"pairs") { short[0].to_owned() } else { short.join(" ") };
        svg.text("tick", (x(*value), BOTTOM + 17.0), Anchor::Middle, &short);
    }
    let mut subjects: Vec<&str> = points.iter().map(|(row, ..)| row.subject.as_str()).collect();
    subjects.sort_unstable();
    subjects.dedup();
    let mut taken = Vec::new();
    for subject in subjects {
        svg.group(color(subject), &Mark::none().data("curve", subject), |svg| {
            let of_it: Vec<_> = points.iter().filter(|(row, ..)| row.subject == subject).collect();
            for (class, name, value) in LINES {
                let line: Vec<(f64, f64)> =
                    of_it.iter().map(|(_, at, figures)| (x(*at), y.at(value(figures)))).collect();
                svg.polyline(class, &line);
                for ((row, _, figures), &at) in of_it.iter().zip(&line) {
                    let of = row.condition.as_deref().unwrap_or_default();
                    let title = format!("{subject}, {of}: {name} {}", format_nanos(value(figures)));
                    svg.dot(class, at, 3.0, &Mark::titled(title));
                }
                if let Some(&(at, height)) = line.last() {
                    // Below labels that are too close, or above them if the axis is there.
                    let below = (0..).map(|n| height + 4.0 + LABEL * f64::from(n));
                    let above = (0..).map(|n| BOTTOM - 2.0 - LABEL * f64::from(n));
                    let height = below
                        .take_while(|height| *height < BOTTOM)
                        .chain(above.take_while(|height| *height > TOP))
                        .find(|height| taken.iter().all(|other: &f64| (other - height).abs() >= LABEL));
                    let height = height.unwrap_or(BOTTOM);
                    taken.push(height);
                    svg.text("curve", (at + 8.0, height), Anchor::Start, &format!("{subject} {name}"));
                }
            }
        });
    }
    svg.finish("", HEIGHT, &Mark::titled(format!("{operation}: median, p99 and maximum")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Quantity;

    #[test]
    fn keeps_names_of_curves_above_the_axis() {
        let row = |subject: &str| Row {
            condition: Some("0 %".into()),
            quantities: vec![Quantity { name: X.into(), value: 0.0, unit: String::new() }],
            ..crate::sample::row("curves/utilization", subject, 1000)
        };
        let run = crate::sample::run(vec![row("Punctual"), row("POSIX"), row("punctual-kernel")]);
        let names = &draw(&run.suites[0])[0].1;
        let heights: Vec<f64> = names
            .split("<text class=\"curve\"")
            .skip(1)
            .map(|text| text.split(" y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(heights.len(), 3 * LINES.len());
        assert!(heights.iter().all(|height| *height < BOTTOM), "{heights:?}");
    }

    #[test]
    fn draws_one_point_per_row_and_line() {
        let row = |subject: &str, at: f64| Row {
            operation: "Latency against load".into(),
            condition: Some(format!("{at} pairs of threads")),
            quantities: vec![Quantity { name: X.into(), value: at, unit: String::new() }],
            ..crate::sample::row("curves/load", subject, 1000 + at as u64)
        };
        let rows = vec![row("Punctual", 0.0), row("POSIX", 0.0), row("Punctual", 8.0), row("POSIX", 8.0)];
        let run = crate::sample::run(rows);
        let drawn = draw(&run.suites[0]);
        let [(operation, svg)] = &drawn[..] else { panic!("{} operations", drawn.len()) };
        assert_eq!(operation, "Latency against load");
        assert_eq!(svg.matches("<circle").count(), 4 * LINES.len());
        assert!(!svg.contains("NaN") && svg.contains(">8</text>"), "{svg}");
        // A suite without such rows has none.
        assert!(draw(&crate::sample::run(vec![crate::sample::row("a", "POSIX", 5)]).suites[0]).is_empty());
    }
}

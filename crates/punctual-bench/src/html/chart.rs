//! A chart of one group: a histogram for each row, one below the other, with a common logarithmic
//! time axis.

use std::ops::RangeInclusive;

use punctual_report::format::format_nanos;
use punctual_report::scale::{Log, decade_of_time, decades};
use punctual_report::svg::{Anchor, Mark, Svg, fitted, width as text_width};

use crate::grouping::{Group, color};
use crate::model::{Published, Row};
use crate::stats::Distribution;

/// The two drawings of a chart, of which the style sheet shows one.
const LAYOUTS: [Layout; 2] = [
    Layout { class: "wide", width: 1060.0, left: 190.0, gap: 14.0, line: 18.0, has_names_above: false },
    Layout { class: "narrow", width: 336.0, left: 24.0, gap: 18.0, line: 32.0, has_names_above: true },
];
const RIGHT: f64 = 26.0;
/// The width of a label of the axis with the space around it.
const LABEL: f64 = 50.0;
const TOP: f64 = 8.0;
/// The height of a row's histogram.
const STRIP: f64 = 38.0;
const AXIS: f64 = 26.0;
/// The least space between a name and the label of a maximum.
const GAP: f64 = 8.0;

/// The dimensions of a drawing.
#[derive(Clone, Copy)]
struct Layout {
    class: &'static str,
    width: f64,
    /// The left end of the axis.
    left: f64,
    /// The height of the space above a row's histogram, which contains the label of its maximum.
    gap: f64,
    /// The height of a line for a published figure.
    line: f64,
    /// Names are above the histograms, where even long ones fit, instead of to their left.
    has_names_above: bool,
}

impl Layout {
    /// Writes the name of a row or of a published figure: in `middle` of the space to the left, or
    /// at the left end `above` the row, where the width `taken` remains free. Returns the end of a
    /// name above.
    fn name(self, class: &str, name: &str, (middle, above, taken): (f64, f64, f64), svg: &mut Svg) -> f64 {
        if self.has_names_above {
            let name = fitted(name, self.width - taken);
            svg.text(class, (0.0, above), Anchor::Start, &name);
            return text_width(&name);
        }
        svg.text(class, (self.left - 10.0, middle), Anchor::End, &fitted(name, self.left - 16.0));
        self.left
    }
}

/// Draws the group for wide and for narrow screens; returns an empty text if it has no figures.
pub(super) fn draw(group: &Group<'_>) -> String {
    LAYOUTS.map(|layout| draw_in(layout, group)).concat()
}

fn draw_in(layout: Layout, group: &Group<'_>) -> String {
    let Layout { class, width, left, gap, line, .. } = layout;
    let rows: Vec<(&Row, &Distribution)> =
        group.rows.iter().filter_map(|row| Some((*row, row.figures.as_ref()?))).collect();
    if rows.is_empty() {
        return String::new();
    }
    let published = group.published();
    let axis = Log::new(range(&rows, &published), left, width - RIGHT);
    let height = TOP + rows.len() as f64 * (STRIP + gap) + published.len() as f64 * line + AXIS;
    let bottom = height - AXIS;
    let mut svg = Svg::new(width);
    let decade = (width - RIGHT - left) / (axis.exponents().count() - 1).max(1) as f64;
    let every = (LABEL / decade).ceil() as usize;
    for (index, exponent) in axis.exponents().enumerate() {
        let x = axis.at(10_f64.powi(exponent));
        svg.line("grid", (x, TOP), (x, bottom));
        if index.is_multiple_of(every) {
            svg.text("tick", (x, bottom + 17.0), Anchor::Middle, &decade_of_time(exponent));
        }
    }
    if let Some(nominal) = rows.iter().find_map(|(row, _)| row.nominal_ns) {
        upright(
            &mut svg,
            "nominal",
            axis.at(nominal),
            TOP,
            bottom,
            format!("asked for: {}", format_nanos(nominal)),
        );
    }
    let mut base = TOP;
    for (row, figures) in &rows {
        base += gap + STRIP;
        let doubtful = if row.why.is_empty() { "" } else { " doubtful" };
        let mark = Mark::none().data("row", &row.id);
        svg.group(&format!("{}{doubtful}", color(&row.subject)), &mark, |svg| {
            strip(row, figures, &axis, layout, base, svg)
        });
    }
    base += 2.0;
    for figure in published {
        base += line;
        publication(figure, &axis, layout, base - 6.0, &mut svg);
    }
    svg.finish(class, height, &Mark::titled(format!("Histograms: {}", group.title())))
}

/// Returns the decades of nanoseconds of all figures to draw.
fn range(rows: &[(&Row, &Distribution)], published: &[&Published]) -> RangeInclusive<i32> {
    let rows = rows.iter().flat_map(|(row, figures)| {
        let ends = figures.buckets.iter().flat_map(|bucket| [bucket.lower_ns(), bucket.upper_ns]);
        ends.chain([figures.max_ns, figures.p50_ns]).chain(row.nominal_ns)
    });
    let published =
        published.iter().flat_map(|line| [Some(line.mean_ns), line.min_ns, line.max_ns]).flatten();
    // A time below a tenth of a nanosecond cannot be distinguished from zero.
    let all = rows.chain(published).filter(|ns| ns.is_finite()).map(|ns| ns.max(0.1));
    let (low, high) = all.fold((f64::INFINITY, 0.0_f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    decades(low, high)
}

/// Draws the histogram of one row, with its bottom at `base`.
fn strip(row: &Row, figures: &Distribution, axis: &Log, layout: Layout, base: f64, svg: &mut Svg) {
    let above = base - STRIP - 4.0;
    let max_text = format!("max {}", format_nanos(figures.max_ns));
    // Its font is bold.
    let half = text_width(&max_text) * 1.1 / 2.0;
    let taken = 2.0 * half + GAP;
    let name_end = layout.name("subject", &row.subject, (base - 4.0, above, taken), svg);
    svg.line("base", (layout.left, base), (layout.width - RIGHT, base));
    let tallest = figures.buckets.iter().map(|bucket| bucket.count).max().unwrap_or(1);
    for bucket in &figures.buckets {
        // Up to the last nonempty bucket.
        let from = axis.at(bucket.lower_ns().max(figures.min_ns * 0.99));
        let to = axis.at(bucket.upper_ns.min(figures.max_ns * 1.01));
        // Logarithmic, because one in a million matters; a single sample has a fifth of the height.
        let height =
            STRIP * (0.2 + 0.8 * (bucket.count as f64).ln() / (tallest as f64).ln().max(1e-9)).min(1.0);
        let upper = format_nanos(bucket.upper_ns);
        let title = format!("{} of {} up to {upper}", bucket.count, figures.samples);
        let mark = Mark::titled(title).data("count", bucket.count);
        svg.rect("bar", (from, base - height), ((to - from - 0.6).max(1.0), height), &mark);
    }
    let [median, max] = [figures.p50_ns, figures.max_ns].map(|ns| axis.at(ns));
    let median_text = format!("median {}", format_nanos(figures.p50_ns));
    upright(svg, "median", median, base - STRIP, base + 3.0, median_text);
    svg.line("max", (max, base - STRIP), (max, base));
    // Above the histogram, so that it covers neither bars nor the median.
    let middle = max.max(name_end + GAP + half).min(layout.width - half);
    svg.text("max-label", (middle, above), Anchor::Middle, &max_text);
}

/// Draws a vertical line with a title.
fn upright(svg: &mut Svg, class: &str, x: f64, top: f64, bottom: f64, title: String) {
    svg.path(class, &format!("M{x:.1} {top:.1}V{bottom:.1}"), &Mark::titled(title));
}

/// Draws a published figure: a mark at the mean, and a line to the maximum.
fn publication(line: &Published, axis: &Log, layout: Layout, y: f64, svg: &mut Svg) {
    layout.name("published", &line.system, (y + 4.0, y - 9.0, 0.0), svg);
    if let Some(max) = line.max_ns {
        let (from, to) = (axis.at(line.min_ns.unwrap_or(line.mean_ns)), axis.at(max));
        svg.line("published", (from, y), (to, y));
        svg.line("published", (to, y - 4.0), (to, y + 4.0));
    }
    let title = format!("published, {}: mean {}", line.source, format_nanos(line.mean_ns));
    svg.dot("published", (axis.at(line.mean_ns), y), 3.5, &Mark::titled(title));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_labels_from_histograms_and_names() {
        for name in ["POSIX, one that waits", "an ordinary thread at the lowest nice value, SCHED_OTHER"] {
            let row = crate::sample::row("a", name, 1500);
            let figures = row.figures.as_ref().unwrap();
            for (layout, max_x) in LAYOUTS.into_iter().flat_map(|layout| [(layout, 1.0_f64), (layout, 1e4)]) {
                let axis = Log::new(range(&[(&row, figures)], &[]), layout.left, max_x.max(layout.left));
                let mut svg = Svg::new(layout.width);
                strip(&row, figures, &axis, layout, 100.0, &mut svg);
                let drawing = svg.finish("a", 100.0, &Mark::none());
                let text = |class: &str| {
                    let text = drawing.split("<text").find(|text| text.contains(class)).unwrap();
                    let attribute = |name: &str| {
                        let (_, rest) = text.split_once(&format!(" {name}=\"")).unwrap();
                        rest.split('"').next().unwrap().parse::<f64>().unwrap()
                    };
                    (attribute("x"), attribute("y"), text.split(['>', '<']).nth(1).unwrap())
                };
                let (x, y, label) = text("max-label");
                let half = text_width(label) / 2.0;
                assert!(y < 100.0 - STRIP && x + half <= layout.width, "{drawing}");
                let (left, _, name) = text("subject");
                let name_end = if layout.has_names_above { text_width(name) } else { left };
                assert!(x - half > name_end, "{drawing}");
            }
        }
    }

    #[test]
    fn covers_all_values_with_axis() {
        let row = crate::sample::row("a", "Punctual", 1500);
        let figures = row.figures.as_ref().unwrap();
        assert_eq!(range(&[(&row, figures)], &[&row.published[0]]), 3..=6);
        // Zero is not infinity.
        let none =
            Distribution { min_ns: 0.0, max_ns: 0.0, p50_ns: 0.0, buckets: Vec::new(), ..figures.clone() };
        assert_eq!(range(&[(&row, &none)], &[]), -1..=0);
    }
}

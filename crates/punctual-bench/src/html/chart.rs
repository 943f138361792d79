//! A chart of one group: a histogram for each row, one below the other, over one logarithmic axis of time.

use std::fmt::{self, Write};

use punctual_html::Escaped;

use super::colour;
use crate::grouping::Group;
use crate::model::{Published, Row};
use crate::stats::Distribution;
use crate::time::humane;

const WIDTH: f64 = 880.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 8.0;
/// A row's histogram, and the space above it.
const STRIP: f64 = 38.0;
const GAP: f64 = 12.0;
/// A published figure takes a line.
const LINE: f64 = 18.0;
const AXIS: f64 = 26.0;

/// Draws the group, unless nothing in it has figures.
pub(super) fn draw(group: &Group<'_>, out: &mut impl Write) -> fmt::Result {
    let rows: Vec<(&Row, &Distribution)> =
        group.rows.iter().filter_map(|row| Some((*row, row.figures.as_ref()?))).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let mut published: Vec<&Published> = Vec::new();
    for line in group.rows.iter().flat_map(|row| &row.published) {
        if !published.contains(&line) {
            published.push(line);
        }
    }
    let axis = Axis::over(&rows, &published);
    let height = TOP + rows.len() as f64 * (STRIP + GAP) + published.len() as f64 * LINE + AXIS;
    let bottom = height - AXIS;
    writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"Histograms: {}\">",
        Escaped(&group.title())
    )?;
    axis.draw(bottom, out)?;
    if let Some(nominal) = rows.iter().find_map(|(row, _)| row.nominal_ns) {
        let x = axis.x(nominal);
        writeln!(
            out,
            "<line class=\"nominal\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\"><title>asked for: \
             {}</title></line>",
            humane(nominal)
        )?;
    }
    let mut base = TOP;
    for (row, figures) in &rows {
        base += GAP + STRIP;
        strip(row, figures, &axis, base, out)?;
    }
    base += 2.0;
    for line in published {
        base += LINE;
        publication(line, &axis, base - 6.0, out)?;
    }
    out.write_str("</svg>\n")
}

/// The histogram of one row, standing on `base`.
fn strip(row: &Row, figures: &Distribution, axis: &Axis, base: f64, out: &mut impl Write) -> fmt::Result {
    let class = colour(&row.subject);
    let hollow = if row.why.is_empty() { "" } else { " doubtful" };
    writeln!(out, "<g class=\"{class}{hollow}\" data-row=\"{}\">", Escaped(&row.id))?;
    writeln!(
        out,
        "<text class=\"subject\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        LEFT - 10.0,
        base - 4.0,
        Escaped(shortened(&row.subject))
    )?;
    writeln!(
        out,
        "<line class=\"base\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{base:.1}\" y2=\"{base:.1}\"/>",
        WIDTH - RIGHT
    )?;
    let tallest = figures.buckets.iter().map(|bucket| bucket.count).max().unwrap_or(1);
    for bucket in &figures.buckets {
        // As far as there is anything in it.
        let from = axis.x(bucket.lower_ns().max(figures.min_ns * 0.99));
        let to = axis.x(bucket.upper_ns.min(figures.max_ns * 1.01));
        // Logarithmic, because one in a million is what matters; a single one is a fifth of the height.
        let height =
            STRIP * (0.2 + 0.8 * (bucket.count as f64).ln() / (tallest as f64).ln().max(1e-9)).min(1.0);
        writeln!(
            out,
            "<rect class=\"bar\" data-count=\"{}\" data-upper-ns=\"{}\" x=\"{from:.1}\" y=\"{:.1}\" \
             width=\"{:.1}\" height=\"{height:.1}\"><title>{} of {} up to {}</title></rect>",
            bucket.count,
            bucket.upper_ns,
            base - height,
            (to - from - 0.6).max(1.0),
            bucket.count,
            figures.samples,
            humane(bucket.upper_ns)
        )?;
    }
    let (median, max) = (axis.x(figures.p50_ns), axis.x(figures.max_ns));
    writeln!(
        out,
        "<line class=\"median\" x1=\"{median:.1}\" x2=\"{median:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"><title>median \
         {}</title></line>",
        base - STRIP,
        base + 3.0,
        humane(figures.p50_ns)
    )?;
    let (anchor, offset) = if max > WIDTH - 130.0 { ("end", -5.0) } else { ("start", 5.0) };
    writeln!(
        out,
        "<line class=\"max\" x1=\"{max:.1}\" x2=\"{max:.1}\" y1=\"{:.1}\" y2=\"{base:.1}\"/><text class=\"max-label\" \
         text-anchor=\"{anchor}\" x=\"{:.1}\" y=\"{:.1}\">max {}</text>",
        base - STRIP,
        max + offset,
        base - STRIP + 8.0,
        humane(figures.max_ns)
    )?;
    out.write_str("</g>\n")
}

/// A published figure: a mark at the mean, and a line to the maximum.
fn publication(line: &Published, axis: &Axis, y: f64, out: &mut impl Write) -> fmt::Result {
    let mean = axis.x(line.mean_ns);
    out.write_str("<g class=\"published\">")?;
    write!(
        out,
        "<text class=\"subject\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        LEFT - 10.0,
        y + 4.0,
        Escaped(shortened(&line.system))
    )?;
    if let Some(max) = line.max_ns {
        let (from, to) = (axis.x(line.min_ns.unwrap_or(line.mean_ns)), axis.x(max));
        write!(
            out,
            "<line x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><line x1=\"{to:.1}\" x2=\"{to:.1}\" \
             y1=\"{:.1}\" y2=\"{:.1}\"/>",
            y - 4.0,
            y + 4.0
        )?;
    }
    writeln!(
        out,
        "<circle cx=\"{mean:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>published, {}: mean {}</title></circle></g>",
        Escaped(&line.source),
        humane(line.mean_ns)
    )
}

/// As much of a name as fits beside a chart.
fn shortened(name: &str) -> &str {
    name.char_indices().nth(24).map_or(name, |(at, _)| &name[..at])
}

/// Whole decades of nanoseconds.
struct Axis {
    from: i32,
    to: i32,
}

impl Axis {
    fn over(rows: &[(&Row, &Distribution)], published: &[&Published]) -> Self {
        let mut values: Vec<f64> = Vec::new();
        for (row, figures) in rows {
            values.extend(figures.buckets.iter().flat_map(|bucket| [bucket.lower_ns(), bucket.upper_ns]));
            values.extend([figures.max_ns, figures.p50_ns]);
            values.extend(row.nominal_ns);
        }
        for line in published {
            values.extend([Some(line.mean_ns), line.min_ns, line.max_ns].into_iter().flatten());
        }
        // Less than a tenth of a nanosecond is no time that can be told from none.
        let exponents = values.iter().filter(|value| value.is_finite()).map(|value| value.max(0.1).log10());
        let (low, high) = exponents.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), exponent| {
            (low.min(exponent), high.max(exponent))
        });
        let (from, to) = ((low + 1e-6).floor() as i32, (high - 1e-6).ceil() as i32);
        Self { from, to: to.max(from + 1) }
    }

    fn x(&self, ns: f64) -> f64 {
        let share = (ns.max(1e-3).log10() - f64::from(self.from)) / f64::from(self.to - self.from);
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - RIGHT - LEFT)
    }

    fn draw(&self, bottom: f64, out: &mut impl Write) -> fmt::Result {
        for exponent in self.from..=self.to {
            let ns = 10_f64.powi(exponent);
            let x = self.x(ns);
            writeln!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\"/><text class=\"tick\" \
                 x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 17.0,
                tick(exponent)
            )?;
        }
        Ok(())
    }
}

/// A power of ten of nanoseconds in the unit that suits it.
fn tick(exponent: i32) -> String {
    let (power, unit) = match exponent {
        ..=2 => (exponent, "ns"),
        3..=5 => (exponent - 3, "µs"),
        6..=8 => (exponent - 6, "ms"),
        _ => (exponent - 9, "s"),
    };
    format!("{} {unit}", 10_f64.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_the_unit_that_suits_them() {
        let ticks: Vec<String> = [-1, 0, 2, 3, 6, 8, 9].into_iter().map(tick).collect();
        assert_eq!(ticks, ["0.1 ns", "1 ns", "100 ns", "1 µs", "1 ms", "100 ms", "1 s"]);
    }

    #[test]
    fn the_axis_holds_everything() {
        let row = crate::sample::row("a", "Punctual", 1500);
        let figures = row.figures.as_ref().unwrap();
        let axis = Axis::over(&[(&row, figures)], &[&row.published[0]]);
        assert_eq!((axis.from, axis.to), (3, 6));
        assert_eq!(axis.x(1e3), LEFT);
        assert_eq!(axis.x(1e6), WIDTH - RIGHT);
        // What is outside is at its end, and zero is no infinity.
        assert_eq!(axis.x(0.0), LEFT);
    }
}

//! The few SVG elements that the charts are made of.
//!
//! Everything that is a matter of looks (colours, widths, fonts) is left to classes in the style sheet, so
//! that a chart follows the light or dark scheme of the page.

use punctual_html::Escaped;
use std::fmt::{self, Write as _};

/// A drawing that is being made.
#[derive(Debug)]
pub(super) struct Svg {
    body: String,
    width: f64,
    height: f64,
}

/// Where a text is relative to its position.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty drawing of `width` by `height` units, which are pixels at its natural size.
    pub(super) const fn new(width: f64, height: f64) -> Self {
        Self { body: String::new(), width, height }
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) -> fmt::Result {
        let ((x1, y1), (x2, y2)) = (from, to);
        write!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        )
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) -> fmt::Result {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let ((x, y), text) = (at, Escaped(text));
        write!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        )
    }

    pub(super) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) -> fmt::Result {
        let ((x, y), (width, height)) = (at, size);
        write!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        )
    }

    pub(super) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) -> fmt::Result {
        write!(self.body, "<polyline class=\"{class}\" points=\"")?;
        for (x, y) in points {
            write!(self.body, "{x:.1},{y:.1} ")?;
        }
        self.body.push_str("\"/>");
        Ok(())
    }

    /// The finished drawing, shown where the style sheet shows `class`, described by `label`.
    pub(super) fn finish(self, class: &str, label: &str, out: &mut impl fmt::Write) -> fmt::Result {
        let Self { body, width, height } = self;
        let label = Escaped(label);
        write!(
            out,
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{label}\">{body}</svg>"
        )
    }
}

/// Reduces a series to what can be seen of it: `points` are (x, y) in pixels, in order of x.
///
/// Of each column of one pixel the first, lowest, highest and last point are kept, so that no spike is lost
/// however many points share the column. Points in the middle of a level stretch are dropped.
pub(super) fn decimate(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut column: Vec<(f64, f64)> = Vec::new();
    for point in points {
        if column.first().is_some_and(|first| first.0.floor() != point.0.floor()) {
            flush(&mut column, &mut kept);
        }
        column.push(point);
    }
    flush(&mut column, &mut kept);
    kept
}

fn flush(column: &mut Vec<(f64, f64)>, kept: &mut Vec<(f64, f64)>) {
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
        if let [.., before, between] = kept[..]
            && before.1 == point.1
            && between.1 == point.1
        {
            kept.pop();
        }
        kept.push(point);
    }
    column.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_spike_among_many_points_stays() {
        let spiky = (0..100_000).map(|n| (f64::from(n) / 1_000.0, if n == 51_234 { 80.0 } else { 10.0 }));
        let kept = decimate(spiky);
        assert!(kept.contains(&(51.234, 80.0)));
        assert!(kept.len() < 10, "level stretches need only their ends");
        assert_eq!((kept[0].0, kept[kept.len() - 1].0), (0.0, 99.999));
    }

    #[test]
    fn columns_keep_their_extremes_in_order() {
        let points = [(0.0, 5.0), (0.1, 9.0), (0.2, 6.0), (0.3, 1.0), (0.4, 4.0), (1.0, 3.0)];
        let expected = [(0.0, 5.0), (0.1, 9.0), (0.3, 1.0), (0.4, 4.0), (1.0, 3.0)];
        assert_eq!(decimate(points.into_iter()), expected);
        assert_eq!(decimate(std::iter::empty()), []);
    }

    #[test]
    fn text_is_escaped() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("t", (1.0, 2.0), Anchor::Start, "<script>").unwrap();
        let mut out = String::new();
        svg.finish("wide", "\"><script>", &mut out).unwrap();
        assert!(!out.contains("<script>"));
    }
}

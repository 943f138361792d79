//! Places labels below a row so that no label covers another label or a line.

use punctual_report::svg::width;

/// Number of label lines below a row.
const LINES: usize = 3;

/// Maximum horizontal distance of a label from its anchor.
const MAX_SHIFT: f64 = 90.0;

/// Minimum gap between two labels.
const GAP: f64 = 8.0;

/// Center of a label, and its line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Placement {
    pub(super) x: f64,
    pub(super) line: usize,
}

/// Occupied parts of the lines.
#[derive(Debug)]
pub(super) struct Labels {
    edges: (f64, f64),
    taken: [Vec<(f64, f64)>; LINES],
}

impl Labels {
    /// Creates empty lines between these edges.
    pub(super) fn between(left: f64, right: f64) -> Self {
        Self { edges: (left, right), taken: Default::default() }
    }

    /// Reserves a vertical line through all label lines.
    pub(super) fn avoid(&mut self, x: f64) {
        self.taken.iter_mut().for_each(|taken| taken.push((x - 4.0, x + 4.0)));
    }

    /// Finds room for the label of `x`, as near as possible, and preferably not below any of
    /// `others`, which need labels too.
    pub(super) fn place(&mut self, x: f64, text: &str, others: &[f64]) -> Option<Placement> {
        let half = width(text) / 2.0;
        let (left, right) = (self.edges.0 + half, self.edges.1 - half);
        if left > right {
            return None;
        }
        let spot =
            self.find(x, half, (left, right), others).or_else(|| self.find(x, half, (left, right), &[]))?;
        self.taken[spot.line].push(label(spot.x, half));
        self.taken[..spot.line].iter_mut().for_each(|taken| taken.push(leader(x, spot.x)));
        Some(spot)
    }

    fn find(&self, x: f64, half: f64, (left, right): (f64, f64), others: &[f64]) -> Option<Placement> {
        let free = |line: usize, (from, to)| self.taken[line].iter().all(|&(a, b)| to <= a || b <= from);
        let covered = |at: f64| {
            let covers = |other: &&f64| (**other - at).abs() < half + GAP / 2.0 && **other != x;
            others.iter().filter(covers).count() as f64
        };
        let steps = (MAX_SHIFT / 5.0) as i32;
        let positions =
            (0..LINES).flat_map(|line| (-steps..=steps).map(move |step| (line, f64::from(step) * 5.0)));
        let positions = positions.map(|(line, aside)| Placement { x: (x + aside).clamp(left, right), line });
        let possible = positions.filter(|&Placement { x: at, line }| {
            free(line, label(at, half)) && (0..line).all(|above| free(above, leader(x, at)))
        });
        // A lower line is better than a distant label or one that obstructs others.
        possible.min_by(|one, other| {
            let cost =
                |spot: &Placement| (spot.x - x).abs() + spot.line as f64 * 25.0 + covered(spot.x) * 20.0;
            cost(one).total_cmp(&cost(other))
        })
    }

    /// Returns the number of lines in use.
    pub(super) fn lines(&self, spots: &[Placement]) -> usize {
        spots.iter().map(|spot| spot.line + 1).max().unwrap_or(0)
    }
}

/// Returns the range that a label occupies on its line.
fn label(at: f64, half: f64) -> (f64, f64) {
    (at - half - GAP / 2.0, at + half + GAP / 2.0)
}

/// Returns the range that the leader line from `x` down to the label occupies on the lines above
/// the label.
fn leader(x: f64, at: f64) -> (f64, f64) {
    (x.min(at) - 2.0, x.max(at) + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_labels_without_overlap() {
        let mut labels = Labels::between(100.0, 600.0);
        labels.avoid(300.0);
        let texts: Vec<(f64, &str)> = (0..40).map(|n| (100.0 + f64::from(n) * 12.0, "SS 4.1 µs")).collect();
        let others: Vec<f64> = texts.iter().map(|text| text.0).collect();
        let placed: Vec<(Placement, &str)> =
            texts.iter().filter_map(|&(x, text)| Some((labels.place(x, text, &others)?, text))).collect();
        assert!(placed.len() >= 7, "{}", placed.len());
        for (index, (one, text)) in placed.iter().enumerate() {
            let half = width(text) / 2.0;
            assert!(one.x - half >= 100.0 && one.x + half <= 600.0);
            assert!((one.x - 300.0).abs() > half, "a label is on the line");
            for (other, _) in &placed[..index] {
                assert!(
                    one.line != other.line || (one.x - other.x).abs() >= 2.0 * half,
                    "{one:?} covers {other:?}"
                );
            }
        }
        assert!(Labels::between(0.0, 5.0).place(1.0, "too long for it", &[]).is_none());
    }
}

//! Finds room for labels below a row, so that none covers another or a line.

use super::text::width;

/// Lines of labels below a row.
const LINES: usize = 3;

/// How far a label may be moved aside from what it is about.
const ASIDE: f64 = 70.0;

/// Room between two labels.
const GAP: f64 = 8.0;

/// Where a label has its middle, and on which line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spot {
    pub(super) x: f64,
    pub(super) line: usize,
}

/// What of the lines is taken.
#[derive(Debug)]
pub(super) struct Labels {
    edges: (f64, f64),
    taken: [Vec<(f64, f64)>; LINES],
}

impl Labels {
    /// Nothing is, between those edges.
    pub(super) fn between(left: f64, right: f64) -> Self {
        Self { edges: (left, right), taken: Default::default() }
    }

    /// A line crosses all of it there.
    pub(super) fn avoid(&mut self, x: f64) {
        self.taken.iter_mut().for_each(|taken| taken.push((x - 4.0, x + 4.0)));
    }

    /// Room for a label about what is at `x`, as near as there is.
    pub(super) fn place(&mut self, x: f64, text: &str) -> Option<Spot> {
        let half = width(text) / 2.0;
        let (left, right) = (self.edges.0 + half, self.edges.1 - half);
        if left > right {
            return None;
        }
        for line in 0..LINES {
            // Straight below, then further and further aside, by turns to the left and to the right.
            let steps =
                (0..=(ASIDE / 5.0) as i32).flat_map(|step| [f64::from(step) * 5.0, f64::from(step) * -5.0]);
            for aside in steps {
                let at = (x + aside).clamp(left, right);
                let leader = (x.min(at) - 2.0, x.max(at) + 2.0);
                let label = (at - half - GAP / 2.0, at + half + GAP / 2.0);
                let free =
                    |line: usize, (from, to)| self.taken[line].iter().all(|&(a, b)| to <= a || b <= from);
                if free(line, label) && (0..line).all(|above| free(above, leader)) {
                    self.taken[line].push(label);
                    self.taken[..line].iter_mut().for_each(|taken| taken.push(leader));
                    return Some(Spot { x: at, line });
                }
            }
        }
        None
    }

    /// How many lines are in use.
    pub(super) fn lines(&self, spots: &[Spot]) -> usize {
        spots.iter().map(|spot| spot.line + 1).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_labels_share_room() {
        let mut labels = Labels::between(100.0, 600.0);
        labels.avoid(300.0);
        let texts: Vec<(f64, &str)> = (0..40).map(|n| (100.0 + f64::from(n) * 12.0, "SS 4.1 µs")).collect();
        let placed: Vec<(Spot, &str)> =
            texts.iter().filter_map(|&(x, text)| Some((labels.place(x, text)?, text))).collect();
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
        assert!(Labels::between(0.0, 5.0).place(1.0, "too long for it").is_none());
    }
}

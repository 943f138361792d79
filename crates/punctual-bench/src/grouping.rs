//! Groups of rows: one operation under one condition.

use crate::model::{Published, Row, Suite};
use crate::subject::{AS_BY_DEFAULT, PEER};

/// Comparable rows.
pub(crate) struct Group<'a> {
    pub(crate) operation: &'a str,
    pub(crate) condition: Option<&'a str>,
    pub(crate) rows: Vec<&'a Row>,
}

impl Group<'_> {
    /// Returns the median of `row` as a multiple of that of the peer in this group.
    ///
    /// `None` if the ratio would be meaningless: if a row is invalid, or if both are mostly the
    /// cost of the clock, where `empty_ns` is an empty measurement.
    pub(crate) fn ratio(&self, row: &Row, empty_ns: f64) -> Option<f64> {
        let peer = self.rows.iter().find(|row| row.subject == PEER)?;
        let (own, other) = (row.figures.as_ref()?, peer.figures.as_ref()?);
        let short = |row: &Row, p50_ns: f64| p50_ns * f64::from(row.operations_per_sample) < 4.0 * empty_ns;
        let says_nothing = row.subject == PEER
            || !row.is_meaningful()
            || !peer.is_meaningful()
            || (short(row, own.p50_ns) && short(peer, other.p50_ns))
            || row.nominal_ns.is_some()
            || other.p50_ns <= 0.0;
        (!says_nothing).then(|| own.p50_ns / other.p50_ns)
    }

    /// Returns the published figures of all rows, each once.
    pub(crate) fn published(&self) -> Vec<&Published> {
        let mut published: Vec<&Published> = Vec::new();
        for line in self.rows.iter().flat_map(|row| &row.published) {
            if !published.contains(&line) {
                published.push(line);
            }
        }
        published
    }

    /// Returns a one-line heading.
    pub(crate) fn title(&self) -> String {
        match self.condition {
            Some(condition) => format!("{}, {condition}", self.operation),
            None => self.operation.to_owned(),
        }
    }
}

/// Returns the groups of rows of `suite`, ordered by their first rows.
pub(crate) fn groups(suite: &Suite) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in &suite.rows {
        let (operation, condition) = (row.operation.as_str(), row.condition.as_deref());
        match groups.iter_mut().find(|group| group.operation == operation && group.condition == condition) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { operation, condition, rows: vec![row] }),
        }
    }
    for group in &mut groups {
        // Our rows first, then the usual alternatives, then the rest.
        group.rows.sort_by_key(|row| {
            [AS_BY_DEFAULT, "Punctual", "punctual-sync", PEER]
                .iter()
                .position(|subject| row.subject == *subject)
                .unwrap_or(4)
        });
    }
    groups
}

/// Returns the style-sheet class for the color of a subject.
pub(crate) fn color(subject: &str) -> &'static str {
    match subject {
        AS_BY_DEFAULT | "Punctual" | "SCHED_FIFO" => "c1",
        "punctual-sync" => "c2",
        PEER | "ordinary thread" => "c3",
        _ => "c4",
    }
}

/// Formats a ratio with two significant digits.
pub(crate) fn ratio_text(ratio: f64) -> String {
    let decimals = match ratio {
        r if r >= 0.095 || r <= 0.0 => 2,
        r => (1.0 - r.log10().floor()) as usize,
    };
    format!("{ratio:.decimals$} ×")
}

/// Numbers its entries from 1, each text once.
#[derive(Debug, Default)]
pub(crate) struct Footnotes(Vec<String>);

impl Footnotes {
    /// Returns the number of `text`.
    pub(crate) fn number(&mut self, text: &str) -> usize {
        let found = self.0.iter().position(|known| known == text);
        1 + found.unwrap_or_else(|| {
            self.0.push(text.to_owned());
            self.0.len() - 1
        })
    }

    /// Returns all entries with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().enumerate().map(|(index, text)| (index + 1, text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_only_meaningful_rows() {
        let run = |own: Row, empty_ns| {
            let run = crate::sample::run(vec![own, crate::sample::row("b", PEER, 1000)]);
            let groups = groups(&run.suites[0]);
            groups[0].ratio(groups[0].rows[0], empty_ns)
        };
        let own = crate::sample::row("a", "Punctual", 2000);
        assert!((run(own.clone(), 20.0).unwrap() - 2.0).abs() < 0.01);
        // All of the time is that of the clock.
        assert_eq!(run(own.clone(), 1000.0), None);
        assert_eq!(run(Row { why: vec!["no SCHED_FIFO".into()], ..own }, 20.0), None);
    }

    #[test]
    fn prints_ratios_with_two_significant_digits() {
        let cases = [
            (12.345, "12.35 ×"),
            (0.1, "0.10 ×"),
            (0.0281, "0.028 ×"),
            (0.00041, "0.00041 ×"),
            (0.0, "0.00 ×"),
        ];
        for (ratio, text) in cases {
            assert_eq!(ratio_text(ratio), text);
        }
    }

    #[test]
    fn numbers_each_footnote_once() {
        let mut notes = Footnotes::default();
        assert_eq!(["a", "b", "a"].map(|text| notes.number(text)), [1, 2, 1]);
        assert_eq!(notes.iter().collect::<Vec<_>>(), [(1, "a"), (2, "b")]);
    }
}

//! Statistics of a task as a table for a terminal or a page.

use punctual_report::format::{format_count, format_micros};
use punctual_report::table::{Cell, Column, Table};
use punctual_trace::stats::{Summary, TaskStats, Term};

/// Returns a table with a row for each term of response-time analysis, maximum first, in
/// microseconds.
///
/// ```
/// use punctual_trace_report::export::table;
/// # use punctual_trace::jobs::{Actor, JobKind};
/// # use punctual_trace::stats::{Key, TaskId, TaskStats};
/// # let key = Key { kind: JobKind::Thread, actor: Actor::Thread(7) };
/// # let stats = TaskStats::new(TaskId { key, incarnation: 0, ordinary: false });
///
/// assert!(table::terms(&stats).to_string().contains("response time"));
/// ```
#[must_use]
pub fn terms(stats: &TaskStats) -> Table {
    let times = ["max µs", "p99.9", "p50", "mean"].map(Column::micros);
    let columns = [Column::left("term")].into_iter().chain(times);
    let mut table = Table::new(columns.chain([Column::right("jobs"), Column::left("known")]));
    for term in Term::ALL {
        let summary = stats.summary(term);
        let Summary { max, p999, p50, mean, count, .. } = summary;
        let [max_cell, p999, p50, mean] = [max, p999, p50, mean.round() as u64].map(|ns| time(&summary, ns));
        let max_cell = if count > 0 { max_cell.class("key").title(format!("{max} ns")) } else { max_cell };
        let letter = term.letter();
        let name = Cell::new(term.meaning()).sign(letter, letter);
        table.row([
            name,
            max_cell,
            p999,
            p50,
            mean,
            Cell::count(count),
            Cell::new(known(&summary)).class("muted"),
        ]);
    }
    table
}

/// Returns the equations of the terms that are sums, with the name of each term where it first
/// occurs: `R response time = J release jitter + W busy window; W = …`.
#[must_use]
pub fn equations() -> String {
    let mut named = Vec::new();
    let mut mention = |term: Term| {
        if named.contains(&term.letter()) {
            return term.letter().to_owned();
        }
        named.push(term.letter());
        format!("{} {}", term.letter(), term.meaning())
    };
    let sums = Term::ALL.into_iter().filter(|term| !term.summands().is_empty());
    let equations = sums.map(|sum| {
        let whole = mention(sum);
        let summands: Vec<String> = sum.summands().iter().map(|&term| mention(term)).collect();
        format!("{whole} = {}", summands.join(" + "))
    });
    equations.collect::<Vec<_>>().join("; ")
}

/// Formats one time of a summary, marked as a bound if it sums up bounds, or as a dash if nothing
/// is known.
#[must_use]
pub fn time(summary: &Summary, ns: u64) -> Cell {
    match summary.count {
        0 => Cell::none(),
        _ => Cell::new(format!("{}{}", sign(summary), format_micros(ns))),
    }
}

/// Legend of the signs before times and of the dash.
pub(crate) const SIGNS: &str = "≤ marks an upper bound and ≥ a lower bound of a time that the recording does not show exactly; ≈ marks \
                                maxima of jobs of both kinds, and – an unknown value.";

/// Returns the sign before the times of a summary, which marks bounds.
pub(crate) fn sign(summary: &Summary) -> &'static str {
    match (summary.bounded, summary.at_least) {
        (0, 0) => "",
        (_, 0) => "≤ ",
        (0, _) => "≥ ",
        // A mixture of upper and lower bounds is not a bound.
        _ => "≈ ",
    }
}

/// Formats the number of jobs and the number known exactly, within bounds, or not at all.
fn known(summary: &Summary) -> String {
    let &Summary { count, bounded, at_least, unknown, .. } = summary;
    let jobs = count + unknown;
    let exact = count - bounded - at_least;
    let all = [(exact, "exact"), (bounded, "bounded"), (at_least, "at least"), (unknown, "unknown")];
    let parts = all.into_iter().filter(|part| part.0 > 0).map(|(some, how)| match some {
        some if some == jobs => how.to_owned(),
        some => format!("{} {how}", format_count(some)),
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_jobs_with_known_terms() {
        let of = |count, bounded, unknown| known(&Summary { count, bounded, unknown, ..Summary::default() });
        assert_eq!([of(5, 0, 0), of(5, 5, 0), of(0, 0, 3), of(0, 0, 0)], ["exact", "bounded", "unknown", ""]);
        let open = Summary { count: 7, at_least: 7, ..Summary::default() };
        assert_eq!(known(&open), "at least");
        assert_eq!(of(1_234, 34, 3), "1 200 exact, 34 bounded, 3 unknown");
    }

    #[test]
    fn prints_dash_for_unknown() {
        let texts = |summary: &Summary| {
            let mut table = Table::new([Column::micros("x")]);
            table.row([time(summary, 1_500)]);
            table.body()
        };
        let some = Summary { count: 2, ..Summary::default() };
        assert_eq!(texts(&Summary::default()), "–\n");
        let [bounded, open] =
            [(1, 0), (0, 1)].map(|(bounded, at_least)| Summary { bounded, at_least, ..some });
        let both = Summary { bounded: 1, at_least: 1, ..some };
        assert_eq!(
            [some, bounded, open, both].map(|summary| texts(&summary)),
            ["1.50\n", "≤ 1.50\n", "≥ 1.50\n", "≈ 1.50\n"]
        );
    }
}

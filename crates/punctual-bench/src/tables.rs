//! The tables of a run, for a terminal and for a page: figures by group, causes, rules, and
//! changes. The maximum comes first.

use punctual_report::format::{format_nanos, format_part, format_significant};
use punctual_report::table::{Cell, Column, Table};

use crate::compare::{Change, Comparison};
use crate::grouping::{Footnotes, Group, color, ratio_text};
use crate::model::{Answer, Check, Quantity, Row, Verdict};

/// A table of the figures of groups.
pub(crate) struct Figures {
    pub(crate) table: Table,
    empty_ns: f64,
    is_wide: bool,
}

impl Figures {
    /// Creates an empty table for these groups, with a column for ratios if there are any, and with
    /// outer percentiles and the number of samples if it `is_wide`. `empty_ns` is the median of an
    /// empty measurement.
    pub(crate) fn new(groups: &[Group<'_>], empty_ns: f64, is_wide: bool) -> Self {
        let has_ratio =
            groups.iter().any(|group| group.rows.iter().any(|row| group.ratio(row, empty_ns).is_some()));
        let outer: &[&str] = if is_wide { &["max", "p99.99", "p99.9"] } else { &["max"] };
        let heads = outer.iter().copied().chain(["p99", "p50", "min", "mean", "σ"]);
        let heads = heads.chain(is_wide.then_some("samples")).chain(has_ratio.then_some("p50:POSIX"));
        let table = Table::new([Column::left("")].into_iter().chain(heads.map(Column::right)));
        Self { table, empty_ns, is_wide }
    }

    /// Adds a group. After each row, `after` may add more to the table.
    pub(crate) fn add(
        &mut self,
        group: &Group<'_>,
        footnotes: &mut Footnotes,
        after: impl Fn(&Row, &mut Table),
    ) {
        for row in &group.rows {
            let mut marks: Vec<usize> = row.why.iter().map(|why| footnotes.number(why)).collect();
            marks.extend(row.disturbed.as_ref().map(|by| footnotes.number(&disturbance(by))));
            let mut cells = vec![Cell::new(&*row.subject).sign(color(&row.subject), "")];
            match &row.figures {
                Some(f) => {
                    cells.push(Cell::nanos(f.max_ns));
                    if self.is_wide {
                        cells.extend([f.p9999_ns, f.p999_ns].map(Cell::nanos));
                    }
                    cells.extend([f.p99_ns, f.p50_ns, f.min_ns, f.mean_ns, f.sigma_ns].map(Cell::nanos));
                    cells.extend(self.is_wide.then(|| Cell::count(f.samples)));
                    cells.extend(group.ratio(row, self.empty_ns).map(|ratio| Cell::new(ratio_text(ratio))));
                }
                None => cells.push(Cell::new("not measured").class("muted").span(if self.is_wide {
                    8
                } else {
                    6
                })),
            }
            self.table.row(cells).class(if row.why.is_empty() { "" } else { "doubtful" }).marks(&marks);
            after(row, &mut self.table);
        }
        for line in group.published() {
            let source = footnotes.number(&format!("published: {}", line.source));
            let name = Cell::new(format!("published: {}", line.system));
            let [max, min, mean, sigma] =
                [line.max_ns, line.min_ns, Some(line.mean_ns), line.sigma_ns].map(Cell::nanos);
            let none = std::iter::repeat_with(Cell::none).take(if self.is_wide { 4 } else { 2 });
            let cells = [name, max].into_iter().chain(none).chain([min, mean, sigma]);
            self.table.row(cells).class("muted").marks(&[source]);
        }
    }
}

/// Describes the disturbance of a window that was to be idle.
fn disturbance(by: &str) -> String {
    format!("disturbed: {by}")
}

/// Returns the answers: a row for each period and condition.
pub(crate) fn answers(answers: &[Answer], footnotes: &mut Footnotes) -> Table {
    let heads = ["releases", "missed", "worst"].map(Column::right);
    // The verdict before the figures: a narrow screen cuts off the last columns.
    let first = ["period", "", "verdict, with 95 % confidence"].map(Column::left);
    let mut table = Table::new(first.into_iter().chain(heads));
    for answer in answers {
        let rate = format_significant(1e9 / answer.period_ns.max(1) as f64);
        let period = format!("{} ({rate} Hz)", format_part(answer.period_ns));
        let (verdict, class) = match (answer.is_held(), answer.miss_rate_bound) {
            (Some(true), Some(bound)) => {
                (format!("yes: fewer than {} % are late", format_significant(100.0 * bound)), "good")
            }
            (Some(_), _) => ("no".to_owned(), "fault"),
            (None, _) => ("unknown".to_owned(), "muted"),
        };
        let mut marks: Vec<usize> = answer.why.iter().map(|why| footnotes.number(why)).collect();
        marks.extend(answer.disturbed.as_ref().map(|by| footnotes.number(&disturbance(by))));
        let cells = [
            Cell::new(period),
            Cell::new(&*answer.condition),
            Cell::new(verdict).class(class),
            Cell::count(answer.releases),
            Cell::fault(answer.misses),
            Cell::nanos(answer.worst_ns.map(|ns| ns as f64)),
        ];
        table.row(cells).marks(&marks);
    }
    table
}

/// Returns the groups in which a peer has the lower median, with both, and the number of groups
/// that have a peer.
pub(crate) fn faster_peers(groups: &[Group<'_>]) -> (Vec<String>, usize) {
    let fastest = |group: &Group<'_>, own: bool| {
        let rows = group.rows.iter().filter(|row| row.is_meaningful() && row.nominal_ns.is_none());
        let rows = rows.filter(|row| is_own(&row.subject) == own && !row.subject.starts_with(LOCKED));
        let medians = rows.filter_map(|row| Some((row.figures.as_ref()?.p50_ns, row.subject.clone())));
        medians.min_by(|a, b| a.0.total_cmp(&b.0))
    };
    let mut compared = 0;
    let faster = groups.iter().filter_map(|group| {
        let (own, peer) = (fastest(group, true)?, fastest(group, false)?);
        compared += 1;
        (peer.0 < own.0).then(|| {
            let times = [peer.0, own.0].map(format_nanos);
            format!("{}: {} {}, {} {}", group.title(), peer.1, times[0], own.1, times[1])
        })
    });
    let faster: Vec<String> = faster.collect();
    (faster, compared)
}

/// First words of the subject that measures a locked instruction, which is no peer.
const LOCKED: &str = "L:";

fn is_own(subject: &str) -> bool {
    subject.to_lowercase().starts_with("punctual")
}

/// Returns the outer percentiles of a row that waits for an event, if it has enough samples.
pub(crate) fn tail(row: &Row) -> Option<String> {
    let figures = row.figures.as_ref().filter(|_| row.condition.is_some())?;
    let outer = [("p99.9", figures.p999_ns), ("p99.99", figures.p9999_ns)];
    let texts = outer.map(|(name, ns)| Some(format!("{name} {}", format_nanos(ns?))));
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Returns the causes of a row's gaps.
pub(crate) fn causes(title: &str, row: &Row) -> Table {
    let heads = ["longest", "total", "gaps mostly caused"].map(Column::right);
    let mut table = Table::new([Column::left(title)].into_iter().chain(heads));
    for cause in &row.causes {
        let (max, total) = (Cell::nanos(cause.max_ns), Cell::nanos(cause.total_ns));
        table.row([Cell::new(&*cause.name), max, total, Cell::count(cause.count)]);
    }
    table
}

/// Returns rules, with the verdict and the observation for every subject.
pub(crate) fn checks(checks: &[Check], footnotes: &mut Footnotes) -> Table {
    let heads =
        [Column::wrap("rule"), Column::left("subject"), Column::left("verdict"), Column::wrap("observed")];
    let mut table = Table::new(heads);
    for check in checks {
        let class = match check.verdict {
            Verdict::Passed => "good",
            Verdict::Failed => "fault",
            _ => "muted",
        };
        let is_as_expected = check.observed.starts_with(&check.expected);
        let expected = if is_as_expected { String::new() } else { format!("expected: {}", check.expected) };
        let marks: Vec<usize> = check.why.iter().map(|why| footnotes.number(why)).collect();
        let verdict = Cell::new(check.verdict.text()).class(class);
        let cells = [Cell::new(&*check.rule), Cell::new(&*check.subject), verdict];
        table.row(cells.into_iter().chain([Cell::new(&*check.observed).below(expected)])).marks(&marks);
    }
    table
}

/// Returns the changes since an earlier run, regressions first.
pub(crate) fn comparison(comparison: &Comparison) -> Table {
    let heads = ["before", "now", "ratio", "ratio of maxima"].map(Column::right);
    let heads = [Column::left(""), Column::left("p50, or rule")].into_iter().chain(heads);
    let mut table = Table::new(heads);
    for check in &comparison.checks {
        let change = if check.is_regression() { Change::Slower } else { Change::Same };
        let text = if check.is_regression() { Change::Slower.text() } else { "changed" };
        let verdicts = [check.verdicts.0, check.verdicts.1].map(|verdict| Cell::new(verdict.text()));
        let name = [changed(change, text), Cell::new(&*check.id)];
        table.row(name.into_iter().chain(verdicts).chain([Cell::new(""), Cell::new("")]));
    }
    let mut rows: Vec<_> = comparison.rows.iter().collect();
    rows.sort_by_key(|row| row.change != Change::Slower);
    for row in rows {
        let text = if row.change == Change::Same { "" } else { row.change.text() };
        let name = [changed(row.change, text), Cell::new(&*row.id)];
        let medians = [row.p50_ns.map(|(old, _)| old), row.p50_ns.map(|(_, new)| new)].map(Cell::nanos);
        let ratios = [row.p50_ratio, row.max_ratio]
            .map(|ratio| ratio.map_or(Cell::none(), |ratio| Cell::new(ratio_text(ratio))));
        table.row(name.into_iter().chain(medians).chain(ratios));
    }
    table
}

fn changed(change: Change, text: &str) -> Cell {
    Cell::new(text).class(match change {
        Change::Slower => "fault",
        Change::Faster => "good",
        _ => "muted",
    })
}

/// Formats a quantity with its unit.
pub(crate) fn quantity_text(quantity: &Quantity) -> String {
    match quantity.unit.as_str() {
        "ns" => format_nanos(quantity.value),
        "%" => format!("{:.3} %", quantity.value),
        "1/s" if quantity.value >= 1e6 => format!("{:.1} million/s", quantity.value / 1e6),
        "1/s" => format!("{:.0}/s", quantity.value),
        "×" => ratio_text(quantity.value),
        "L" => format!("{:.2} L", quantity.value),
        unit => format!("{} {unit}", quantity.value).trim_end().to_owned(),
    }
}

//! A run as tables for a terminal. The maximum comes first.

use std::fmt::Write as _;

use crate::compare::{Change, Comparison};
use crate::grouping::{Footnotes, Group, groups, ratio_text};
use crate::model::{Check, Row, Run, Suite, Verdict};
use crate::stats::Distribution;
use crate::time::humane;

/// What is known before anything is measured: machine, own overhead, remarks.
pub fn head(run: &Run) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}\n{}", run.machine.hardware_line(), run.machine.kernel_line());
    let other =
        run.settings.other_cpu.map_or(String::new(), |cpu| format!(" (and {cpu} where two are needed)"));
    let _ = writeln!(out, "CPU {}{other}, {} samples a row", run.settings.cpu, run.settings.samples);
    let empty = &run.overhead;
    let _ = writeln!(
        out,
        "own overhead: an empty measurement takes {} at most, {} at the median (by {}, in steps of {}); \
         no figure has it subtracted",
        humane(empty.max_ns),
        humane(empty.p50_ns),
        run.machine.clock,
        humane(run.machine.clock_step_ns)
    );
    for note in &run.machine.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// One suite: its rows in groups, its checks, its notes.
///
/// `empty_ns` is the median of an empty measurement: no ratio is given to what is mostly that.
pub fn suite(suite: &Suite, empty_ns: f64) -> String {
    let mut out = format!("{}: {} ({:.1} s)\n", suite.name, suite.title, suite.took_s);
    let mut footnotes = Footnotes::default();
    let groups = groups(suite);
    if !groups.is_empty() {
        rows(&groups, empty_ns, &mut footnotes, &mut out);
    }
    if !suite.checks.is_empty() {
        checks(&suite.checks, &mut footnotes, &mut out);
    }
    for (number, text) in footnotes.iter() {
        let _ = writeln!(out, "[{number}] {text}");
    }
    for note in &suite.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

const COLUMNS: [&str; 6] = ["max", "p99", "p50", "min", "mean", "σ"];
const RATIO: &str = "p50:POSIX";

fn rows(groups: &[Group<'_>], empty_ns: f64, footnotes: &mut Footnotes, out: &mut String) {
    let labels = groups.iter().flat_map(|group| &group.rows).flat_map(|row| {
        let published = row.published.iter().map(|published| published_label(&published.system));
        published.chain([row.subject.clone()])
    });
    let width = 2 + labels.map(|label| label.chars().count()).max().unwrap_or(0);
    let line = |out: &mut String, label: &str, cells: &[String], end: &str| {
        let mut text = format!("  {label:width$}");
        for cell in cells {
            let _ = write!(text, " {cell:>8}");
        }
        let _ = writeln!(out, "{}", format!("{text}  {end}").trim_end());
    };
    out.push('\n');
    let ratio = |group: &Group<'_>, row: &Row| group.ratio(row, empty_ns);
    let any_ratio = groups.iter().any(|group| group.rows.iter().any(|row| ratio(group, row).is_some()));
    let mut heads = COLUMNS.map(str::to_owned).to_vec();
    heads.extend(any_ratio.then(|| RATIO.to_owned()));
    line(out, "", &heads, "");
    for group in groups {
        let _ = writeln!(out, "{}", group.title());
        for row in &group.rows {
            let notes: Vec<String> =
                row.why.iter().map(|why| format!("[{}]", footnotes.number(why))).collect();
            match &row.figures {
                Some(figures) => {
                    let mut cells = cells(figures).to_vec();
                    // One wider than the others, as its head is.
                    let ratio = ratio(group, row).map_or(String::new(), ratio_text);
                    cells.extend(any_ratio.then(|| format!("{ratio:>9}")));
                    line(out, &row.subject, &cells, &notes.concat());
                }
                None => line(out, &row.subject, &[format!("not measured {}", notes.concat())], ""),
            }
            details(row, width, out);
        }
        let mut shown = Vec::new();
        for published in group.rows.iter().flat_map(|row| &row.published) {
            if shown.contains(&published) {
                continue;
            }
            shown.push(published);
            let time = |ns: Option<f64>| ns.map_or("–".into(), humane);
            let cells = [
                time(published.max_ns),
                "–".into(),
                "–".into(),
                time(published.min_ns),
                humane(published.mean_ns),
                time(published.sigma_ns),
                String::new(),
            ];
            let number = footnotes.number(&format!("published: {}", published.source));
            line(out, &published_label(&published.system), &cells, &format!("[{number}]"));
        }
    }
    out.push('\n');
}

fn published_label(system: &str) -> String {
    format!("published: {system}")
}

/// Maximum first, as in [`COLUMNS`].
fn cells(figures: &Distribution) -> [String; 6] {
    [figures.max_ns, figures.p99_ns, figures.p50_ns, figures.min_ns, figures.mean_ns, figures.sigma_ns]
        .map(humane)
}

/// Single numbers and causes of a row.
fn details(row: &Row, width: usize, out: &mut String) {
    for quantity in &row.quantities {
        let _ = writeln!(out, "    {}: {}", quantity.name, quantity_text(quantity));
    }
    if row.causes.is_empty() {
        return;
    }
    let width = row.causes.iter().map(|cause| cause.name.chars().count()).max().unwrap_or(0).max(width - 2);
    let _ = writeln!(
        out,
        "    {:width$} {:>8} {:>8} {:>12}",
        "what took the time", "max", "in all", "gaps by it"
    );
    for cause in &row.causes {
        let (max, total) = (humane(cause.max_ns), humane(cause.total_ns));
        let _ = writeln!(out, "    {:width$} {max:>8} {total:>8} {:>12}", cause.name, cause.count);
    }
}

/// A single number with its unit.
pub(crate) fn quantity_text(quantity: &crate::model::Quantity) -> String {
    match quantity.unit.as_str() {
        "ns" => humane(quantity.value),
        "%" => format!("{:.3} %", quantity.value),
        "1/s" if quantity.value >= 1e6 => format!("{:.1} million/s", quantity.value / 1e6),
        "1/s" => format!("{:.0}/s", quantity.value),
        "×" => ratio_text(quantity.value),
        unit => format!("{} {unit}", quantity.value).trim_end().to_owned(),
    }
}

/// Rule by rule, with those who were to keep it.
fn checks(checks: &[Check], footnotes: &mut Footnotes, out: &mut String) {
    out.push('\n');
    let mut rule = "";
    for check in checks {
        if check.rule != rule {
            rule = &check.rule;
            let _ = writeln!(out, "{rule}");
        }
        let notes: Vec<String> =
            check.why.iter().map(|why| format!(" [{}]", footnotes.number(why))).collect();
        let (verdict, notes) = (check.verdict.text(), notes.concat());
        let _ = writeln!(out, "  {verdict:4}  {}: {}{notes}", check.subject, check.observed);
        if check.verdict == Verdict::Failed {
            let _ = writeln!(out, "        expected: {}", check.expected);
        }
    }
    out.push('\n');
}

/// What has changed since an earlier run: everything that has become slower or faster, and how many have not.
pub fn comparison(comparison: &Comparison) -> String {
    let mut out = format!("compared with the run of {}\n", comparison.old_started);
    for note in &comparison.notes {
        let _ = writeln!(out, "note: {note}");
    }
    for check in &comparison.checks {
        let (old, new) = check.verdicts;
        let mark = if check.is_regression() { "REGRESSION" } else { "changed" };
        let _ = writeln!(out, "  {mark:10}  {}: {} before, {} now", check.id, old.text(), new.text());
    }
    let width = comparison.rows.iter().map(|row| row.id.chars().count()).max().unwrap_or(0);
    let ratio = |ratio: Option<f64>| ratio.map_or("–".into(), ratio_text);
    for row in &comparison.rows {
        let Some((old, new)) = row.p50_ns else { continue };
        let _ = writeln!(
            out,
            "  {:10}  {:width$}  p50 {:>8} → {:>8}  {:>8}   max {:>8}",
            if row.change == Change::Same { "" } else { row.change.text() },
            row.id,
            humane(old),
            humane(new),
            ratio(row.p50_ratio),
            ratio(row.max_ratio)
        );
    }
    let _ = writeln!(out, "{} regressions in {} rows", comparison.regressions(), comparison.rows.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{row, run};

    #[test]
    fn the_maximum_stands_first_and_published_figures_are_called_so() {
        let run = run(vec![row("a", "Punctual", 1000), row("b", "POSIX", 4000)]);
        let text = suite(&run.suites[0], 20.0);
        let head = text.lines().find(|line| line.contains("p99")).unwrap();
        assert!(head.trim_start().starts_with("max"), "{head}");
        let own = text.lines().find(|line| line.starts_with("  Punctual")).unwrap();
        assert!(own.contains("1.10 µs") && own.ends_with("0.25 ×"), "{own}");
        assert!(
            text.contains("published: Another") && text.contains("[1] published: Somebody 2020, table 1")
        );
        assert!(text.contains("pass  Punctual: a, b") && text.contains("note: a note"));
    }

    #[test]
    fn what_was_not_measured_says_why() {
        let mut unmeasured = row("a", "Punctual", 1000);
        unmeasured.figures = None;
        unmeasured.why = vec!["no SCHED_FIFO".into()];
        let text = suite(&run(vec![unmeasured]).suites[0], 20.0);
        assert!(text.contains("not measured [1]") && text.contains("[1] no SCHED_FIFO"), "{text}");
    }

    #[test]
    fn the_own_overhead_is_in_the_head() {
        let text = head(&run(Vec::new()));
        assert!(text.contains("an empty measurement takes 22.0 ns at most"), "{text}");
    }

    #[test]
    fn a_regression_is_marked() {
        let (old, new) = (run(vec![row("a", "Punctual", 1000)]), run(vec![row("a", "Punctual", 3000)]));
        let text = comparison(&Comparison::new(&old, &new));
        assert!(text.contains("REGRESSION  a  p50") && text.contains("3.00 ×"), "{text}");
    }
}

//! A run as tables for a terminal. The maximum comes first.

use std::fmt::Write as _;

use punctual_report::format::format_nanos;

use crate::compare::Comparison;
use crate::grouping::{Footnotes, Group, groups};
use crate::model::{Check, Run, Suite, Verdict};
use crate::tables::{self, Figures, quantity_text};

/// Returns the header: the machine, the measurement overhead, and notes.
pub fn head(run: &Run) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}\n{}", run.machine.hardware_line(), run.machine.kernel_line());
    let other =
        run.settings.other_cpu.map_or(String::new(), |cpu| format!(" (and {cpu} where two are needed)"));
    let _ = writeln!(out, "CPU {}{other}, {} samples a row", run.settings.cpu, run.settings.samples);
    let empty = &run.overhead;
    let _ = writeln!(
        out,
        "own overhead: an empty measurement takes {} at most, {} at the median (clock: {}, resolution {}); \
         it is not subtracted from any figure{}",
        format_nanos(empty.max_ns),
        format_nanos(empty.p50_ns),
        run.machine.clock,
        format_nanos(run.machine.clock_step_ns),
        run.machine
            .locked_ns
            .map_or(String::new(), |ns| format!("; L, a locked instruction, takes {}", format_nanos(ns)))
    );
    for note in &run.machine.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// Returns one suite: its rows in groups, its checks, its notes.
///
/// `empty_ns` is the median of an empty measurement: rows that mostly consist of that get no ratio.
pub fn suite(suite: &Suite, empty_ns: f64) -> String {
    let stolen = suite.stolen_s.filter(|&stolen| stolen > 0.0);
    let stolen = stolen.map_or(String::new(), |s| format!("; {s:.2} s of steal time"));
    let mut out = format!("{}: {} ({:.1} s{stolen})\n", suite.name, suite.title, suite.took_s);
    body(suite, empty_ns, &mut out);
    out
}

fn body(suite: &Suite, empty_ns: f64, out: &mut String) {
    let mut footnotes = Footnotes::default();
    if !suite.answers.is_empty() {
        let _ = writeln!(out, "\n{}", tables::answers(&suite.answers, &mut footnotes).indent(2));
    }
    let groups = groups(suite);
    if !groups.is_empty() {
        rows(&groups, empty_ns, &mut footnotes, out);
        let (faster, compared) = tables::faster_peers(&groups);
        if compared > 0 {
            let _ = writeln!(out, "a peer has the lower median in {} of {compared} groups", faster.len());
            faster.iter().for_each(|line| *out += &format!("  {line}\n"));
        }
    }
    if !suite.checks.is_empty() {
        checks(&suite.checks, &mut footnotes, out);
    }
    for (number, text) in footnotes.iter() {
        let _ = writeln!(out, "[{number}] {text}");
    }
    for note in &suite.notes {
        let _ = writeln!(out, "note: {note}");
    }
}

fn rows(groups: &[Group<'_>], empty_ns: f64, footnotes: &mut Footnotes, out: &mut String) {
    let mut figures = Figures::new(groups, empty_ns, false);
    for group in groups {
        figures.table.heading(group.title());
        figures.add(group, footnotes, |row, table| {
            if let Some(tail) = tables::tail(row) {
                table.lines(format!("    {tail}"));
            }
            for quantity in &row.quantities {
                table.lines(format!("    {}: {}", quantity.name, quantity_text(quantity)));
            }
            if !row.causes.is_empty() {
                table.lines(tables::causes("causes of gaps", row).indent(4).to_string());
            }
        });
    }
    let _ = writeln!(out, "\n{}", figures.table.indent(2));
}

/// Adds each rule, with the verdict on every subject.
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

/// Returns the changes since an earlier run: every row that became slower or faster, and the number
/// of regressions.
pub fn comparison(comparison: &Comparison) -> String {
    let mut out = format!("compared with the run of {}\n", comparison.old_started);
    for note in &comparison.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let _ = write!(out, "{}", tables::comparison(comparison).indent(2));
    for beside in &comparison.beside {
        let _ = writeln!(out, "\nside by side, {}: {}", beside.name, beside.title);
        // No ratios between different machines.
        body(beside, f64::INFINITY, &mut out);
    }
    let _ = writeln!(out, "{} regressions in {} rows", comparison.regressions(), comparison.rows.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Answer;
    use crate::sample::{row, run};

    #[test]
    fn prints_maximum_first_and_labels_published_figures() {
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
    fn answers_each_period_with_its_sample_size() {
        let held = Answer {
            period_ns: 1_000_000,
            condition: "idle".into(),
            releases: 5_000,
            worst_ns: Some(93_000),
            miss_rate_bound: Some(0.0006),
            disturbed: Some("the host took 30.0 ms during it".into()),
            ..Answer::default()
        };
        let missed = Answer {
            condition: "load".into(),
            misses: 2,
            worst_ns: Some(1_200_000),
            miss_rate_bound: None,
            disturbed: None,
            ..held.clone()
        };
        let unknown = Answer { releases: 0, why: vec!["not measured: no thread".into()], ..missed.clone() };
        let answers = vec![held, missed, unknown];
        let text = suite(&Suite { answers, ..Suite::default() }, 20.0);
        let line =
            |part: &str| text.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{text}"));
        assert!(line("idle").contains("1.00 ms (1000 Hz)") || line("idle").contains("1 000 µs"), "{text}");
        assert!(
            line("idle").contains("yes: fewer than 0.060 % are late") && line("idle").contains("[1]"),
            "{text}"
        );
        assert!(line("load").contains("1.20 ms") && line("load").contains("no"), "{text}");
        assert!(text.contains("unknown") && text.contains("[2] not measured: no thread"), "{text}");
        assert!(text.contains("[1] disturbed: the host took 30.0 ms during it"), "{text}");
    }

    #[test]
    fn lists_groups_in_which_a_peer_is_faster() {
        let run = run(vec![row("a", "Punctual", 4000), row("b", "POSIX", 1000)]);
        let text = suite(&run.suites[0], 20.0);
        assert!(text.contains("a peer has the lower median in 1 of 1 groups\n"), "{text}");
        assert!(
            text.lines().any(|line| line.contains("Switch, idle: POSIX 1.05 µs, Punctual 4.20 µs")),
            "{text}"
        );
    }

    #[test]
    fn prints_reason_of_unmeasured_row() {
        let mut unmeasured = row("a", "Punctual", 1000);
        unmeasured.figures = None;
        unmeasured.why = vec!["no SCHED_FIFO".into()];
        let text = suite(&run(vec![unmeasured]).suites[0], 20.0);
        let line = text.lines().find(|line| line.contains("not measured")).unwrap();
        assert!(line.ends_with("  [1]") && text.contains("\n[1] no SCHED_FIFO"), "{text}");
    }

    #[test]
    fn prints_own_overhead_in_head() {
        let text = head(&run(Vec::new()));
        assert!(text.contains("an empty measurement takes 22.0 ns at most"), "{text}");
    }

    #[test]
    fn marks_regression() {
        let (old, new) = (run(vec![row("a", "Punctual", 1000)]), run(vec![row("a", "Punctual", 3000)]));
        let text = comparison(&Comparison::new(&old, &new));
        assert!(text.contains("  REGRESSION  a ") && text.contains("3.00 ×"), "{text}");
    }
}

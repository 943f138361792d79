//! The result on one screen.

use punctual_report::format::{format_count, format_part};
use punctual_report::table::{Cell, Column, Table};
use punctual_report::text::wrapped;

use super::Lines;
use super::verdict::{Cause, Task, Unknown, Verdict};
use crate::trace::text::{height, width};

/// Maximum number of tasks and of unknown values, if there is room.
const MAX_ROWS: usize = 12;

/// Returns the result with as many tasks and unknown values as fit on a screen.
pub(super) fn text(verdict: &Verdict, lines: &Lines) -> String {
    within(verdict, lines, width(), height())
}

fn within(verdict: &Verdict, lines: &Lines, width: usize, height: usize) -> String {
    let fits = |rows: Rows| {
        let text = with_rows(verdict, lines, rows, width);
        // The terminal breaks commands, which are longer than a line at times.
        let lines: usize = text.lines().map(|line| line.chars().count().div_ceil(width).max(1)).sum();
        (lines < height).then_some(text)
    };
    let least = Rows { tasks: 1, unknown: 0 };
    // Tasks take precedence over unknown values.
    let tasks = (1..=MAX_ROWS).rev().find(|&tasks| fits(Rows { tasks, ..least }).is_some()).unwrap_or(1);
    let unknown = (0..=MAX_ROWS).rev().find_map(|unknown| fits(Rows { tasks, unknown }));
    unknown.unwrap_or_else(|| with_rows(verdict, lines, least, width))
}

/// Numbers of printed rows.
#[derive(Debug, Clone, Copy)]
struct Rows {
    tasks: usize,
    unknown: usize,
}

fn with_rows(verdict: &Verdict, lines: &Lines, rows: Rows, width: usize) -> String {
    let mut out = wrapped("", &lines.answer, 2, width);
    out += &wrapped("", &lines.about, 2, width);
    if let Some(margin) = margin(verdict) {
        out += &wrapped("", &margin, 2, width);
    }
    let tasks = &verdict.subject.tasks;
    if !tasks.is_empty() {
        out += &format!("\n{}", table(&tasks[..tasks.len().min(rows.tasks)]).within(width));
        out += &more(tasks.len(), rows.tasks, "tasks");
    }
    if !verdict.causes.is_empty() {
        out += "\nLargest causes of delay\n";
        for (number, cause) in verdict.causes.iter().enumerate() {
            out += &wrapped(&format!("{} ", number + 1), &describe(cause), 2, width);
            let remedy = remedy(cause);
            // A command is never wrapped, so that it can be copied.
            if cause.is_command {
                out += &format!("  {remedy}\n");
            } else {
                out += &wrapped("  ", remedy, 2, width);
            }
        }
    }
    let unknown = &verdict.subject.unknown;
    if !unknown.is_empty() {
        out += "\nUnknown\n";
        for Unknown { what, why } in unknown.iter().take(rows.unknown) {
            out += &wrapped("  ", &format!("{what}: {why}"), 4, width);
        }
        out += &more(unknown.len(), rows.unknown, "values");
    }
    out
}

/// Returns a line with the number of rows left out.
fn more(count: usize, rows: usize, noun: &str) -> String {
    match count.saturating_sub(rows) {
        0 => String::new(),
        all if rows == 0 => format!("  {all} {noun}: --json lists all\n"),
        more => format!("  {more} more {noun}: --json lists all\n"),
    }
}

/// Returns a sentence with the margin of the worst task, if any has one.
pub(super) fn margin(verdict: &Verdict) -> Option<String> {
    let task = verdict.worst()?;
    let (deadline, worst) = (task.deadline?, task.worst()?);
    let origin = if task.bound >= task.seen { "proven" } else { "measured" };
    let margin = match deadline.checked_sub(worst) {
        Some(left) => format!("{} left", format_part(left)),
        None => format!("{} too long", format_part(worst - deadline)),
    };
    Some(format!(
        "worst: `{}` takes {} ({origin}) of {}: {margin}, {}",
        task.name,
        format_part(worst),
        format_part(deadline),
        percent(task).unwrap_or_default()
    ))
}

/// Returns the margin in percent of the deadline, rounded down.
pub(super) fn percent(task: &Task) -> Option<String> {
    let percent = (task.margin()? * 100.0).floor();
    let sign = if percent < 0.0 { "−" } else { "" };
    Some(format!("{sign}{} %", format_count(percent.abs() as u64)))
}

/// Returns `true` if the table has the bounds of the profiled run.
pub(super) fn is_profiled(tasks: &[Task]) -> bool {
    tasks.iter().any(|task| task.profiled_bound.is_some())
}

pub(super) fn table(tasks: &[Task]) -> Table {
    // Next to the responses, which contain the cost of the profiler as well.
    let is_profiled = is_profiled(tasks);
    let columns = ["T", "D", "seen"].into_iter().chain(is_profiled.then_some("prof.")).chain(["bound"]);
    let first = [Column::left("times in µs").at_most(24)];
    let last = ["margin", "missed"].map(Column::right);
    let mut table = Table::new(first.into_iter().chain(columns.map(Column::micros)).chain(last));
    for task in tasks {
        let is_late = |ns: Option<u64>| ns.zip(task.deadline).is_some_and(|(ns, deadline)| ns > deadline);
        let response = |ns| Cell::micros(ns).class(if is_late(ns) { "fault" } else { "" });
        let margin = percent(task).map_or_else(Cell::none, Cell::new);
        let profiled = is_profiled.then(|| Cell::micros(task.profiled_bound));
        let first = [
            Cell::new(&task.name),
            Cell::micros(task.period),
            Cell::micros(task.deadline),
            response(task.seen),
        ];
        let last = [
            response(task.bound),
            margin.class(if is_late(task.worst()) { "fault" } else { "" }),
            Cell::new(task.missed()),
        ];
        table.row(first.into_iter().chain(profiled).chain(last));
    }
    table
}

/// Describes a cause with its cost.
pub(super) fn describe(cause: &Cause) -> String {
    match &cause.cost {
        Some(cost) => format!("{} ({cost})", cause.what),
        None => cause.what.clone(),
    }
}

/// Returns the command that removes a cause, or a remark if no command does.
pub(super) fn remedy(cause: &Cause) -> &str {
    cause.command.as_deref().unwrap_or("no command removes it")
}

#[cfg(test)]
mod tests {
    use super::super::verdict::{Answer, Kind, Subject};
    use super::*;

    fn verdict() -> Verdict {
        let task = |number: u64| Task {
            name: format!("task_{number}"),
            period: Some(1_000_000),
            deadline: Some(1_000_000),
            seen: Some(number * 1_000),
            bound: Some(1_300_000 - number * 100_000),
            jobs: Some(5_000),
            misses: Some(0),
            ..Task::default()
        };
        let cause = |number: u64| Cause {
            source: "steal",
            what: format!("cause {number}, with a description that fills a whole line of a narrow screen"),
            cost: Some("typically 10.0 ms now and then".into()),
            command: Some("echo 0 > /proc/sys/kernel/timer_migration".into()),
            is_command: true,
            lasts: None,
        };
        let subject = Subject {
            kind: Kind::App,
            name: "app".into(),
            length: Some(5_000_000_000),
            tasks: (1..10).map(task).collect(),
            causes: Vec::new(),
            unknown: (0..9).map(|n| Unknown::new(format!("value {n}"), "it was not recorded")).collect(),
            invalid: None,
        };
        let causes = (1..=3).map(cause).collect();
        Verdict { answer: Answer::No, reason: "`task_1` can miss its deadline".into(), subject, causes }
    }

    #[test]
    fn wraps_remedies_that_are_no_commands() {
        let mut verdict = verdict();
        let remedy = "in the firmware setup: disable legacy USB, power management and error reporting by SMI";
        verdict.causes[0].command = Some(remedy.into());
        verdict.causes[0].is_command = false;
        let lines = Lines { answer: "no".into(), about: "app".into() };
        let text = within(&verdict, &lines, 80, 50);
        assert!(text.contains("and error\n  reporting by SMI\n"), "{text}");
    }

    #[test]
    fn fits_a_small_terminal_without_cutting_commands() {
        let verdict = verdict();
        let lines = Lines { answer: format!("no: {}", verdict.reason), about: "app; 5.00 s long".into() };
        let text = within(&verdict, &lines, 80, 24);
        assert!(text.lines().count() < 24, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.starts_with("no: `task_1` can miss its deadline\n"), "{text}");
        assert!(text.contains("takes 1 200 µs (proven) of 1 000 µs: 200 µs too long, −20 %"), "{text}");
        assert_eq!(text.matches("echo 0 > /proc/sys/kernel/timer_migration\n").count(), 3, "{text}");
        assert!(text.contains("--json lists all"), "{text}");
        // Sentences of two lines leave no room for an unknown value.
        let long = Lines { answer: lines.answer.repeat(3), about: "app; ".repeat(20) };
        let full = within(&verdict, &long, 80, 24);
        assert!(full.lines().count() < 24, "{full}");
        assert!(full.contains("\nUnknown\n  9 values: --json lists all\n"), "{full}");
        let large = within(&verdict, &lines, 120, 50);
        assert!(
            large.contains("task_9") && large.contains("value 8") && !large.contains("--json"),
            "{large}"
        );
    }
}

//! The result as text: a table of bounds with their terms, the verdict, and the reasons.

use std::fmt::Write as _;

use punctual_analysis::assign::Assignment;
use punctual_analysis::bound::{Analysis, Bound, Exactness};
use punctual_analysis::chain::reaction;
use punctual_analysis::explain::{explain, tightest};
use punctual_analysis::margin::{AllExecutions, Limit, Margins};
use punctual_analysis::of_run;
use punctual_analysis::system::{System, Task};
use punctual_report::format::{format_part, format_significant};
use punctual_report::table::{Cell, Column, Table};
use punctual_report::text::wrapped;

use crate::trace::text::{fitted, width};

/// Formats all output; `contradictions` are observations that violate the bounds.
pub(super) fn report(
    system: &System,
    analysis: &Analysis,
    margins: &Margins,
    contradictions: Vec<String>,
) -> String {
    let mut out = fitted(&bounds(system, analysis));
    out += &wrapped("", &legend(system), 0, width());
    if !margins.tasks.is_empty() {
        let _ = write!(out, "\n{}", fitted(&limits(system, margins)));
    }
    let _ = write!(out, "\n{}", wrapped("", &verdict(system, analysis, margins.all), 0, width()));
    if let Some(tightest) = tightest(system, analysis) {
        out += &explanation(system, analysis, tightest);
    }
    if !system.chains.is_empty() {
        let _ = write!(out, "\n{}", fitted(&chains(system, analysis)));
    }
    out + &reservations(system, contradictions)
}

/// Explains the bound of a task in a paragraph; the page explains all.
pub(super) fn explanation(system: &System, analysis: &Analysis, task: usize) -> String {
    let sentences = explain(system, analysis, task);
    let lines = sentences.into_iter().map(|sentence| wrapped("  ", &sentence, 4, width()));
    format!("\n{}", lines.collect::<String>())
}

/// Lists contradictions of the bounds, and their assumptions.
pub(super) fn reservations(system: &System, contradictions: Vec<String>) -> String {
    let mut out = String::new();
    for sentence in contradictions {
        let _ = write!(out, "\n{}", wrapped("", &sentence, 0, width()));
    }
    if !system.assumptions.is_empty() {
        out += "\nAssumed because it is unknown:\n";
        for assumption in &system.assumptions {
            out += &wrapped("  ", assumption, 4, width());
        }
    }
    out
}

/// Describes the columns of the bounds.
pub(super) fn legend(system: &System) -> String {
    let ratio = match system.of_profiled_run() {
        Some(_) => {
            "The observed run was profiled: the column `prof.` shows its bounds, including the cost of \
             profiling."
        }
        None => "",
    };
    format!("{LEGEND} {ratio}").trim_end().to_owned()
}

pub(super) const LEGEND: &str = "Times in µs. R = J + B + C + I + SS − A: J lateness of the release, B blocking, C own execution with \
                      spinning and waiting, I interference, SS scheduling overhead, A from the start of the busy window \
                      to the release, if the worst job is not the first in it. ≤ sufficient, = exact.";

/// Returns a table with a row per task, highest level first.
pub(super) fn bounds(system: &System, analysis: &Analysis) -> Table {
    bounds_of(system, analysis, system.tasks.len())
}

/// Returns the same for the first `count` tasks only.
pub(super) fn bounds_of(system: &System, analysis: &Analysis, count: usize) -> Table {
    let mut columns = vec![
        Column::left("task"),
        Column::right("level"),
        Column::micros("J"),
        Column::micros("B"),
        Column::micros("C"),
        Column::micros("I"),
        Column::micros("SS"),
    ];
    let has_released = analysis.tasks.iter().flatten().any(|bound| bound.released > 0);
    if has_released {
        columns.push(Column::micros("−A"));
    }
    columns.extend([Column::left("").opens(), Column::micros("bound")]);
    // The observed maximum is next to the bound that applies to it, and the deadline to that of the
    // app. A profiled run has another bound, because the overhead of profiling is not part of
    // the app.
    let is_profiled = system.of_profiled_run().is_some();
    columns.extend(ordered(
        [Column::micros("D"), Column::right("left")],
        is_profiled.then(|| Column::micros("prof.")),
        [Column::micros("seen"), Column::right("ratio")],
    ));
    let mut table = Table::new(columns);
    let of_run = of_run(system, analysis);
    for at in by_level(system).into_iter().filter(|&at| at < count) {
        let task = &system.tasks[at];
        let start = [Cell::new(&task.name), Cell::new(task.level.to_string())];
        let mut cells = match &analysis.tasks[at] {
            Ok(bound) => terms(bound, has_released),
            Err(_) => {
                let mut cells: Vec<Cell> = (0..6 + usize::from(has_released)).map(|_| Cell::none()).collect();
                cells.push(Cell::new("none").class("fault"));
                cells
            }
        };
        let left = analysis.tasks[at].as_ref().ok().and_then(|bound| left(task, bound));
        let deadline = [Cell::micros(task.deadline), left.unwrap_or_else(Cell::none)];
        let ratio = ratio(task, of_run[at]).unwrap_or_else(Cell::none);
        let seen = [Cell::micros(task.observed.response), ratio];
        cells.extend(ordered(deadline, is_profiled.then(|| Cell::micros(of_run[at])), seen));
        table.row(start.into_iter().chain(cells));
    }
    table
}

/// Orders the deadline, the bound of a profiled run if there is one, and the observed maximum.
fn ordered<T>(deadline: [T; 2], of_run: Option<T>, seen: [T; 2]) -> Vec<T> {
    match of_run {
        Some(of_run) => deadline.into_iter().chain([of_run]).chain(seen).collect(),
        None => seen.into_iter().chain(deadline).collect(),
    }
}

fn by_level(system: &System) -> Vec<usize> {
    let mut order: Vec<usize> = (0..system.tasks.len()).collect();
    order.sort_by_key(|&at| (system.tasks[at].partition, std::cmp::Reverse(system.tasks[at].level)));
    order
}

/// Returns the ratio of the bound to the observed maximum.
fn ratio(task: &Task, bound: Option<u64>) -> Option<Cell> {
    let ratio = bound? as f64 / task.observed.response.filter(|&seen| seen > 0)? as f64;
    Some(Cell::new(format_significant(ratio)).class(if ratio < 1.0 { "fault" } else { "" }))
}

/// Returns the margin between the bound and the deadline.
fn left(task: &Task, bound: &Bound) -> Option<Cell> {
    let deadline = task.deadline?;
    let share = (deadline as f64 - bound.response as f64) / (deadline as f64).max(1.0);
    let text = format!("{:.0} %", (share * 100.0).floor()).replace('-', "−");
    Some(Cell::new(text).class(if share < 0.0 { "fault" } else { "good" }))
}

fn terms(bound: &Bound, has_released: bool) -> Vec<Cell> {
    let blocking = bound.blocking.map_or(0, |blocking| blocking.time);
    let displaced: u64 = bound.interference.iter().map(|term| term.work.execution).sum();
    let overhead: u64 = bound.interference.iter().map(|term| term.work.overhead).sum();
    let mut cells = vec![
        Cell::micros(bound.jitter),
        Cell::micros(blocking),
        Cell::micros(bound.own.execution),
        Cell::micros(displaced + bound.not_supplied),
        Cell::micros(bound.own.overhead + overhead),
    ];
    if has_released {
        cells.push(if bound.released > 0 { Cell::micros(bound.released) } else { Cell::none() });
    }
    cells.push(Cell::new(if bound.exactness == Exactness::Exact { "=" } else { "≤" }));
    cells.push(Cell::micros(bound.response));
    cells
}

/// Returns the range in which each value may change alone.
pub(super) fn limits(system: &System, margins: &Margins) -> Table {
    let mut table = Table::new([
        Column::left("alone"),
        Column::micros("C up to"),
        Column::left("misses"),
        Column::micros("T down to"),
        Column::left("misses"),
        Column::micros("J up to"),
        Column::left("misses"),
        Column::wrap("holds up to"),
    ]);
    let name = |at: Option<usize>| at.map_or_else(Cell::none, |at| Cell::new(&system.tasks[at].name));
    let limit = |limit: &Limit| match limit.first {
        Some(_) => Cell::micros(limit.until),
        None => Cell::new("any"),
    };
    for at in by_level(system) {
        let (task, margins) = (&system.tasks[at], &margins.tasks[at]);
        let locked = task.sections.iter().zip(&margins.holds).filter(|(section, _)| section.times > 0);
        // A line for each, because names are long.
        let mut holds = locked.map(|(section, limit)| {
            Cell::new(format!("{} {}", system.resources[section.resource].name, format_part(limit.until)))
        });
        let (period, first) = match &margins.period {
            Some(period) => (limit(period), name(period.first)),
            None => (Cell::none(), Cell::none()),
        };
        table.row([
            Cell::new(&task.name),
            limit(&margins.execution),
            name(margins.execution.first),
            period,
            first,
            limit(&margins.jitter),
            name(margins.jitter.first),
            holds.next().unwrap_or_else(Cell::none),
        ]);
        for hold in holds {
            let blank = (0..6).map(|_| Cell::new(""));
            table.row([Cell::new(&task.name)].into_iter().chain(blank).chain([hold]));
        }
    }
    table
}

/// Returns the common growth of all execution times with which every deadline is met.
pub(super) fn growth(all: AllExecutions) -> String {
    format!("{} %", format_significant((all.percent() * 10.0).floor() / 10.0))
}

/// Returns the common share of all execution times with which every deadline is met.
pub(super) fn share(all: AllExecutions) -> String {
    format!("{} %", format_significant(all.permille as f64 / 10.0))
}

/// Returns one line for the whole system.
pub(super) fn verdict(system: &System, analysis: &Analysis, all: AllExecutions) -> String {
    let name = |at: usize| format!("`{}`", system.tasks[at].name);
    let first =
        |at: Option<usize>| at.map_or(String::new(), |at| format!("; {} is the first to miss", name(at)));
    if analysis.is_schedulable(system) {
        if analysis.tasks.iter().zip(&system.tasks).all(|(_, task)| task.deadline.is_none()) {
            return "no task has a deadline: nothing can be missed".into();
        }
        return format!("schedulable; every C may grow by {}{}", growth(all), first(all.first));
    }
    let misses = |at: &usize| match &analysis.tasks[*at] {
        Ok(bound) => !bound.meets(system.tasks[*at].deadline),
        Err(_) => system.tasks[*at].deadline.is_some(),
    };
    let missing: Vec<String> = (0..system.tasks.len()).filter(misses).map(name).collect();
    let shrink = match all.permille {
        0 => "no shorter C would do".to_owned(),
        _ => format!("every C would have to shrink to {}", share(all)),
    };
    if missing.is_empty() {
        return "every task meets its deadline, and a chain does not: its reaction may take too long".into();
    }
    let s = if missing.len() == 1 { "es its deadline" } else { " their deadlines" };
    format!("not schedulable: {} miss{s}; {shrink}", missing.join(", "))
}

/// Returns the longest reaction of each chain.
pub(super) fn chains(system: &System, analysis: &Analysis) -> Table {
    let mut table = Table::new([
        Column::left("chain"),
        Column::micros("reaction ≤ µs"),
        Column::micros("D"),
        Column::wrap("tasks"),
    ]);
    for chain in &system.chains {
        let tasks: Vec<&str> = chain.tasks.iter().map(|&at| system.tasks[at].name.as_str()).collect();
        let (bound, what) = match reaction(system, analysis, chain) {
            Ok(bound) => {
                let is_late = chain.deadline.is_some_and(|deadline| bound > deadline);
                (Cell::micros(bound).class(if is_late { "fault" } else { "" }), tasks.join(" → "))
            }
            Err(why) => (Cell::none(), why),
        };
        let deadline = Cell::micros(chain.deadline);
        table.row([Cell::new(&chain.name), bound, deadline, Cell::new(what)]);
    }
    table
}

/// Returns observations that the model excludes, so that it must be incomplete; `of_run` are the
/// bounds of the observed run.
pub(crate) fn contradictions(system: &System, of_run: &[Option<u64>]) -> Vec<String> {
    let seen = system.tasks.iter().zip(of_run).filter_map(|(task, bound)| {
        let (seen, bound) = (task.observed.response?, (*bound)?);
        let excess = seen.checked_sub(bound).filter(|&excess| excess > 0)?;
        Some(format!(
            "The model does not match the run: a job of `{}` took {}, {} more than its bound. No \
             term contains that time; punctual trace report shows its cause.",
            task.name,
            format_part(seen),
            format_part(excess)
        ))
    });
    seen.collect()
}

/// Describes the changes to make in the source.
pub(super) fn assignment(system: &System, found: &Assignment) -> String {
    let mut table =
        Table::new([Column::left("task"), Column::right("level now"), Column::right("level found")]);
    let mut order: Vec<usize> = (0..system.tasks.len()).collect();
    order.sort_by_key(|&at| (system.tasks[at].partition, std::cmp::Reverse(found.levels[at])));
    let mut changes = Vec::new();
    for at in order {
        let (task, level) = (&system.tasks[at], found.levels[at]);
        let class = if task.level == level { "muted" } else { "key" };
        table.row([
            Cell::new(&task.name),
            Cell::new(task.level.to_string()),
            Cell::new(level.to_string()).class(class),
        ]);
        if task.level != level {
            changes.push(format!("  `{}`: priority = {level}\n", task.name));
        }
    }
    let verdict = match (found.is_schedulable, found.is_optimal) {
        (true, _) => "With these levels every deadline is met.",
        (false, true) => "No levels meet every deadline. These come closest.",
        (false, false) => {
            "These levels are in the order of deadlines, and a deadline is missed. Others may meet all."
        }
    };
    let mut out = format!("{table}\n{verdict}\n");
    if found.is_schedulable && !changes.is_empty() {
        let _ = write!(out, "Change in the source:\n{}", changes.concat());
    }
    out
}

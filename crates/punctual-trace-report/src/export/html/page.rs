//! The whole page: its head, an overview of all tasks, and a section for each.

use std::fmt::Write as _;

use punctual_report::format::format_counted;
use punctual_report::page::note;
use punctual_report::svg::fitted;
use punctual_report::table::{Cell, Column, Table};
use punctual_trace::jobs::Actor;
use punctual_trace::names::Names;
use punctual_trace::priority;
use punctual_trace::stats::{TaskStats, Term};

use super::task::{Section, kind_label};
use super::{MAX_BYTES, MAX_SECTIONS, Report, Written, head};
use crate::export::table::{SIGNS, time};

/// Maximum number of slots of all series together for each term: with many tasks, timelines need
/// the room more.
const SLOTS: usize = 8192;

/// Returns a name short enough to leave room for others.
pub(super) fn name(task: &TaskStats, names: &Names) -> String {
    fitted(&task.names(names).listed(task.key().actor), 330.0)
}

/// Returns the page and its summary.
pub(super) fn page(report: &Report<'_>) -> (String, Written) {
    let mut tasks: Vec<&TaskStats> = report.tasks.clone();
    // The tasks with the largest total time get sections, whether from few long jobs or many short
    // ones.
    tasks.sort_by_key(|task| std::cmp::Reverse(total(task)));
    let sections = tasks.len().min(MAX_SECTIONS);
    let (shown, others) = tasks.split_at_mut(sections);
    shown.sort_by_key(|task| order(task));
    others.sort_by_key(|task| order(task));
    let (shown, others) = (&*shown, &*others);
    let slots = SLOTS / shown.len().max(1);
    let mut sections: Vec<Section> =
        shown.iter().enumerate().map(|(index, task)| Section::new(index, task, report, slots)).collect();
    let mut page = head::head(report, &[shown, others].concat());
    overview(report, shown, others, page.body());
    for (stages, chain) in &report.chains {
        *page.body() += &super::chain::section(stages, chain, report);
    }

    // Timelines fill the rest of the page: the worst job of every task first, then the second
    // worst, and then ordinary ones.
    let used = page.len() + sections.iter().map(Section::len).sum::<usize>();
    let mut room = MAX_BYTES.saturating_sub(used);
    let most = sections.iter().map(Section::retained).max().unwrap_or(0);
    for rank in 0..most {
        for section in &mut sections {
            room -= section.add(rank, report, room);
        }
    }
    let timelines = sections.iter().map(|section| section.timelines()).sum();
    let left_out = sections.iter().map(Section::retained).sum::<usize>() - timelines;
    sections.into_iter().for_each(|section| *page.body() += &section.finish(report));
    let page = page.finish();
    let written = Written { bytes: page.len(), timelines, left_out };
    (page, written)
}

/// Threads before handlers, then by priority, then by length, longest first.
fn order(task: &TaskStats) -> impl Ord + use<> {
    let priority = task.priorities().map_or(i32::MAX, |priorities| priorities.0);
    (task.key().kind, priority, std::cmp::Reverse(longest(task)), task.key().actor)
}

/// Returns the total time of all jobs.
fn total(task: &TaskStats) -> u128 {
    let of = |term| {
        let summary = task.summary(term);
        (summary.mean * summary.count as f64) as u128
    };
    of(Term::Response).max(of(Term::Window))
}

/// Returns the longest job: R, or W if the release is unknown.
fn longest(task: &TaskStats) -> u64 {
    task.summary(Term::Response).max.max(task.summary(Term::Window).max)
}

/// Writes the maximum of every term of every task; the tasks in `shown` have sections.
fn overview(report: &Report<'_>, shown: &[&TaskStats], others: &[&TaskStats], out: &mut String) {
    *out += "<section><h2>All tasks</h2>";
    if shown.is_empty() {
        *out += &note("No job of a chosen thread was seen.");
        *out += "</section>\n";
        return;
    }
    let _ = write!(out, "<p>The longest of each term in µs. {SIGNS}</p>");
    *out += &longest_terms(report, shown, true);
    if !others.is_empty() {
        let _ = write!(
            out,
            "<details><summary>{} more tasks, which took less time in all and have no section below</summary>{}</details>",
            others.len(),
            longest_terms(report, others, false)
        );
    }
    if report.left_out > 0 {
        let (jobs, are) =
            (format_counted(report.left_out, "job"), if report.left_out == 1 { "is" } else { "are" });
        *out += &note(&format!("{jobs} of further tasks {are} in no figure: there were too many tasks."));
    }
    *out += "</section>\n";
}

fn longest_terms(report: &Report<'_>, tasks: &[&TaskStats], is_linked: bool) -> String {
    let columns = ["task", "kind", "priority"].map(Column::left).into_iter();
    let columns = columns.chain(Term::ALL.map(|term| Column::micros(term.letter())));
    let mut table = Table::new(columns.chain(["jobs", "flawed"].map(Column::right)));
    for (index, task) in tasks.iter().enumerate() {
        let key = task.key();
        let name = Cell::new(name(task, report.names));
        let known = match (key.actor, task.priorities()) {
            (Actor::Thread(_) | Actor::Task(_), Some(known)) => priority::range(known.0, known.1),
            _ => String::new(),
        };
        let mut cells = vec![if is_linked { name.link(&format!("t{index}")) } else { name }];
        cells.extend([Cell::new(kind_label(key.kind)), Cell::new(known)]);
        cells.extend(Term::ALL.map(|term| {
            let summary = task.summary(term);
            let cell = time(&summary, summary.max);
            if summary.count > 0 && summary.max == 0 { cell.class("muted") } else { cell }
        }));
        cells.extend([Cell::count(task.jobs()), Cell::fault(task.flawed())]);
        table.row(cells);
    }
    table.class("longest").html("The longest of each term")
}

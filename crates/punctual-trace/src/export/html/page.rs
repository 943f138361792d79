//! The page as a whole: its head, all tasks at a glance, and a section for each.

use std::fmt::Write as _;

use punctual_html::{Escaped, Grouped, Micros};

use super::task::{Section, at_most, sort_word};
use super::text::{priority, shortened};
use super::{MAX_BYTES, MAX_SECTIONS, Report, Written, head};
use crate::jobs::Actor;
use crate::names::Names;
use crate::stats::{TaskStats, Term};

const SCRIPT: &str = include_str!("script.js");

/// All series together have at most so many slots for each term: with many tasks, timelines need the room more.
const SLOTS: usize = 8192;

/// A name that leaves room for others.
pub(super) fn name(actor: Actor, names: &Names) -> String {
    shortened(&names.of(actor), 330.0)
}

/// The page in parts, and what is in it.
pub(super) fn page(report: &Report<'_>) -> (Vec<String>, Written) {
    let mut tasks: Vec<&TaskStats> = report.tasks.clone();
    // Sections go to those that took most time in all: of few long jobs, or of many.
    tasks.sort_by_key(|task| std::cmp::Reverse(total(task)));
    let sections = tasks.len().min(MAX_SECTIONS);
    let (shown, others) = tasks.split_at_mut(sections);
    shown.sort_by_key(|task| order(task, report));
    others.sort_by_key(|task| order(task, report));
    let (shown, others) = (&*shown, &*others);
    let slots = SLOTS / shown.len().max(1);
    let mut sections: Vec<Section> =
        shown.iter().enumerate().map(|(index, task)| Section::new(index, task, report, slots)).collect();
    let mut parts = vec![head::head(report, &[shown, others].concat())];
    overview(report, shown, others, &mut parts[0]);
    let end = format!("</main>\n<script>\n{SCRIPT}</script>\n</body></html>\n");

    // What is left of the page goes to timelines: the worst of every task first, then the second worst.
    let used = parts[0].len() + end.len() + sections.iter().map(Section::len).sum::<usize>();
    let mut room = MAX_BYTES.saturating_sub(used);
    let most = shown.iter().map(|task| task.worst().len()).max().unwrap_or(0);
    for rank in 0..most {
        for section in &mut sections {
            room -= section.add(rank, report, room);
        }
    }
    let timelines = sections.iter().map(|section| section.timelines()).sum();
    let left_out = shown.iter().map(|task| task.worst().len()).sum::<usize>() - timelines;
    parts.extend(sections.into_iter().map(Section::finish));
    parts.push(end);
    (parts, Written { bytes: 0, timelines, left_out })
}

/// Threads before handlers, the most urgent first, the longest first.
fn order(task: &TaskStats, report: &Report<'_>) -> impl Ord + use<> {
    let priority = report.collector.task(task.key()).map_or(i32::MAX, |task| task.priority);
    (task.key().sort, priority, std::cmp::Reverse(longest(task)), task.key().actor)
}

/// How much time all jobs took together.
fn total(task: &TaskStats) -> u128 {
    let of = |term| {
        let summary = task.summary(term);
        (summary.mean * summary.count as f64) as u128
    };
    of(Term::Response).max(of(Term::Window))
}

/// The longest job: R, or W where the release is unknown.
fn longest(task: &TaskStats) -> u64 {
    task.summary(Term::Response).max.max(task.summary(Term::Window).max)
}

/// The longest of every term of every task; `shown` have sections.
fn overview(report: &Report<'_>, shown: &[&TaskStats], others: &[&TaskStats], out: &mut String) {
    *out += "<section><h2>All tasks</h2>";
    if shown.is_empty() {
        *out += "<p class=\"note\">No job of a chosen thread was seen.</p></section>\n";
        return;
    }
    *out += "<p>The longest of each term in µs, with ≤ where the recording gives a bound.</p>";
    longest_terms(report, shown, true, out);
    if !others.is_empty() {
        let _ = write!(
            out,
            "<details><summary>{} more tasks, which took less time in all and have no section below</summary>",
            others.len()
        );
        longest_terms(report, others, false, out);
        *out += "</details>";
    }
    if report.left_out > 0 {
        let _ = write!(
            out,
            "<p class=\"note\">{} jobs of further tasks are in no figure: there were too many tasks.</p>",
            Grouped(report.left_out)
        );
    }
    *out += "</section>\n";
}

fn longest_terms(report: &Report<'_>, tasks: &[&TaskStats], linked: bool, out: &mut String) {
    *out +=
        "<div class=\"scroll\"><table class=\"tasks\"><thead><tr><th>task</th><th>kind</th><th>priority</th>";
    for term in Term::ALL {
        let _ = write!(out, "<th>{}</th>", term.letter());
    }
    *out += "<th>jobs</th><th>flawed</th></tr></thead><tbody>";
    for (index, task) in tasks.iter().enumerate() {
        let key = task.key();
        let name = name(key.actor, report.names);
        let name = Escaped(&name);
        *out += "<tr>";
        let _ = match linked {
            true => write!(out, "<th><a href=\"#t{index}\">{name}</a></th>"),
            false => write!(out, "<th>{name}</th>"),
        };
        let gathered = report.collector.task(key);
        let known = match (key.actor, gathered) {
            (Actor::Thread(_) | Actor::Task(_), Some(gathered)) => priority(gathered.priority),
            _ => String::new(),
        };
        let _ = write!(out, "<td>{}</td><td>{known}</td>", sort_word(key.sort));
        for term in Term::ALL {
            let summary = task.summary(term);
            let _ = match (summary.count, summary.max) {
                (0, _) => write!(out, "<td class=\"zero\">–</td>"),
                (_, 0) => write!(out, "<td class=\"zero\">0</td>"),
                (_, max) => write!(out, "<td>{}{}</td>", at_most(&summary), Micros(max)),
            };
        }
        let class = if task.flawed() > 0 { "fault" } else { "zero" };
        let (jobs, flawed) = (Grouped(task.jobs()), Grouped(task.flawed()));
        let _ = write!(out, "<td>{jobs}</td><td class=\"{class}\">{flawed}</td></tr>");
    }
    *out += "</tbody></table></div>";
}

//! The page as a whole: what was recorded, what is missing, all tasks at a glance, and a section for each.

use std::fmt::Write as _;

use super::collector::Source;
use super::task::{Section, sort_word};
use super::text::{Escaped, Grouped, Micros, priority, shortened};
use super::{MAX_BYTES, MAX_SECTIONS, Report, Written};
use crate::explain;
use crate::jobs::Actor;
use crate::names::Names;
use crate::stats::{TaskStats, Term};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// CPUs are listed one by one up to this many.
const MAX_CPUS: usize = 32;

/// Of each list at the head, so many entries are shown.
const MAX_LISTED: usize = 64;

/// All series together have at most so many slots for each term.
const SLOTS: usize = 16_384;

/// A name that leaves room for others.
pub(super) fn name(actor: Actor, names: &Names) -> String {
    shortened(&names.of(actor), 330.0)
}

/// The page in parts, and what is in it.
pub(super) fn page(report: &Report<'_>) -> (Vec<String>, Written) {
    let mut tasks: Vec<&TaskStats> = report.watch.tasks().iter().collect();
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
    let mut parts = vec![head(report, shown, others)];
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

fn head(report: &Report<'_>, shown: &[&TaskStats], others: &[&TaskStats]) -> String {
    let about = report.about;
    let title = if about.title.is_empty() { "punctual trace" } else { &about.title };
    let title = Escaped(title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n\
         <noscript><style>.job[hidden] {{ display: block; }}</style></noscript></head>\n\
         <body><main><header><div><h1>{title}</h1>"
    );
    let _ = write!(out, "<p>{}", Escaped(&recorded(report)));
    if !about.system.is_empty() {
        let _ = write!(out, "<br>{}", Escaped(&about.system));
    }
    out += "</p></div><label class=\"theme\" hidden>Colours <select><option value=\"\">as the system</option>\
            <option value=\"light\">light</option><option value=\"dark\">dark</option></select></label></header>\n";
    key_figures(report, &[shown, others].concat(), &mut out);
    conditions(report, &mut out);
    overview(report, shown, others, &mut out);
    out
}

/// "2 034 123 events of 4 CPUs in 10 s, clock mono"
fn recorded(report: &Report<'_>) -> String {
    let events: u64 = report.collector.cpus().map(|(_, counts)| counts.events).sum();
    let cpus = report.collector.cpus().count();
    let length = report.collector.span().map_or(0, |(first, last)| last - first);
    let clock = if report.about.clock.is_empty() { "not known" } else { &report.about.clock };
    let plural = if cpus == 1 { "" } else { "s" };
    format!("{} events of {cpus} CPU{plural} in {} · clock: {clock}", Grouped(events), explain::time(length))
}

/// The numbers one looks for first, maxima before everything else.
fn key_figures(report: &Report<'_>, tasks: &[&TaskStats], out: &mut String) {
    *out += "<ul class=\"figures\">";
    let mut figure = |what: &str, value: &str, fault: bool, detail: &str| {
        let class = if fault { " class=\"fault\"" } else { "" };
        let _ = write!(
            out,
            "<li><span>{what}</span><strong{class}>{value}</strong><em>{}</em></li>",
            Escaped(detail)
        );
    };
    for (what, term) in [
        ("Longest response", Term::Response),
        ("Longest jitter", Term::Jitter),
        ("Longest blocking", Term::Blocking),
        ("Longest interference", Term::Interference),
    ] {
        let worst = tasks.iter().max_by_key(|task| task.summary(term).max);
        match worst.map(|task| (task.summary(term).max, task)) {
            Some((ns, task)) if ns > 0 => {
                figure(what, &explain::time(ns), false, &name(task.key().actor, report.names));
            }
            _ => figure(what, "none", false, "of no task"),
        }
    }
    let misses: u64 = tasks.iter().map(|task| task.misses()).sum();
    if misses > 0 {
        figure("Deadline misses", &Grouped(misses).to_string(), true, "jobs that certainly ended too late");
    }
    let (gaps, lost) = report
        .collector
        .cpus()
        .fold((0, 0_u64), |(gaps, lost), (_, counts)| (gaps + counts.gaps, lost.saturating_add(counts.lost)));
    let value = if gaps > 0 && lost == 0 { "some".to_owned() } else { Grouped(lost).to_string() };
    let detail = if gaps == 0 { "no gaps".into() } else { format!("in {} gaps", Grouped(gaps)) };
    figure("Events lost", &value, gaps > 0, &detail);
    let counters = report.watch.counters();
    let of = format!("of {}, left out", Grouped(counters.jobs));
    figure("Flawed jobs", &Grouped(counters.flawed).to_string(), counters.flawed > 0, &of);
    *out += "</ul>\n";
}

/// What is behind the numbers, and what is missing.
fn conditions(report: &Report<'_>, out: &mut String) {
    let about = report.about;
    *out += "<section><h2>The recording</h2><dl>";
    let mut entry = |what: &str, value: &str| {
        let _ = write!(out, "<dt>{what}</dt><dd>{}</dd>", Escaped(value));
    };
    for (what, value) in [("Recording", &about.source), ("System", &about.system), ("Clock", &about.clock)] {
        entry(what, if value.is_empty() { "not known" } else { value });
    }
    for note in about.notes.iter().take(MAX_LISTED) {
        entry("Note", note);
    }
    for absent in about.absent.iter().take(MAX_LISTED) {
        entry("Absent", absent);
    }
    for (source, meaning) in [
        (Source::Switches, "no switches between threads: there are no jobs"),
        (Source::Wakeups, "no wake-ups: R and J of threads are unknown"),
        (Source::Interrupts, "no interrupts: what they took is in C"),
        (Source::Softirqs, "no softirqs: what they took is in C, or in the interrupts they ran in"),
        (Source::Timers, "no timers: late ones are not in R and J"),
        (Source::Contention, "no contention of kernel locks: spinning for one is in C"),
        (Source::Futexes, "no futex calls: a wait for a user-space lock ends the job"),
        (Source::Scheduler, "no calls of the scheduler: SS is bounded, and so is C"),
    ] {
        if !report.collector.seen(source) {
            entry("Not in it", meaning);
        }
    }
    let [lost, contradiction, cut] = report.collector.flawed();
    let counters = report.watch.counters();
    for (what, count, why) in [
        ("Flawed jobs", lost, "because events were lost"),
        ("Flawed jobs", contradiction, "because events contradict each other or are missing"),
        ("Flawed jobs", cut, "because the recording ended before them"),
        ("Doubtful events", counters.contradictions, "contradict earlier ones"),
        ("Doubtful events", counters.disordered, "are older than the one before"),
    ] {
        if count > 0 {
            entry(what, &format!("{} {why}", Grouped(count)));
        }
    }
    *out += "</dl>";
    losses(report, out);
    if !about.statistics.is_empty() {
        *out += "<details><summary>What the kernel counted</summary><pre>";
        for text in about.statistics.iter().take(MAX_LISTED) {
            let _ = writeln!(out, "{}", Escaped(&shortened(text, 4000.0)));
        }
        *out += "</pre></details>";
    }
    *out += "</section>\n";
}

fn losses(report: &Report<'_>, out: &mut String) {
    let cpus: Vec<_> = report.collector.cpus().collect();
    let chosen = |gaps: u64| cpus.len() <= MAX_CPUS || gaps > 0;
    *out += "<div class=\"scroll\"><table class=\"cpus\"><thead><tr><th>CPU</th><th>events</th><th>gaps</th>\
             <th>events lost</th></tr></thead><tbody>";
    for (cpu, counts) in cpus.iter().filter(|(_, counts)| chosen(counts.gaps)).take(MAX_CPUS) {
        let class = if counts.gaps > 0 { "fault" } else { "zero" };
        let lost = if counts.gaps > 0 && counts.lost == 0 {
            "not said".into()
        } else {
            Grouped(counts.lost).to_string()
        };
        let _ = write!(
            out,
            "<tr><th>{cpu}</th><td>{}</td><td class=\"{class}\">{}</td><td class=\"{class}\">{lost}</td></tr>",
            Grouped(counts.events),
            Grouped(counts.gaps)
        );
    }
    *out += "</tbody></table></div>";
    if cpus.len() > MAX_CPUS {
        let with = cpus.iter().filter(|(_, counts)| counts.gaps > 0).count();
        let _ = write!(
            out,
            "<p class=\"note\">{with} of {} CPUs lost events; at most {MAX_CPUS} are listed.</p>",
            cpus.len()
        );
    }
}

/// The longest of every term of every task; `shown` have sections.
fn overview(report: &Report<'_>, shown: &[&TaskStats], others: &[&TaskStats], out: &mut String) {
    *out += "<section><h2>All tasks</h2>";
    if shown.is_empty() {
        *out += "<p class=\"note\">No job of a chosen thread was seen.</p></section>\n";
        return;
    }
    *out += "<p>The longest of each term in µs. Bounded ones count with the upper bound.</p>";
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
    if report.watch.left_out() > 0 {
        let _ = write!(
            out,
            "<p class=\"note\">{} jobs of further tasks are in no figure: there were too many tasks.</p>",
            Grouped(report.watch.left_out())
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
                (_, max) => write!(out, "<td>{}</td>", Micros(max)),
            };
        }
        let class = if task.flawed() > 0 { "fault" } else { "zero" };
        let (jobs, flawed) = (Grouped(task.jobs()), Grouped(task.flawed()));
        let _ = write!(out, "<td>{jobs}</td><td class=\"{class}\">{flawed}</td></tr>");
    }
    *out += "</tbody></table></div>";
}

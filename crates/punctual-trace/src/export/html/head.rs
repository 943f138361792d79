//! The head of the page: what was recorded, what came of it, and what is missing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use punctual_html::{Escaped, Grouped};

use super::Report;
use super::collector::{CpuCounts, Source};
use super::page::name;
use super::text::shortened;
use crate::counted;
use crate::explain;
use crate::stats::{TaskStats, Term};

const STYLE: &str = include_str!("style.css");

/// CPUs are listed one by one up to this many.
const MAX_CPUS: usize = 32;

/// Of each list, so many entries are shown.
const MAX_LISTED: usize = 64;

/// The head of the page, up to what follows about tasks.
pub(super) fn head(report: &Report<'_>, tasks: &[&TaskStats]) -> String {
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
    key_figures(report, tasks, &mut out);
    conditions(report, &mut out);
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
    let add = |(gaps, lost): (u64, u64), counts: &CpuCounts| {
        (gaps.saturating_add(counts.gaps), lost.saturating_add(counts.lost))
    };
    let (gaps, lost) = losses(report).values().fold((0, 0), add);
    let value = if gaps > 0 && lost == 0 { "some".to_owned() } else { Grouped(lost).to_string() };
    let detail = match (gaps, lost) {
        (0, 0) => "no gaps".into(),
        (0, _) => "as the kernel counted".into(),
        _ => format!("in {} gaps", Grouped(gaps)),
    };
    figure("Events lost", &value, gaps > 0 || lost > 0, &detail);
    let (jobs, flawed) =
        tasks.iter().fold((0, 0), |(jobs, flawed), task| (jobs + task.jobs(), flawed + task.flawed()));
    let of = format!("of {}, left out", Grouped(jobs + flawed));
    figure("Flawed jobs", &Grouped(flawed).to_string(), flawed > 0, &of);
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
    let counters = report.counters;
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
    cpus(report, out);
    if !about.statistics.is_empty() {
        *out += "<details><summary>What the kernel counted</summary><pre>";
        for text in about.statistics.iter().take(MAX_LISTED) {
            let _ = writeln!(out, "{}", Escaped(&shortened(text, 4000.0)));
        }
        *out += "</pre></details>";
    }
    *out += "</section>\n";
}

/// What was lost of each CPU.
fn cpus(report: &Report<'_>, out: &mut String) {
    let cpus = losses(report);
    let lossy = |counts: &CpuCounts| counts.gaps > 0 || counts.lost > 0;
    *out += "<div class=\"scroll\"><table class=\"cpus\"><thead><tr><th>CPU</th><th>events</th><th>gaps</th>\
             <th>events lost</th></tr></thead><tbody>";
    let chosen = |(_, counts): &(&usize, &CpuCounts)| cpus.len() <= MAX_CPUS || lossy(counts);
    for (cpu, counts) in cpus.iter().filter(chosen).take(MAX_CPUS) {
        let class = if lossy(counts) { "fault" } else { "zero" };
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
        let with = cpus.values().filter(|counts| lossy(counts)).count();
        let _ = write!(
            out,
            "<p class=\"note\">{with} of {} CPUs lost events; at most {MAX_CPUS} are listed.</p>",
            cpus.len()
        );
    }
}

/// What each CPU has seen and lost: what the readers found missing, or what the kernel counted if that is more. Gaps in a
/// file do not always say how many events they took.
fn losses(report: &Report<'_>) -> BTreeMap<usize, CpuCounts> {
    let mut cpus: BTreeMap<usize, CpuCounts> = report.collector.cpus().collect();
    for (cpu, lost) in counted::losses(&report.about.statistics) {
        let counts = cpus.entry(cpu as usize).or_default();
        counts.lost = counts.lost.max(lost);
    }
    cpus
}

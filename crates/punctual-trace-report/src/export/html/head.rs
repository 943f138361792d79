//! Head of the page: contents of the recording, key figures, and missing data.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use punctual_report::escape::Escaped;
use punctual_report::format::{format_count, format_counted, format_nanos};
use punctual_report::page::{Facts, Figure, Frame, Page, note};
use punctual_report::svg::fitted;
use punctual_report::table::{Cell, Column, Table};
use punctual_trace::buffer_stats;
use punctual_trace::recorded::{Missing, understood};
use punctual_trace::stats::{TaskStats, Term};

use super::Report;
use super::collector::CpuCounts;
use super::page::name;
use crate::export::table;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Maximum number of CPUs that are listed individually.
const MAX_CPUS: usize = 32;

/// Maximum number of entries shown of each list.
const MAX_LISTED: usize = 64;

/// Returns the head of the page, which precedes the tasks.
pub(super) fn head(report: &Report<'_>, tasks: &[&TaskStats]) -> Page {
    let about = report.about;
    let mut lines = vec![finding(report, tasks), recorded(report)];
    lines.extend((!about.system.is_empty()).then(|| about.system.clone()));
    let mut page = Page::new(&Frame {
        title: if about.title.is_empty() { "punctual trace" } else { &about.title },
        lines: &lines,
        style: STYLE,
        style_without_scripts: ".job[hidden] { display: block; }",
        script: SCRIPT,
    });
    page.figures(&key_figures(report, tasks));
    conditions(report, page.body());
    page
}

/// Returns the result in one sentence: "12 jobs missed their deadline; the longest response is 1.92
/// ms, of `control/101`".
fn finding(report: &Report<'_>, tasks: &[&TaskStats]) -> String {
    let misses: u64 = tasks.iter().map(|task| task.misses()).sum();
    let missed = match misses {
        0 => String::new(),
        misses => format!("{} missed their deadline; ", format_counted(misses, "job")),
    };
    let responses = tasks.iter().map(|task| (task.summary(Term::Response), task));
    match responses.filter(|(summary, _)| summary.count > 0).max_by_key(|(summary, _)| summary.max) {
        Some((summary, task)) => format!(
            "{missed}the longest response is {}{}, of `{}`",
            table::sign(&summary),
            format_nanos(summary.max as f64),
            name(task, report.names)
        ),
        None => format!("{missed}no response is known"),
    }
}

/// "2 034 123 events of 4 CPUs in 10 s, clock mono"
fn recorded(report: &Report<'_>) -> String {
    let events = report.events();
    let cpus = report.collector.cpus().count();
    let length = report.collector.span().map_or(0, |(first, last)| last - first);
    let clock = if report.about.clock.is_empty() { "not known" } else { &report.about.clock };
    let (events, cpus) = (format_counted(events, "event"), format_counted(cpus as u64, "CPU"));
    format!("{events} of {cpus} in {} · clock: {clock}", format_nanos(length as f64))
}

/// Returns the key figures, maxima first.
fn key_figures(report: &Report<'_>, tasks: &[&TaskStats]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for term in Term::ALL {
        let what = term.definition().headline;
        figures.extend(what.map(|what| longest(what, term, report, tasks)));
    }
    let misses: u64 = tasks.iter().map(|task| task.misses()).sum();
    if misses > 0 {
        let late = "jobs that certainly ended too late";
        figures.push(Figure::new("Deadline misses", format_count(misses), late).fault_if(true));
    }
    let add = |(gaps, lost): (u64, u64), counts: &CpuCounts| {
        (gaps.saturating_add(counts.gaps), lost.saturating_add(counts.lost))
    };
    let (gaps, lost) = losses(report).values().fold((0, 0), add);
    let value = if gaps > 0 && lost == 0 { "some".to_owned() } else { format_count(lost) };
    let detail = match (gaps, lost) {
        (0, 0) => "no gaps".into(),
        (0, _) => "as the kernel counted".into(),
        _ => format!("in {} gaps", format_count(gaps)),
    };
    figures.push(Figure::new("Events lost", value, detail).fault_if(gaps > 0 || lost > 0));
    let (jobs, flawed) =
        tasks.iter().fold((0, 0), |(jobs, flawed), task| (jobs + task.jobs(), flawed + task.flawed()));
    let of = format!("of {}, left out", format_count(jobs + flawed));
    figures.push(Figure::new("Flawed jobs", format_count(flawed), of).fault_if(flawed > 0));
    figures
}

/// Returns the maximum of a term over all jobs, as far as it is known.
fn longest(what: &str, term: Term, report: &Report<'_>, tasks: &[&TaskStats]) -> Figure {
    let unknown: u64 = tasks.iter().map(|task| task.summary(term).unknown).sum();
    let known = tasks.iter().map(|task| (task.summary(term), task)).filter(|(summary, _)| summary.count > 0);
    let of_rest = match unknown {
        0 => String::new(),
        jobs => format!("unknown of {}", format_counted(jobs, "job")),
    };
    match known.max_by_key(|(summary, _)| summary.max) {
        None if unknown > 0 => Figure::new(what, "unknown", "of every job"),
        Some((summary, task)) if summary.max > 0 => {
            let value = format!("{}{}", table::sign(&summary), format_nanos(summary.max as f64));
            let rest = if unknown > 0 { format!(", {of_rest}") } else { of_rest };
            Figure::new(what, value, name(task, report.names) + &rest)
        }
        _ if unknown > 0 => Figure::new(what, "none seen", of_rest),
        _ => Figure::new(what, "none", "of no task"),
    }
}

/// Lists the conditions of the measurement and the missing data.
fn conditions(report: &Report<'_>, out: &mut String) {
    let about = report.about;
    let mut facts = Facts::default();
    for (what, value) in [("Recording", &about.source), ("System", &about.system), ("Clock", &about.clock)] {
        facts.add(what, if value.is_empty() { "not known" } else { value });
    }
    for note in about.notes.iter().take(MAX_LISTED) {
        facts.add("Note", note);
    }
    for absent in about.absent.iter().take(MAX_LISTED) {
        facts.add("Absent", absent);
    }
    for Missing { what, meaning, .. } in about.recorded.missing() {
        facts.add("Not in it", &format!("{what}: {meaning}"));
    }
    facts.add("Events", &understood(report.events(), &about.skipped));
    let [lost, contradiction, cut] = report.collector.flawed();
    let counters = report.counters;
    for (what, count, why) in [
        ("Flawed jobs", lost, "because events were lost"),
        ("Flawed jobs", contradiction, "because events contradict each other or are missing"),
        ("Flawed jobs", cut, "because they had not ended"),
        (
            "Timers",
            counters.unknown_timers,
            "expired and were not seen to be started: jobs count from their wake-ups",
        ),
        ("Doubtful events", counters.contradictions, "contradict earlier ones"),
        ("Doubtful events", counters.disordered, "are older than the one before"),
    ] {
        if count > 0 {
            facts.add(what, &format!("{} {why}", format_count(count)));
        }
    }
    let _ = write!(out, "<section><h2>The recording</h2>{}", facts.html());
    cpus(report, out);
    if !about.statistics.is_empty() {
        *out += "<details><summary>What the kernel counted</summary><pre>";
        for text in about.statistics.iter().take(MAX_LISTED) {
            let _ = writeln!(out, "{}", Escaped(&fitted(text, 4000.0)));
        }
        *out += "</pre></details>";
    }
    *out += "</section>\n";
}

/// Lists the losses of each CPU.
fn cpus(report: &Report<'_>, out: &mut String) {
    let cpus = losses(report);
    let lossy = |counts: &CpuCounts| counts.gaps > 0 || counts.lost > 0;
    let mut table = Table::new(["CPU", "events", "gaps", "events lost"].map(Column::right)).class("cpus");
    let chosen = |(_, counts): &(&usize, &CpuCounts)| cpus.len() <= MAX_CPUS || lossy(counts);
    for (cpu, counts) in cpus.iter().filter(chosen).take(MAX_CPUS) {
        let lost = match counts.gaps > 0 && counts.lost == 0 {
            true => Cell::new("not said").class("fault"),
            false => Cell::fault(counts.lost),
        };
        table.row([Cell::new(cpu.to_string()), Cell::count(counts.events), Cell::fault(counts.gaps), lost]);
    }
    *out += &table.html("Events of each CPU");
    if cpus.len() > MAX_CPUS {
        let with = cpus.values().filter(|counts| lossy(counts)).count();
        let all = cpus.len();
        *out += &note(&format!("{with} of {all} CPUs lost events; at most {MAX_CPUS} are listed."));
    }
}

/// Returns the events seen and lost on each CPU. Losses are the larger of the gaps that readers
/// found and the kernel's counters, because a gap in a file does not always include its size.
fn losses(report: &Report<'_>) -> BTreeMap<usize, CpuCounts> {
    let mut cpus: BTreeMap<usize, CpuCounts> = report.collector.cpus().collect();
    for (cpu, lost) in buffer_stats::losses(&report.about.statistics) {
        let counts = cpus.entry(cpu as usize).or_default();
        counts.lost = counts.lost.max(lost);
    }
    cpus
}

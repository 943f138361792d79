//! Tasks as text: their tables, and explanations of their longest jobs.

use std::fmt::Write;
use std::io;
use std::path::Path;

use punctual_report::format::{format_clock, format_count, format_counted, format_part};
use punctual_report::table::{Cell, Column, Table};
use punctual_report::text::wrapped;
use punctual_trace::jobs::{Actor, Counters, Job, JobKind, Reservation};
use punctual_trace::names::Names;
use punctual_trace::priority;
use punctual_trace::recorded::{self, Missing, Recorded, Source};
use punctual_trace::stats::{CapturedJob, TaskId, TaskStats, Term};
use punctual_trace_report::explain;
use punctual_trace_report::export::table;

use super::analysis::Analyzer;
use crate::output::columns;

/// Width without a terminal.
const WIDTH: usize = 100;

/// Returns the width of the output.
pub(crate) fn width() -> usize {
    of_terminal().unwrap_or(WIDTH)
}

/// Formats a table in its natural width, limited to that of the terminal.
pub(crate) fn fitted(table: &Table) -> String {
    table.within(of_terminal().unwrap_or(usize::MAX))
}

/// Returns the number of lines of a screen: of the terminal, or of the smallest usual one.
pub(crate) fn height() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    size.map(|size| usize::from(size.ws_row)).filter(|&rows| rows > 0).unwrap_or(24)
}

fn of_terminal() -> Option<usize> {
    columns(io::stdout()).map(|columns| columns.clamp(60, 120))
}

/// Formats all tasks: a line for each, then each with its table and its `worst` jobs.
pub(crate) fn tasks(analyzer: &Analyzer, worst: usize) -> String {
    let width = width();
    let (tasks, names) = (analyzer.tasks(), analyzer.names());
    let mut out = legend(&tasks);
    if tasks.len() > 1 || tasks.iter().any(|stats| stats.jobs() == 0) {
        let _ = write!(out, "\n{}", overview(&tasks, analyzer.names()));
    }
    for stats in &tasks {
        for job in stats.unended() {
            let name = format!("{} had not ended", stats.names(names).listed(stats.key().actor));
            out += &format!("\n{name}, at {} by the trace's clock\n", format_clock(job.end));
            out += &explained(job, &stats.names(names), width);
        }
    }
    // There is nothing more on tasks without a job that counts.
    for stats in tasks.into_iter().filter(|stats| stats.jobs() > 0) {
        out.push('\n');
        out += &task(stats, analyzer.names(), worst, width);
    }
    out
}

/// Explains why a recording without the switches of all threads gives no bounds, with the remedy.
pub(crate) fn needs_all_switches(path: &Path, recorded: &Recorded) -> String {
    let has = match recorded.has(Source::Switches) {
        true => "has the switches of traced threads only, as --narrow records them",
        false => "has no context switches",
    };
    format!(
        "{} {has}: it does not contain the time of other threads, so no bounds follow; record \
         without --narrow, and with --events usual at least",
        path.display()
    )
}

/// Describes the gaps of a recording, and the fraction of its events that was understood.
pub(crate) fn missing(recorded: &Recorded, events: u64, skipped: &[(String, u64)]) -> String {
    let mut out = absent(recorded);
    if !skipped.is_empty() {
        out += &wrapped("", &format!("Events: {}.", recorded::understood(events, skipped)), 2, width());
    }
    out
}

/// Describes the gaps of a recording, and the consequences for the terms.
pub(crate) fn absent(recorded: &Recorded) -> String {
    let missing = recorded.missing();
    let mut out = String::new();
    if !missing.is_empty() {
        out += "Not in this recording:\n";
    }
    for Missing { what, meaning, .. } in missing {
        out += &wrapped("  ", &format!("{what}: {meaning}"), 4, width());
    }
    out
}

/// Returns a warning about events that were neither recorded nor counted as lost by the kernel, if
/// any.
pub(crate) fn left_out(counters: &Counters) -> Option<String> {
    let offline = (counters.offline_lost > 0).then(|| {
        format!(
            "LOST: {} of CPUs without Linux, whose app could not report them in time",
            format_counted(counters.offline_lost, "job")
        )
    });
    let switches = (counters.unseen_switches > 0).then(|| {
        format!(
            "warning: {} context switches are missing that the kernel did not count as lost, and {} were recorded; the jobs \
             around the missing ones are counted as flawed and left out. Larger buffers do not help",
            format_count(counters.unseen_switches),
            format_count(counters.switches)
        )
    });
    let all: Vec<String> = [switches, offline].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// Explains the letters and terms of the tables that follow.
fn legend(tasks: &[&TaskStats]) -> String {
    if tasks.is_empty() {
        return String::new();
    }
    let text = format!("{}. ≤ marks an upper bound, ≥ a lower one.", table::equations());
    let mut out = format!("\n{}", wrapped("", &text, 0, WIDTH));
    let mixed = |stats: &TaskStats| {
        Term::ALL.into_iter().map(|term| stats.summary(term)).any(|of| of.bounded > 0 && of.at_least > 0)
    };
    if tasks.iter().any(|stats| mixed(stats)) {
        out += "≈ marks a maximum of jobs with upper and with lower bounds.\n";
    }
    if tasks.iter().any(|stats| stats.flawed() > 0) {
        out += "Flawed jobs, whose events are missing or contradictory, are left out of all figures.\n";
    }
    if tasks.iter().any(|stats| stats.misses() > 0) {
        out += "A deadline is missed when R, at its lower bound, exceeds it.\n";
    }
    out
}

/// Returns a line for each task. Column widths are fixed, so that lines printed later align.
pub(crate) fn overview(tasks: &[&TaskStats], names: &Names) -> Table {
    let columns = ["jobs", "R max", "p99.9", "p50", "missed"].map(|head| Column::right(head).at_least(9));
    let name = Column::left("task, times in µs").at_least(18).at_most(18);
    let mut table = Table::new([name].into_iter().chain(columns).chain([Column::left("")]));
    for stats in tasks {
        let response = stats.summary(Term::Response);
        let times = [response.max, response.p999, response.p50].map(|ns| table::time(&response, ns));
        let [max, p999, p50] = times;
        let unended = stats.unended().len() as u64;
        let counts = [(stats.flawed().saturating_sub(unended), "flawed"), (unended, "not ended")];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let real_time = TaskId { ordinary: false, ..stats.id() };
        let second = stats.id().ordinary && tasks.iter().any(|other| other.id() == real_time);
        let ordinary = second.then(|| "at ordinary priority".to_owned());
        let counts: Vec<_> = counts.map(|(count, what)| format!("{} {what}", format_count(*count))).collect();
        let flawed = ordinary.into_iter().chain(counts).collect::<Vec<_>>().join(", ");
        let (name, missed) = (stats.names(names).listed(stats.key().actor), Cell::count(stats.misses()));
        table.row([Cell::new(name), Cell::count(stats.jobs()), max, p999, p50, missed, Cell::new(flawed)]);
    }
    table
}

fn task(stats: &TaskStats, names: &Names, worst: usize, width: usize) -> String {
    let names = &stats.names(names);
    let head = format!("{}{}", names.listed(stats.key().actor), counts(stats));
    let mut out = wrapped("", &head, 2, width);
    let _ = write!(out, "{}", table::terms(stats).indent(2));
    for assumption in explain::assumptions(stats) {
        out += &wrapped("  ", &assumption, 2, width);
    }
    for (index, captured) in stats.worst().iter().take(worst).enumerate() {
        let rank = match index {
            0 => "longest job".to_owned(),
            index => format!("{}. longest job", index + 1),
        };
        let _ = writeln!(out, "\n  {rank}, ended at {} by the trace's clock", format_clock(captured.job.end));
        out += &explained(&captured.job, names, width);
        out += &system_calls(captured, names, width);
    }
    out
}

/// Describes the system calls of a job, if they were recorded.
pub(crate) fn system_calls(captured: &CapturedJob, names: &Names, width: usize) -> String {
    let calls = explain::system_calls(captured, names);
    calls.map_or(String::new(), |calls| wrapped("        ", &calls, 8, width))
}

/// Returns the priority and the counts of a task.
fn counts(stats: &TaskStats) -> String {
    let mut out = String::new();
    let offline = stats.key().kind == JobKind::Offline;
    if offline {
        out += ", on a CPU without Linux";
    }
    let of_thread = !offline && matches!(stats.key().actor, Actor::Thread(_) | Actor::Task(_));
    if let Some((most, least)) = stats.priorities().filter(|_| of_thread) {
        out += &format!(", {}", priority::range(most, least));
    }
    if let Some(Reservation { runtime, deadline, period }) = stats.reservation() {
        let [runtime, deadline, period] = [runtime, deadline, period].map(format_part);
        out += &format!(" with {runtime} in {period} and a deadline of {deadline}");
    }
    let plural = |count: u64, one: &str, many: &str| match count {
        1 => format!(", 1 {one}"),
        count => format!(", {} {many}", format_count(count)),
    };
    out += &plural(stats.jobs(), "job", "jobs");
    if stats.misses() > 0 {
        out += &plural(stats.misses(), "deadline missed", "deadlines missed");
    }
    if stats.throttled() > 0 {
        out += &plural(stats.throttled(), "throttled", "throttled");
    }
    let unended = stats.unended().len() as u64;
    if unended > 0 {
        out += &plural(unended, "that had not ended", "that had not ended");
    }
    let flawed = stats.flawed().saturating_sub(unended);
    if flawed > 0 {
        out += &plural(flawed, "flawed one left out", "flawed ones left out");
    }
    out
}

/// Returns a job's sentences.
pub(crate) fn explained(job: &Job, names: &Names, width: usize) -> String {
    let mut out = String::new();
    for sentence in explain::job(job, names) {
        let (term, text) = sentence.split_once(": ").unwrap_or(("", &sentence));
        out += &wrapped(&format!("    {term:<4}"), text, 8, width);
    }
    out
}

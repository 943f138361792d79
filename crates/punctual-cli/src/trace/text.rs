//! What is said of tasks: their tables, and their longest jobs in sentences.

use std::fmt::Write;
use std::io;

use punctual_trace::explain::{self, grouped};
use punctual_trace::jobs::{Counters, Job};
use punctual_trace::names::Names;
use punctual_trace::stats::{TaskStats, Term};

use super::analysis::Analyst;
use super::table;

/// Where there is no terminal.
const WIDTH: usize = 100;

/// How wide what is printed may be.
pub(crate) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.map_or(WIDTH, |size| usize::from(size.ws_col).clamp(60, 120))
}

/// All tasks: a line for each, then each with its table and its `worst` jobs.
pub(crate) fn tasks(analyst: &Analyst, worst: usize) -> String {
    let width = width();
    let tasks = analyst.tasks();
    let mut out = String::new();
    if tasks.len() > 1 || tasks.iter().any(|stats| stats.jobs() == 0) {
        let _ = write!(out, "\n{}", overview_head());
        tasks.iter().for_each(|stats| out += &overview(stats, analyst.names()));
    }
    // Of those without a job that counts there is no more to say.
    for stats in tasks.into_iter().filter(|stats| stats.jobs() > 0) {
        out.push('\n');
        out += &task(stats, analyst.names(), worst, width);
    }
    out
}

/// What to say of switches that the kernel has left out, if it has.
pub(crate) fn left_out(counters: &Counters) -> Option<String> {
    (counters.unseen_switches > 0).then(|| {
        format!(
            "warning: in {} places, beside {} switches between threads, the kernel has left one out without counting it as \
             lost; jobs around these are counted as flawed and left out. Larger buffers do not help",
            grouped(counters.unseen_switches),
            grouped(counters.switches)
        )
    })
}

/// The columns of [`overview`].
pub(crate) fn overview_head() -> String {
    let head = ["R max", "p99.9", "p50"].map(|name| format!("{name:>11}")).concat();
    format!("{:<18}{:>10}{head}{:>9}\n", "task, times in µs", "jobs", "missed")
}

/// A line for a task.
pub(crate) fn overview(stats: &TaskStats, names: &Names) -> String {
    let response = stats.summary(Term::Response);
    let at_most = if response.bounded > 0 { "≤" } else { "" };
    let times = [response.max, response.p999, response.p50].map(|ns| match response.count {
        0 => "–".to_owned(),
        _ => format!("{at_most}{}", table::micros(ns)),
    });
    let mut out = table::shortened(&names.of(stats.key().actor), 18);
    let _ = write!(out, "{:>10}", grouped(stats.jobs()));
    times.iter().for_each(|time| out += &format!("{time:>11}"));
    let _ = write!(out, "{:>9}", grouped(stats.misses()));
    if stats.flawed() > 0 {
        let _ = write!(out, "  {} flawed", grouped(stats.flawed()));
    }
    out.push('\n');
    out
}

fn task(stats: &TaskStats, names: &Names, worst: usize, width: usize) -> String {
    let head = format!("{}{}", names.of(stats.key().actor), counts(stats));
    let mut out = table::wrapped("", &head, 2, width);
    out += &table::task(stats);
    for (index, whole) in stats.worst().iter().take(worst).enumerate() {
        let rank = match index {
            0 => "longest job".to_owned(),
            index => format!("{}. longest job", index + 1),
        };
        let _ = writeln!(out, "\n  {rank}, ended at {} by the trace's clock", clock(whole.job.end));
        out += &explained(&whole.job, names, width);
    }
    out
}

/// What is known of a task in numbers.
fn counts(stats: &TaskStats) -> String {
    let mut out = String::new();
    if let Some(whole) = stats.worst().first() {
        out += &match whole.job.priority {
            -1 => ", deadline scheduling".to_owned(),
            priority @ 0..=98 => format!(", priority {}", 99 - priority),
            _ => ", ordinary priority".to_owned(),
        };
    }
    let plural = |count: u64, one: &str, many: &str| match count {
        1 => format!(", 1 {one}"),
        count => format!(", {} {many}", grouped(count)),
    };
    out += &plural(stats.jobs(), "job", "jobs");
    if stats.misses() > 0 {
        out += &plural(stats.misses(), "deadline missed", "deadlines missed");
    }
    if stats.flawed() > 0 {
        out += &plural(stats.flawed(), "flawed one left out", "flawed ones left out");
    }
    out
}

/// A job's sentences.
pub(crate) fn explained(job: &Job, names: &Names, width: usize) -> String {
    let mut out = String::new();
    for sentence in explain::job(job, names) {
        let (term, text) = sentence.split_once(": ").unwrap_or(("", &sentence));
        out += &table::wrapped(&format!("    {term:<4}"), text, 8, width);
    }
    out
}

/// How long something took, as people say it.
pub(crate) fn span(ns: u64) -> String {
    match ns {
        1_000_000_000.. => format!("{:.1} s", ns as f64 / 1e9),
        _ => explain::time(ns),
    }
}

/// A time as other tools print it: seconds and microseconds.
fn clock(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

//! The inferred model of a recording, as text.

use std::fmt::Write as _;

use punctual_analysis::explain::tightest;
use punctual_analysis::infer::curves::Curves;
use punctual_analysis::infer::pwcet::Test;
use punctual_analysis::infer::system::InferredThread;
use punctual_analysis::infer::thread::Reading;
use punctual_report::format::{format_count, format_part};
use punctual_report::table::{Cell, Column, Table};
use punctual_report::text::wrapped;
use punctual_trace::priority::Priority;

use super::super::text::{LEGEND, bounds_of, explanation, limits, reservations, verdict};
use super::infer::{Fit, Result, Wait, contradictions};
use super::observe::MAX_CALLS;
use crate::trace::text::{fitted, width};

/// The larger number of releases and jobs in the tables, next to two releases and one job.
const MANY: usize = 8;
/// Maximum number of listed waits of each thread.
const MAX_WAITS: usize = 3;

/// Formats all output.
pub(super) fn report(result: &Result) -> String {
    let Result { inferred, analysis, margins, .. } = result;
    let system = &inferred.system;
    let count = inferred.threads.len();
    let mut out = format!("{}\n{}", result.head, fitted(&threads(result)));
    out += &wrapped("", THREADS, 0, width());
    if !result.handlers.is_empty() {
        let _ = write!(out, "\n{}", fitted(&handlers(result)));
    }
    let sentences = readings(&result.threads).chain(waits(&result.waits));
    let sentences: Vec<String> = sentences.collect();
    if !sentences.is_empty() {
        out.push('\n');
    }
    for sentence in sentences {
        out += &wrapped("", &sentence, 2, width());
    }
    if !result.fits.is_empty() {
        let _ = write!(out, "\n{}", fitted(&fits(result)));
        out += &wrapped("", FITS, 0, width());
        for (thread, fit) in result.threads.iter().zip(&result.fits) {
            if let Some(why) = refusal(fit) {
                out += &wrapped(
                    "",
                    &format!("No fit for `{}`: {why}. Its C stays the longest that was seen.", thread.name),
                    2,
                    width(),
                );
            }
        }
    }
    if !system.tasks.is_empty() {
        let _ = write!(out, "\n{}", fitted(&bounds_of(system, analysis, count)));
        out += &wrapped("", LEGEND, 0, width());
        if system.tasks.len() > count {
            out += &wrapped("", LONG, 0, width());
        }
    }
    if !margins.tasks.is_empty() {
        let _ = write!(out, "\n{}", fitted(&limits(system, margins)));
    }
    for (_, why) in &inferred.unbounded {
        let _ = write!(out, "\n{}", wrapped("", why, 2, width()));
    }
    let has_deadline = system.tasks.iter().any(|task| task.deadline.is_some());
    out.push('\n');
    out += &if has_deadline {
        wrapped("", &verdict(system, analysis, margins.all), 0, width())
    } else {
        wrapped("", "A recording contains no deadlines: give --deadline NAME=TIME.", 0, width())
    };
    // Without deadlines none is the tightest: the one that is displaced most is the most
    // informative.
    if let Some(at) = tightest(system, analysis).or_else(|| most_displaced(result)) {
        out += &explanation(system, analysis, at);
    }
    out + &reservations(system, contradictions(result))
}

const THREADS: &str = "Times in µs. T period and ± its jitter, if releases are periodic; δ⁻(n) and δ⁺(n) least and largest distance of \
                       n releases; C(n) longest execution of n consecutive jobs, with switches; B longest waiting for locks and \
                       lower threads, S longest sleep within a job.";

const LONG: &str = "`x, long` is what a long job of `x` takes more than a usual one, as often as such jobs were seen, and `x, long \
                    wait` is how much longer it waits. Both are counted in I of `x`, too.";

const FITS: &str = "C in µs that a job exceeds with the given probability, by a Gumbel distribution fitted to the maxima of blocks of jobs, and \
                    the tests, each with the most that it may be: |Z| of runs, distance of the halves, Z of a heavier tail, A² of the \
                    fit. It holds for runs like this one: a path that no job took is in no distribution.";

/// Returns the reason why a fit is not used.
pub(super) fn refusal(fit: &Fit) -> Option<&str> {
    match fit {
        Ok(fit) => fit.refusal(),
        Err(why) => Some(why),
    }
}

fn fits(result: &Result) -> Table {
    let mut table = Table::new([
        Column::left("thread"),
        Column::micros("C seen"),
        Column::micros("C fitted"),
        Column::right("blocks"),
        Column::right("jobs each"),
        Column::right("runs ≤ 1.96"),
        Column::right("halves ≤ 1.36"),
        Column::right("tail ≤ 1.65"),
        Column::right("A² ≤ 0.757"),
    ]);
    for (thread, fit) in result.threads.iter().zip(&result.fits) {
        let mut cells = vec![Cell::new(&thread.name), Cell::micros(thread.seen().executions.max())];
        match fit {
            Ok(fit) => {
                let test = |test: Test| {
                    Cell::new(format!("{:.2}", test.value)).class(if test.passes() { "" } else { "fault" })
                };
                cells.push(Cell::micros(Some(fit.execution).filter(|_| fit.refusal().is_none())));
                cells.extend([fit.blocks, fit.block].map(|count| Cell::new(format_count(count as u64))));
                cells.extend([fit.runs, fit.halves, fit.shape].map(test));
                cells.push(Cell::new(format!("{:.3}", fit.fit.value)).class(if fit.fit.passes() {
                    ""
                } else {
                    "fault"
                }));
            }
            Err(_) => cells.extend((0..7).map(|_| Cell::none())),
        }
        table.row(cells);
    }
    table
}

fn most_displaced(result: &Result) -> Option<usize> {
    let displaced = |at: &usize| {
        let bound = result.analysis.tasks[*at].as_ref().ok()?;
        Some(bound.interference.iter().map(|term| term.work.time()).sum::<u64>())
    };
    (0..result.inferred.threads.len()).filter(|at| displaced(at).is_some()).max_by_key(displaced)
}

/// Returns the minimum distance of this many releases, as far as it is known.
fn least(curves: &Curves, releases: usize) -> Option<u64> {
    curves.least().get(releases - 2).copied()
}

/// An unknown figure of the table is a dash.
fn threads(result: &Result) -> Table {
    let mut table = Table::new([
        Column::left("thread"),
        Column::right("CPU"),
        Column::right("priority"),
        Column::right("jobs"),
        Column::micros("T"),
        Column::micros("±"),
        Column::micros("δ⁻(2)"),
        Column::micros("δ⁻(8)"),
        Column::micros("δ⁺(2)"),
        Column::micros("C(1)"),
        Column::micros("C(8)"),
        Column::micros("B"),
        Column::micros("S"),
    ]);
    for thread in &result.threads {
        let seen = thread.seen();
        let cpus: Vec<String> = thread.cpus.iter().map(u32::to_string).collect();
        let periodic = seen.periodic().filter(|model| model.jitter < model.period / 2);
        let is_known = thread.unknown.is_none() && seen.jobs > 0;
        let known = |ns: u64| if is_known { Cell::micros(ns) } else { Cell::none() };
        table.row([
            Cell::new(&thread.name),
            Cell::new(cpus.join(",")),
            Cell::new(priority(thread)),
            Cell::new(format_count(seen.jobs)),
            Cell::micros(periodic.map(|model| model.period)),
            Cell::micros(periodic.map(|model| model.jitter)),
            Cell::micros(least(&seen.curves, 2)),
            Cell::micros(least(&seen.curves, MANY)),
            Cell::micros(seen.curves.spans().first().map(|span| span.largest)),
            Cell::micros(seen.executions.max().filter(|_| is_known)),
            Cell::micros(seen.executions.longest().get(MANY - 1).copied().filter(|_| is_known)),
            known(seen.waiting.ns),
            known(seen.suspended.ns),
        ]);
    }
    table
}

/// As users count: 1 to 99, the highest.
pub(super) fn priority(thread: &InferredThread) -> String {
    // As the kernel counts, without the order of tasks on one thread.
    let kernel = (-thread.urgency).div_euclid(MAX_CALLS);
    match Priority::of_kernel(kernel as i32).number() {
        100 => "deadline".into(),
        0 => "ordinary".into(),
        number => number.to_string(),
    }
}

fn handlers(result: &Result) -> Table {
    let mut table = Table::new([
        Column::left("interrupt"),
        Column::right("CPU").names(),
        Column::right("times"),
        Column::micros("δ⁻(2)"),
        Column::micros("δ⁻(8)"),
        Column::micros("C(1)"),
        Column::micros("C(8)"),
    ]);
    for handler in &result.handlers {
        let longest = handler.executions.longest();
        table.row([
            Cell::new(&handler.name),
            Cell::new(handler.cpu.to_string()),
            Cell::new(format_count(handler.curves.releases())),
            Cell::micros(least(&handler.curves, 2)),
            Cell::micros(least(&handler.curves, MANY)),
            Cell::micros(longest.first().copied()),
            Cell::micros(longest.get(MANY - 1).copied()),
        ]);
    }
    table
}

/// Describes the definition of jobs if it was a choice.
fn readings(threads: &[InferredThread]) -> impl Iterator<Item = String> {
    let timers = threads.iter().filter(|thread| thread.reading == Reading::Timers);
    timers.map(|thread| {
        format!(
            "A job of `{}` is taken to last from one release by a timer to the next: these are periodic, and its other sleeps \
             are not. --jobs sleeps takes each for the end of a job.",
            thread.name
        )
    })
}

/// Lists the waits, the longest of each thread first.
fn waits(waits: &[Wait]) -> impl Iterator<Item = String> {
    let mut of_same = 0;
    let mut last = "";
    waits.iter().filter_map(move |wait| {
        of_same = if wait.thread == last { of_same + 1 } else { 0 };
        last = &wait.thread;
        if of_same >= MAX_WAITS {
            return None;
        }
        let held = wait.holder.as_ref().map_or(String::new(), |holder| format!(", held by `{holder}`"));
        let times =
            if wait.times == 1 { "once".to_owned() } else { format!("{} times", format_count(wait.times)) };
        Some(format!(
            "`{}` waited {times} for {}{held}, at most {}.",
            wait.thread,
            wait.on,
            format_part(wait.longest)
        ))
    })
}

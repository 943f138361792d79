//! `punctual trace report`: turns a trace into tables, explanations and files.

use std::fmt::Write;
use std::path::Path;
use std::thread;

use punctual_report::escape::Printable;
use punctual_report::format::{format_clock, format_counted, format_nanos};
use punctual_trace::buffer_stats;
use punctual_trace::jobs::{Counters, Select};
use punctual_trace::read::Trace;
use punctual_trace::recorded::{Recorded, Source};
use punctual_trace_report::export::html::About;

use super::analysis::Analyzer;
use super::args::Report;
use super::chains::{self, Chains};
use super::chosen;
use super::outputs::Outputs;
use super::reading::{Batch, Reading};
use super::window::Window;
use super::{FAILED, Failure, open, text};
use crate::output::{message, print, printable};
use crate::parse::Deadline;

pub(crate) fn run(arguments: &Report) -> Result<u8, Failure> {
    Deadline::check(&arguments.analysis.deadlines).map_err(Failure::usage)?;
    let trace = open(&arguments.trace)?;
    let damage: Vec<_> =
        trace.damage().iter().map(|what| format!("{}: {what}", arguments.trace.display())).collect();
    damage.iter().for_each(|what| message!("warning: {what}"));
    let window = Window::of(arguments.from, arguments.to, &trace)?;
    if window.is_some_and(|window| window.from > window.to) {
        return Err(Failure::usage("--from is later than --to, so no job can end between them"));
    }
    let mut outputs = Outputs::open(arguments)?;
    let chosen = chosen::threads(arguments, &trace)?;
    let select = Select { tids: chosen.threads, marked: true, ..Select::real_time() };
    let monotonic = trace.clock() == "mono";
    let recorded = trace.recorded()?;
    let missing_events = arguments.analysis.futex.limits(&recorded);
    let wanted = (outputs.want_segments(), outputs.want_worst());
    let analyzer_of = |chains| {
        let known = (monotonic, recorded.clone());
        let chosen = (chains, chosen.names.clone());
        let mut analyzer = Analyzer::new(&arguments.analysis, select.clone(), known, wanted, chosen);
        analyzer.sample(outputs.want_sample());
        analyzer.learn_from(&trace);
        analyzer
    };
    let chains = chains::wanted(arguments, &trace, || analyzer_of(Chains::default()))?;
    let mut analyzer = analyzer_of(Chains::new(chains, outputs.want_crossings()));
    let mut events = trace.events()?;
    analyzer.learn_listed(events.threads());
    if outputs.want_events() {
        events = events.with_others();
    }
    let read = thread::scope(|scope| {
        let reading = Reading::start(scope, events)?;
        let (span, problems) = analyze(&reading, window, &mut analyzer, &mut outputs);
        let events = reading.end().ok_or("the thread that reads the trace panicked")?;
        Ok::<_, Failure>((span, problems, events))
    });
    let (span, mut problems, events) = read?;
    problems.splice(0..0, damage);
    let is_whole = problems.is_empty() && trace.unusable().next().is_none();
    let skipped = trace.skipped(&events);
    // The rest of the trace was not read.
    let is_unread = outputs.is_unread();
    analyzer.finish(&mut |job, names| outputs.job(job, names));
    outputs.page(&analyzer, || {
        let mut about = About::of(&trace, &arguments.trace.display().to_string());
        about.absent.extend_from_slice(events.incomplete());
        about.notes = problems;
        (about.recorded, about.skipped) = (missing_events.clone(), skipped.clone());
        about
    });
    let is_printed = outputs.is_printed();
    let written = outputs.finish()?;
    if is_unread {
        return Ok(if is_whole { 0 } else { FAILED });
    }
    events.incomplete().iter().for_each(|what| message!("warning: {what}"));
    for (event, error) in trace.unusable() {
        message!("warning: the format of {event} cannot be read, so its events are left out: {error}");
    }
    let counters = analyzer.watch().counters();
    losses(&trace, &counters);
    let missing = text::missing(&missing_events, counters.events, &skipped);
    if !is_printed {
        print(&head(&arguments.trace, &trace, &counters, span));
        print(&window.map_or(String::new(), part));
        print(&missing);
        print(&text::tasks(&analyzer, usize::from(arguments.analysis.worst)));
        print(&chains::text(analyzer.chains(), analyzer.names()));
        if !written.is_empty() {
            let written: String =
                written.iter().map(|path| format!("written: {}\n", printable(path))).collect();
            print(&format!("\n{written}"));
        }
    }
    let is_readable = events.incomplete().is_empty() && trace.unusable().next().is_none();
    if is_printed && !missing.is_empty() {
        message!("{}", missing.trim_end());
    }
    match warn_about_missing(&analyzer, &recorded, arguments, is_readable) {
        true => Ok(FAILED),
        false => Ok(if is_whole { 0 } else { FAILED }),
    }
}

/// The times of the first and the last event of a trace.
type Span = Option<(u64, u64)>;

/// Analyzes a trace to its end, that of the window, or as long as outputs can be written. Also
/// returns read errors.
fn analyze(
    reading: &Reading<'_>,
    window: Option<Window>,
    analyzer: &mut Analyzer,
    outputs: &mut Outputs,
) -> (Span, Vec<String>) {
    let Window { from, to } = window.unwrap_or(Window { from: 0, to: u64::MAX });
    analyzer.only_since(from);
    // At most one for each CPU.
    let (mut span, mut problems) = (None, Vec::new());
    let want_events = outputs.want_events();
    while let Some(Batch { news, events, problem }) = reading.next() {
        if let Some(news) = &news {
            analyzer.learn(news);
        }
        let within = events.partition_point(|event| event.time <= to);
        for event in &events[..within] {
            if want_events && event.time >= from {
                outputs.event(event, analyzer);
            }
            analyzer.feed(event, &mut |job, names| outputs.job(job, names), &mut |_, _| {});
        }
        analyzer.take_crossings().iter().for_each(|line| outputs.crossing(line));
        if let (Some(first), Some(last)) = (events[..within].first(), events[..within].last()) {
            span = Some((span.map_or(first.time, |(start, _)| start), last.time));
        }
        if outputs.has_ended() || within < events.len() {
            break;
        }
        if let Some(problem) = problem {
            message!("warning: {problem}");
            problems.push(problem.to_string());
        }
        reading.give_back(events);
    }
    (span, problems)
}

/// Prints items that the command line names and the trace lacks; returns whether any is missing.
/// They may be in events that are not `readable`.
fn warn_about_missing(analyzer: &Analyzer, recorded: &Recorded, arguments: &Report, readable: bool) -> bool {
    let trace = arguments.trace.display();
    let unknown = analyzer.unknown();
    for name in &unknown {
        message!(
            "error: {trace} has no job of a task or thread `{name}`; --task '*' shows every thread with jobs"
        );
    }
    let nothing = unknown.is_empty() && analyzer.tasks().is_empty();
    if nothing {
        let (whose, fix) = match arguments.analysis.shows_everything() {
            _ if readable && !recorded.has(Source::Switches) => (
                "",
                "there are no context switches in it, so record again with at least sched_switch and sched_waking",
            ),
            _ if readable && arguments.from.or(arguments.to).is_some() => {
                (" between --from and --to", "choose other times, or select others with --task NAME")
            }
            true if !readable => (
                "",
                "some of its events cannot be read, see the warnings; record it again, or with \
                 another kernel",
            ),
            true => ("", "record for longer, or while the program is busy"),
            false => (
                " of a real-time thread or Punctual task",
                "select others with --task NAME, or all with --task '*'",
            ),
        };
        message!("error: {trace} has no job{whose} that both begins and ends in it; {fix}");
    }
    analyzer.print_omissions();
    nothing || !unknown.is_empty()
}

/// Describes the reported part of a trace.
fn part(window: Window) -> String {
    let mut out = "jobs that end".to_owned();
    if window.from > 0 {
        let _ = write!(out, " from {}", format_clock(window.from));
    }
    if window.to < u64::MAX {
        let _ = write!(out, " to {}", format_clock(window.to));
    }
    out + " by the trace's clock\n"
}

/// Describes the trace.
fn head(path: &Path, trace: &Trace, counters: &Counters, span: Span) -> String {
    let span = format_nanos(span.map_or(0.0, |(start, end)| (end - start) as f64));
    let mut out = format!(
        "{}: {} of {} in {span}",
        printable(path),
        format_counted(counters.events, "event"),
        format_counted(trace.cpus() as u64, "CPU")
    );
    if !trace.clock().is_empty() {
        let _ = write!(out, ", clock {}", Printable(trace.clock()));
    }
    out.push('\n');
    if counters.unknown_timers > 0 {
        let _ = writeln!(
            out,
            "{} expired whose start was not recorded; jobs released that way count from their wake-ups",
            format_counted(counters.unknown_timers, "timer")
        );
    }
    if !trace.system().is_empty() {
        let _ = writeln!(out, "{}", Printable(trace.system()));
    }
    out
}

/// Prints the losses.
pub(crate) fn losses(trace: &Trace, counters: &Counters) {
    if let Some(warning) = text::left_out(counters) {
        message!("{warning}");
    }
    if counters.gaps == 0 {
        return;
    }
    for (cpu, count) in buffer_stats::losses(trace.statistics()) {
        message!("LOST: {} of CPU {cpu}", format_counted(count, "event"));
    }
    message!(
        "LOST: events are missing in {}; the jobs affected are counted as flawed and left out. Record again {}",
        format_counted(counters.gaps, "place"),
        trace.recorder().more_room()
    );
}

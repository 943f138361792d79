//! Reads a recording into an [`Observer`].

use std::path::Path;

use punctual_report::format::{format_counted, format_nanos};
use punctual_trace::jobs::{Config, Decomposer, Select};
use punctual_trace::names::Names;
use punctual_trace::read::Trace;
use punctual_trace::recorded::Source;

use super::observe::{Lacks, Observer};
use crate::output::{self, message};
use crate::trace::args::Futex;
use crate::trace::names::NameWatch;
use crate::trace::report::losses;
use crate::trace::text;

/// A recording that has been read.
pub(crate) struct Recording {
    pub(super) observer: Observer,
    pub(crate) names: Names,
    /// From the first event to the last, in ns.
    pub(crate) length: u64,
    /// Description before the first table.
    pub(super) head: String,
}

/// Reads all of it, and stores every job if requested.
pub(crate) fn read(path: &Path, keeps_jobs: bool, futex: Futex) -> Result<Recording, String> {
    let trace = Trace::open(path).map_err(|error| error.to_string())?;
    for what in trace.damage() {
        message!("warning: {}: {what}", path.display());
    }
    let recorded = trace.recorded().map_err(|error| error.to_string())?;
    if !recorded.has_all_switches() {
        return Err(text::needs_all_switches(path, &recorded));
    }
    let mut events = trace.events().map_err(|error| error.to_string())?;
    let mut decomposer = Decomposer::new(Config {
        select: Select { marked: true, ..Select::real_time() },
        handlers: true,
        futex: futex.waits(),
        monotonic: trace.clock() == "mono",
        recorded: recorded.clone(),
        ..Config::default()
    });
    let limits = futex.limits(&recorded);
    let (mut observer, mut names, mut watch) = (Observer::default(), Names::new(), NameWatch::default());
    observer.keeps_jobs = keeps_jobs;
    observer.lacks = Lacks::of(&limits);
    observer.assumes_no_locks = matches!(futex, Futex::Suspend) && !recorded.has(Source::Contention);
    trace.processes().for_each(|(thread, process)| names.process(thread, process));
    for (thread, name) in events.threads().iter() {
        names.thread(thread, &name.text());
        observer.name(thread, &name.text());
        decomposer.name(thread, &name.text());
    }
    let mut span: Option<(u64, u64)> = None;
    while let Some(run) = events.next_run() {
        match run {
            Ok(run) => {
                for event in run {
                    names.see(event);
                    span = Some((span.map_or(event.time, |(first, _)| first), event.time));
                    observer.event(event);
                    decomposer.feed(event, &mut |job| observer.job(job));
                }
            }
            Err(problem) => message!("warning: {problem}"),
        }
        if let Some(news) = watch.news(&events) {
            news.tasks.iter().for_each(|(task, name)| names.task(*task, name));
            news.irqs.iter().for_each(|(irq, name)| names.irq(*irq, name));
            news.vectors.iter().for_each(|(vector, name)| names.vector(*vector, name));
        }
    }
    decomposer.finish(&mut |job| observer.job(job));
    observer.finish();
    events.incomplete().iter().for_each(|what| message!("warning: {what}"));
    let counters = decomposer.counters();
    losses(&trace, &counters);
    let length = span.map_or(0, |(first, last)| last - first);
    let mut head = format!(
        "{}: {} of {} in {}\n",
        output::printable(path),
        format_counted(counters.events, "event"),
        format_counted(trace.cpus() as u64, "CPU"),
        format_nanos(length as f64)
    );
    head += &text::missing(&limits, counters.events, &trace.skipped(&events));
    Ok(Recording { observer, names, length, head })
}

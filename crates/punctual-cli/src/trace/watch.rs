//! `punctual trace watch`: live statistics and alarms.

use std::io;
use std::process::Stdio;
use std::time::{Duration, Instant};

use punctual_report::format::format_counted;
use punctual_trace::event::Event;
use punctual_trace::jobs::Select;
use punctual_trace::record::{self, Live, LiveError};

use super::alarm::Alarms;
use super::analysis::Analyzer;
use super::args::{Source, Watch};
use super::chains::Chains;
use super::child::{HeldChild, Running};
use super::lines::Lines;
use super::names::NameWatch;
use super::record::{StopReason, finish, refused};
use super::signals::{Notice, Signals};
use super::{FAILED, Failure, text};
use crate::output::message;
use crate::parse::Deadline;

/// Interval at which events are read. The kernel's buffers hold many times the events of this time.
const TICK: Duration = Duration::from_millis(50);

impl Source {
    /// Returns the default selection of jobs: of the traced threads, the real-time ones and those
    /// of Punctual apps, or else those that are selected by priority.
    fn select(&self, child: Option<u32>) -> Select {
        let processes: Vec<_> = self.pids.iter().copied().chain(child).collect();
        let threads = |process: &u32| {
            let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
            tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect::<Vec<_>>()
        };
        let threads = processes.iter().flat_map(threads).collect();
        if self.priorities.is_none() {
            return Select { marked: true, among: threads, ..Select::real_time() };
        }
        Select {
            tids: threads,
            // The kernel counts in the opposite direction.
            priorities: self
                .priorities
                .as_ref()
                .map(|range| i32::from(99 - range.0.end())..=i32::from(99 - range.0.start())),
            ..Select::default()
        }
    }
}

pub(crate) fn run(arguments: &Watch) -> Result<u8, Failure> {
    let Watch { source, analysis, .. } = arguments;
    Deadline::check(&analysis.deadlines).map_err(Failure::usage)?;
    for (flag, is_set) in [("--exec", arguments.exec.is_some()), ("--stop", arguments.stop)] {
        if is_set && analysis.deadlines.is_empty() {
            return Err(Failure::usage(format!(
                "{flag} needs a deadline; give --deadline TIME or --deadline NAME=TIME"
            )));
        }
    }
    let sink = arguments.json.lines().map_err(Failure::usage)?;
    // Each line of our output is an object, and no other output may be in between.
    let output = if arguments.json.is_printed() { io::stderr().into() } else { Stdio::inherit() };
    let (held, buffers) = source.hold(output)?.unzip();
    let pid = held.as_ref().map(HeldChild::pid);
    let config = source.config(pid);
    record::drop_real_time_policy(&config.housekeeping_cpus());
    let signals = Signals::listen()?;
    let started = match buffers {
        Some(buffers) => Live::start_in(buffers, &config),
        None => Live::start(&config),
    };
    let live = started.map_err(|error| match &error {
        LiveError::Start(start) => refused(start),
        _ => error.into(),
    })?;
    if pid.is_none() {
        record::refused_marks().iter().for_each(|warning| message!("warning: {warning}"));
    }
    live.absent().iter().for_each(|absent| message!("missing: {absent}"));
    let mut analyzer = Analyzer::new(
        analysis,
        source.select(pid),
        (true, live.recorded().clone()),
        (false, 0),
        (Chains::default(), None),
    );
    analyzer.learn_listed(live.threads());
    let mut lines = Lines::new(arguments, sink);
    lines.missing(&analysis.futex.limits(live.recorded()))?;
    let child = held.map(HeldChild::go).transpose().map_err(Failure::usage)?;
    let session = Session {
        analyzer,
        seen: NameWatch::default(),
        lines,
        alarms: Alarms::new(arguments)?,
        child,
        start: Instant::now(),
        events: Vec::new(),
    };
    session.run(live, &signals, arguments)
}

/// The reason why the analysis ends, or an error.
type Outcome = Result<StopReason, Failure>;

/// The state of a watch.
struct Session {
    analyzer: Analyzer,
    seen: NameWatch,
    lines: Lines,
    alarms: Alarms,
    child: Option<Running>,
    start: Instant,
    events: Vec<Event>,
}

impl Session {
    /// Watches, then ends the command and those started by alarms, also after an error.
    fn run(mut self, live: Live, signals: &Signals, arguments: &Watch) -> Result<u8, Failure> {
        let outcome = self.watch(live, signals, arguments);
        if let Err(error) = &outcome {
            message!("error: {}", error.message);
        }
        let why = *outcome.as_ref().unwrap_or(&StopReason::Failed);
        let status = self.child.as_mut().map_or(0, |child| finish(signals, child, why));
        let has_failed = self.alarms.end(signals) || outcome.is_err();
        Ok(if has_failed { FAILED } else { status })
    }

    fn watch(&mut self, mut live: Live, signals: &Signals, arguments: &Watch) -> Outcome {
        let duration = arguments.source.duration;
        let end = duration.and_then(|duration| self.start.checked_add(duration));
        let mut next = self.start.checked_add(arguments.every);
        let mut why = None;
        let mut asked = false;
        while why.is_none() {
            if let Some(Notice::End { signal, from_terminal }) = signals.wait(TICK) {
                match &mut self.child {
                    Some(child) if !asked => {
                        if !from_terminal {
                            child.signal(signal);
                        }
                    }
                    _ => why = Some(StopReason::Asked),
                }
                asked = true;
            }
            // Before the events are read, so that all those of the command are included.
            if self.child.as_mut().is_some_and(|child| child.ended().is_some()) {
                why = Some(StopReason::Ended);
            }
            live.take(&mut self.events)?;
            for (thread, reservation) in live.reservations() {
                self.analyzer.reserve(thread, reservation);
            }
            if let Some(news) = self.seen.news(&live) {
                self.analyzer.learn(&news);
            }
            self.feed(arguments.stop)?;
            self.overdue(live.until(), arguments.stop)?;
            let now = Instant::now();
            if next.is_some_and(|next| now >= next) {
                self.lines.summary(&self.analyzer, self.start.elapsed())?;
                // A grid, so that a late line delays no other; lines that would be late are
                // skipped.
                while next.is_some_and(|next| next <= now) {
                    next = next.and_then(|next| next.checked_add(arguments.every));
                }
            }
            if end.is_some_and(|end| now >= end) {
                why = Some(StopReason::Over);
            }
            if arguments.stop && self.alarms.count() > 0 {
                why = Some(StopReason::Over);
            }
            if self.lines.is_closed() {
                why = Some(StopReason::Unread);
            }
        }
        let why = why.unwrap_or(StopReason::Asked);
        let late = live.late();
        live.stop(&mut self.events)?;
        self.feed(arguments.stop)?;
        self.analyzer.finish(&mut |_, _| {});
        self.end(late)?;
        Ok(why)
    }

    /// Processes the available events; up to the first alarm, if `stop`.
    fn feed(&mut self, stop: bool) -> Result<(), Failure> {
        let mut late = Vec::new();
        for event in self.events.drain(..) {
            if stop && self.alarms.count() > 0 {
                break;
            }
            self.analyzer.feed(&event, &mut |_, _| {}, &mut |captured, _| late.push(captured.clone()));
            for captured in late.drain(..) {
                self.alarms.raise(&captured, &self.analyzer, &mut self.lines)?;
            }
        }
        self.alarms.pause(&mut self.lines)
    }

    /// Raises alarms for jobs that have not ended; only for the first, if `stop`.
    fn overdue(&mut self, now: u64, stop: bool) -> Result<(), Failure> {
        let mut late = Vec::new();
        self.analyzer.overdue(now, &mut |captured, _| late.push(captured.clone()));
        for captured in late {
            if stop && self.alarms.count() > 0 {
                break;
            }
            self.alarms.raise(&captured, &self.analyzer, &mut self.lines)?;
        }
        self.alarms.pause(&mut self.lines)
    }

    fn end(&mut self, late: u64) -> Result<(), Failure> {
        self.lines.end(&self.analyzer, self.start.elapsed())?;
        let counters = self.analyzer.watch().counters();
        if let Some(warning) = text::left_out(&counters) {
            message!("{warning}");
        }
        let gaps = counters.gaps;
        if gaps > 0 {
            message!(
                "LOST: events are missing in {}; the jobs affected are counted as flawed and left out. \
                 Watch with a larger --buffer, fewer --events or --narrow",
                format_counted(gaps, "place")
            );
        }
        if late > 0 {
            message!(
                "warning: {} arrived out of order; times were moved forward",
                format_counted(late, "event")
            );
        }
        if self.analyzer.tasks().is_empty() {
            message!(
                "warning: no job of a real-time thread or Punctual task was seen; select others with --task NAME, or all with --task '*'"
            );
        }
        self.analyzer.print_omissions();
        let unknown = self.analyzer.unknown();
        unknown.iter().for_each(|name| message!("warning: no task or thread `{name}` had a job"));
        Ok(())
    }
}

//! A recording as a self-contained HTML page: no network, fonts or libraries.
//!
//! For each task the page shows the table of its terms; its worst jobs and some ordinary ones as
//! timelines, with a slider to select one and the sentences of [`explain`](crate::explain);
//! histograms of every term; and every term of every job over the time of the recording, with
//! points that link to the timelines. Timelines can be zoomed, and every shape has a description
//! that appears on pointing or when reached with the arrow keys. Tables and charts work without
//! scripts. The page follows the reader's light or dark preference.
//!
//! A [`Collector`] processes every event and every job in parallel with a [`Watch`], in constant
//! memory.
//!
//! ```
//! use punctual_trace::event::{Event, Kind, SwitchOut, Task};
//! use punctual_trace_report::export::html;
//! use punctual_trace::jobs::Config;
//! use punctual_trace::names::Names;
//! use punctual_trace::stats::Watch;
//!
//! let (control, idle) = (Task { id: 7, priority: 10 }, Task { id: 0, priority: 120 });
//! let event = |time, by, kind| Event { time, cpu: 0, by, kind };
//! let trace = [
//!     event(100, 0, Kind::Waking { task: control, cpu: 0 }),
//!     event(130, 0, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: control }),
//!     event(230, 7, Kind::Switch { from: control, reason: SwitchOut::Sleeping, to: idle }),
//! ];
//!
//! let mut watch = Watch::new(Config { segments: true, ..Config::default() }, html::KEEP);
//! let mut collector = html::Collector::new();
//! for event in &trace {
//!     collector.event(event);
//!     watch.feed(event, &mut |job| collector.job(job), &mut |_| {});
//! }
//! watch.finish(&mut |job| collector.job(job));
//!
//! let about = html::About { title: "My app".into(), ..Default::default() };
//! let names = Names::new();
//! let report = html::Report::new(&about, &watch, &collector, &names);
//! let mut page = Vec::new();
//! let written = html::write(&report, &mut page)?;
//! assert_eq!((written.timelines, written.left_out), (1, 0));
//! assert!(page.starts_with(b"<!DOCTYPE html>"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod chain;
mod charts;
mod collector;
mod head;
mod labels;
mod page;
mod scene;
mod series;
mod task;
mod timeline;

use std::io::{self, Write};
use std::path::Path;

pub use self::collector::Collector;
use crate::chains::Chain;
use punctual_trace::jobs::Counters;
use punctual_trace::names::Names;
use punctual_trace::read::Trace;
use punctual_trace::recorded::Recorded;
use punctual_trace::stats::{TaskStats, Watch};

/// Recommended number of worst jobs of each task to capture for the page.
pub const KEEP: usize = 12;

/// Recommended number of jobs of each task to [sample](Watch::sample) for the page as ordinary
/// examples.
pub const SAMPLE: usize = 8;

/// Maximum size of the page, in bytes. Timelines that do not fit are left out, the least severe
/// jobs first, and the page reports it.
pub const MAX_BYTES: usize = 5_000_000;

/// Maximum number of tasks with separate tables and charts. The overview lists the others.
pub const MAX_SECTIONS: usize = 64;

/// Description of a recording for the head of its page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Subject of the recording, for the title.
    pub title: String,
    /// File or other source of the events.
    pub source: String,
    /// Machine and kernel, in the format of `uname`.
    pub system: String,
    /// Clock of the events' times.
    pub clock: String,
    /// Events that were requested but are not in the recording, and data that could not be read.
    pub absent: Vec<String>,
    /// Further notes.
    pub notes: Vec<String>,
    /// Events that the recording would contain if they happened: see [`Trace::recorded`].
    pub recorded: Recorded,
    /// Events unknown to the analysis, by name, with their number.
    pub skipped: Vec<(String, u64)>,
    /// Kernel statistics for each CPU, verbatim.
    pub statistics: Vec<String>,
}

impl About {
    /// Describes a trace; `source` is its location. `recorded` and `skipped` are known only after
    /// reading the trace.
    #[must_use]
    pub fn of(trace: &Trace, source: &str) -> Self {
        let unreadable = trace.unreadable().iter();
        Self {
            title: Path::new(source)
                .file_name()
                .map_or(source.into(), |name| name.to_string_lossy().into_owned()),
            source: source.to_owned(),
            system: trace.system().to_owned(),
            clock: trace.clock().to_owned(),
            absent: unreadable.map(|(event, error)| format!("{event} could not be read: {error}")).collect(),
            notes: Vec::new(),
            recorded: Recorded::default(),
            skipped: Vec::new(),
            statistics: trace.statistics().to_vec(),
        }
    }
}

/// Contents of the page.
#[derive(Debug, Clone)]
pub struct Report<'a> {
    /// The head.
    pub about: &'a About,
    /// Statistics and worst jobs, from a decomposition with
    /// [segments](punctual_trace::jobs::Config::segments).
    pub tasks: Vec<&'a TaskStats>,
    /// Counters of the decomposition.
    pub counters: Counters,
    /// Number of jobs that belong to further tasks.
    pub left_out: u64,
    /// Jobs of these tasks over time.
    pub collector: &'a Collector,
    /// Chains of tasks, each with the names of its stages.
    pub chains: Vec<(&'a [String], &'a Chain)>,
    /// Names of threads, interrupts and tasks.
    pub names: &'a Names,
    /// Knows for which threads all switches are recorded.
    watch: &'a Watch,
}

impl<'a> Report<'a> {
    /// Creates a report of all watched tasks.
    #[must_use]
    pub fn new(about: &'a About, watch: &'a Watch, collector: &'a Collector, names: &'a Names) -> Self {
        let tasks = watch.tasks().iter().collect();
        let (counters, left_out, chains) = (watch.counters(), watch.left_out(), Vec::new());
        Self { about, tasks, counters, left_out, collector, chains, names, watch }
    }

    /// Returns the number of events that the analysis understood.
    fn events(&self) -> u64 {
        self.collector.cpus().map(|(_, counts)| counts.events).sum()
    }
}

/// Summary of a written page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Written {
    /// Size of the page, in bytes.
    pub bytes: usize,
    /// Number of jobs with a timeline.
    pub timelines: usize,
    /// Number of captured jobs without a timeline for lack of room.
    pub left_out: usize,
}

/// Writes the page.
///
/// Uses up to twice [`MAX_BYTES`] of memory.
///
/// # Errors
/// Returns the error of writing to `to`.
pub fn write(report: &Report<'_>, to: &mut impl Write) -> io::Result<Written> {
    let (page, written) = page::page(report);
    to.write_all(page.as_bytes())?;
    to.flush()?;
    Ok(written)
}

#[cfg(test)]
mod tests;

//! A recording as one page of HTML that needs nothing else: no network, no fonts, no libraries.
//!
//! For each task: the table of its terms, its worst jobs and some ordinary ones as timelines with a slider between them and the
//! sentences of [`explain`](crate::explain), histograms of every term, and every term of every job over the time of the
//! recording, where a point leads to the timeline of its job. Timelines can be zoomed, and whatever is drawn says what it is
//! when it is pointed at or reached by arrow keys. Tables and charts are there without scripts too. The page follows the
//! reader's choice of light or dark.
//!
//! A [`Collector`] takes every event and every job beside a [`Watch`], in constant memory.
//!
//! ```
//! use punctual_trace::event::{Event, Kind, SwitchOut, Task};
//! use punctual_trace::export::html;
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
mod marks;
mod page;
mod scene;
mod series;
mod task;
mod timeline;

use std::io::{self, Write};
use std::path::Path;

pub use collector::Collector;

use crate::chains::Chain;
use crate::jobs::Counters;
use crate::names::Names;
use crate::read::Trace;
use crate::recorded::Recorded;
use crate::stats::{TaskStats, Watch};

/// How many worst jobs of each task are worth keeping for the page.
pub const KEEP: usize = 12;

/// How many jobs of each task are worth [sampling](Watch::sample) for the page, to show what is ordinary.
pub const SAMPLE: usize = 8;

/// The page is not larger than this, in bytes. What has no room is left out, the least of the worst jobs first, and the page
/// says so.
pub const MAX_BYTES: usize = 5_000_000;

/// So many tasks have tables and charts of their own. The others are in the overview.
pub const MAX_SECTIONS: usize = 64;

/// What is said about a recording at the head of its page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// What was recorded, for the title.
    pub title: String,
    /// The file, or whatever the events came from.
    pub source: String,
    /// The machine and its kernel, as `uname` has it.
    pub system: String,
    /// The clock of the events' times.
    pub clock: String,
    /// What was asked for and is not in the recording, and what could not be read.
    pub absent: Vec<String>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// Which events the recording has if they happened: see [`Trace::recorded`].
    pub recorded: Recorded,
    /// Events that the analysis knows nothing of, by name, and how many there were.
    pub skipped: Vec<(String, u64)>,
    /// What the kernel counted for each CPU, in its own words.
    pub statistics: Vec<String>,
}

impl About {
    /// What a trace says about itself; `source` is where it is. Which events it has, and which of them are skipped, is known
    /// only from reading it.
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

/// What the page is made of.
#[derive(Debug, Clone)]
pub struct Report<'a> {
    /// The head.
    pub about: &'a About,
    /// Statistics and worst jobs, of a decomposition with [segments](crate::jobs::Config::segments).
    pub tasks: Vec<&'a TaskStats>,
    /// What has been seen.
    pub counters: Counters,
    /// How many jobs are of further tasks.
    pub left_out: u64,
    /// The jobs of these tasks over time.
    pub collector: &'a Collector,
    /// Chains of tasks, each with what its stages are called.
    pub chains: Vec<(&'a [String], &'a Chain)>,
    /// What everybody is called.
    pub names: &'a Names,
    /// Who knows of which threads all switches are recorded.
    watch: &'a Watch,
}

impl<'a> Report<'a> {
    /// All tasks that have been watched.
    #[must_use]
    pub fn new(about: &'a About, watch: &'a Watch, collector: &'a Collector, names: &'a Names) -> Self {
        let tasks = watch.tasks().iter().collect();
        let (counters, left_out, chains) = (watch.counters(), watch.left_out(), Vec::new());
        Self { about, tasks, counters, left_out, collector, chains, names, watch }
    }

    /// How many events there were that were understood.
    fn events(&self) -> u64 {
        self.collector.cpus().map(|(_, counts)| counts.events).sum()
    }
}

/// What has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Written {
    /// How large the page is.
    pub bytes: usize,
    /// How many jobs have a timeline.
    pub timelines: usize,
    /// How many of those that were kept have none for want of room.
    pub left_out: usize,
}

/// Writes the page.
///
/// It takes up to twice [`MAX_BYTES`] of memory.
///
/// # Errors
/// When it cannot be written.
pub fn write(report: &Report<'_>, to: &mut impl Write) -> io::Result<Written> {
    let (page, written) = page::page(report);
    to.write_all(page.as_bytes())?;
    to.flush()?;
    Ok(written)
}

#[cfg(test)]
mod tests;

//! The files that `report` writes: per-job formats while the trace is read, and the page at its
//! end.
//!
//! An output whose reader has gone away, as under `| head`, is dropped; the others continue.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use punctual_files::Output;
use punctual_trace::event::Event;
use punctual_trace::jobs::Job;
use punctual_trace::names::Names;
use punctual_trace_report::export::html::{self, About, Collector};
use punctual_trace_report::export::{self, Csv, Perfetto};

use super::Failure;
use super::analysis::Analyzer;
use super::args::Report;
use super::chains::stage_names;
use crate::output::unwritable;

type Out = BufWriter<Target>;

/// The open outputs.
pub(crate) struct Outputs {
    csv: Option<(PathBuf, Csv<Out>)>,
    json: Option<(PathBuf, Out)>,
    perfetto: Option<(PathBuf, Perfetto<Out>)>,
    html: Option<(PathBuf, (Out, Collector))>,
    failed: Failed,
    /// An output goes to standard output.
    is_printed: bool,
    /// The reader of one of them has gone away.
    unread: bool,
}

/// The first error, with its output.
type Failed = Option<(PathBuf, io::Error)>;

impl Outputs {
    /// Opens the files named on the command line, but never one that is in use. They appear when
    /// they are complete: after an error, all remain unchanged.
    pub(crate) fn open(arguments: &Report) -> Result<Self, Failure> {
        let mut opening = Opening { taken: vec![place(&arguments.trace)], is_printed: false };
        let [csv, json, perfetto, html] = opening.all(arguments)?;
        let is_printed = opening.is_printed;
        let csv = csv.map(|(path, to)| Csv::new(to).map(|csv| (path, csv))).transpose()?;
        let perfetto = perfetto.map(|(path, to)| Perfetto::new(to).map(|to| (path, to))).transpose()?;
        let html = html.map(|(path, to)| (path, (to, Collector::new())));
        Ok(Self { csv, json, perfetto, html, failed: None, is_printed, unread: false })
    }

    /// Returns whether an output needs the segments of jobs.
    pub(crate) fn want_segments(&self) -> bool {
        self.json.is_some() || self.perfetto.is_some() || self.html.is_some()
    }

    pub(crate) fn want_events(&self) -> bool {
        self.perfetto.is_some() || self.html.is_some()
    }

    /// Returns how many of the longest jobs of each task an output needs.
    pub(crate) fn want_worst(&self) -> usize {
        if self.html.is_some() { html::KEEP } else { 0 }
    }

    /// Returns how many ordinary jobs of each task an output needs.
    pub(crate) fn want_sample(&self) -> usize {
        if self.html.is_some() { html::SAMPLE } else { 0 }
    }

    /// Returns whether an output goes to standard output.
    pub(crate) fn is_printed(&self) -> bool {
        self.is_printed
    }

    /// Returns whether the readers of all outputs have gone away.
    pub(crate) fn is_unread(&self) -> bool {
        let Self { csv, json, perfetto, html, unread, .. } = self;
        *unread && csv.is_none() && json.is_none() && perfetto.is_none() && html.is_none()
    }

    /// Returns whether to stop reading the trace.
    pub(crate) fn has_ended(&self) -> bool {
        self.failed.is_some() || self.is_unread()
    }

    pub(crate) fn event(&mut self, event: &Event, analyzer: &Analyzer) {
        let Self { perfetto, html, failed, unread, .. } = self;
        let must_observe = |thread| analyzer.watch().must_observe(thread);
        *unread |= write(perfetto, failed, |perfetto| perfetto.event(event, analyzer.names(), must_observe));
        if let Some((_, (_, collector))) = html {
            collector.event(event);
        }
    }

    pub(crate) fn job(&mut self, job: &Job, names: &Names) {
        let Self { csv, json, perfetto, html, failed, unread, .. } = self;
        *unread |= write(csv, failed, |csv| csv.job(job, names));
        *unread |= write(json, failed, |json| writeln!(json, "{}", export::json(job, names)));
        *unread |= write(perfetto, failed, |perfetto| perfetto.job(job, names));
        if let Some((_, (_, collector))) = html {
            collector.job(job);
        }
    }

    /// Returns whether crossings of chains are requested.
    pub(crate) fn want_crossings(&self) -> bool {
        self.json.is_some()
    }

    /// Writes a crossing of a chain, which is a line of JSON.
    pub(crate) fn crossing(&mut self, line: &str) {
        let Self { json, failed, unread, .. } = self;
        *unread |= write(json, failed, |json| writeln!(json, "{line}"));
    }

    /// Writes the page, if requested, after all jobs.
    pub(crate) fn page(&mut self, analyzer: &Analyzer, about: impl FnOnce() -> About) {
        let Self { html, failed, unread, .. } = self;
        *unread |= write(html, failed, |(to, collector)| {
            let about = about();
            let mut report = html::Report::new(&about, analyzer.watch(), collector, analyzer.names());
            report.tasks = analyzer.tasks();
            let stages = |(tasks, chain)| (stage_names(tasks, chain, analyzer.names()), chain);
            let chains: Vec<_> = analyzer.chains().iter().map(stages).collect();
            report.chains = chains.iter().map(|(stages, chain)| (stages.as_slice(), *chain)).collect();
            html::write(&report, to).map(drop)
        });
    }

    /// Completes the files; returns those written.
    pub(crate) fn finish(self) -> Result<Vec<PathBuf>, Failure> {
        let Self { csv, json, perfetto, html, mut failed, .. } = self;
        let mut written = Vec::new();
        let mut end = |path: PathBuf, result: io::Result<()>| {
            if !note(&mut failed, &path, result) && path != Path::new("-") {
                written.push(path);
            }
        };
        let complete = |to: Out| to.into_inner().map_err(io::IntoInnerError::into_error)?.finish();
        if let Some((path, csv)) = csv {
            end(path, csv.finish().and_then(complete));
        }
        if let Some((path, json)) = json {
            end(path, complete(json));
        }
        if let Some((path, perfetto)) = perfetto {
            end(path, perfetto.finish().and_then(complete));
        }
        if let Some((path, (to, _))) = html {
            end(path, complete(to));
        }
        match failed {
            Some((path, error)) => Err(format!(
                "{}: {error}; the output is not complete, write it to another place",
                path.display()
            )
            .into()),
            None => Ok(written),
        }
    }
}

/// State while the outputs are opened.
struct Opening {
    /// The trace and the files that were opened.
    taken: Vec<Option<Place>>,
    is_printed: bool,
}

impl Opening {
    fn all(&mut self, arguments: &Report) -> Result<[Option<(PathBuf, Out)>; 4], Failure> {
        let wanted = [
            ("--csv", &arguments.csv),
            ("--json", &arguments.json.json),
            ("--perfetto", &arguments.perfetto),
            ("--html", &arguments.html),
        ];
        let mut outputs = [None, None, None, None];
        for (output, (flag, path)) in outputs.iter_mut().zip(wanted) {
            let Some(path) = path else { continue };
            let unusable =
                |error: &dyn std::fmt::Display| Failure::usage(format!("{flag} {}: {error}", path.display()));
            let to = if path == Path::new("-") {
                if std::mem::replace(&mut self.is_printed, true) {
                    return Err(unusable(&"another format already goes to standard output"));
                }
                Target::Standard(io::stdout())
            } else {
                let place = place(path);
                if place.is_some() && self.taken.contains(&place) {
                    return Err(unusable(&"this is the trace or another output; choose another name"));
                }
                self.taken.push(place);
                Target::File(
                    Output::open(path).map_err(|error| Failure::usage(unwritable(flag, path, &error)))?,
                )
            };
            *output = Some((path.clone(), BufWriter::with_capacity(1 << 16, to)));
        }
        Ok(outputs)
    }
}

/// Destination of an output.
enum Target {
    Standard(io::Stdout),
    File(Output),
}

impl Target {
    fn finish(self) -> io::Result<()> {
        match self {
            Self::Standard(mut to) => to.flush(),
            Self::File(to) => to.finish(),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Standard(to) => to.write(bytes),
            Self::File(to) => to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Standard(to) => to.flush(),
            Self::File(to) => to.flush(),
        }
    }
}

/// Writes to an output, if there is one. Drops it and returns `true` if its reader has gone away.
fn write<T>(
    output: &mut Option<(PathBuf, T)>,
    failed: &mut Failed,
    write: impl FnOnce(&mut T) -> io::Result<()>,
) -> bool {
    let Some((path, to)) = output else { return false };
    let unread = note(failed, path, write(to));
    if unread {
        *output = None;
    }
    unread
}

/// Stores the first error. Returns `true` for a reader that has gone away, which is not an error.
fn note(failed: &mut Failed, path: &Path, result: io::Result<()>) -> bool {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return true,
        Err(error) => {
            failed.get_or_insert_with(|| (path.to_owned(), error));
        }
        Ok(()) => {}
    }
    false
}

/// Identity of a regular file under any name, whether or not it exists.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Existing((u64, u64)),
    /// A name in a directory.
    Absent((u64, u64), OsString),
}

/// Returns the identity of a regular file. A device such as /dev/null may take several outputs.
fn place(path: &Path) -> Option<Place> {
    if let Some(file) = identity(path) {
        return Some(Place::Existing(file));
    }
    if path.exists() {
        return None;
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = fs::metadata(parent).ok()?;
    Some(Place::Absent((directory.dev(), directory.ino()), path.file_name()?.to_owned()))
}

/// Returns the identity of an existing regular file under any name.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok().filter(|metadata| metadata.is_file())?;
    Some((metadata.dev(), metadata.ino()))
}

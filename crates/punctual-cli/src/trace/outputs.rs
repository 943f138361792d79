//! Files of `report`: with a line or more for each job, written while the trace is read, and the page, at its end.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use punctual_trace::event::Event;
use punctual_trace::export::html::{self, About, Collector};
use punctual_trace::export::{self, Csv, Perfetto};
use punctual_trace::jobs::Job;
use punctual_trace::names::Names;

use super::Failure;
use super::analysis::Analyst;
use super::args::Report;

type Out = BufWriter<Box<dyn Write>>;

/// What is written, and whether it can be.
pub(crate) struct Outputs {
    csv: Option<(PathBuf, Csv<Out>)>,
    json: Option<(PathBuf, Out)>,
    perfetto: Option<(PathBuf, Perfetto<Out>)>,
    html: Option<(PathBuf, Out, Collector)>,
    failed: Option<(PathBuf, io::Error)>,
    /// Something goes to standard output.
    is_printed: bool,
}

impl Outputs {
    /// Opens what the command line names, unless that would destroy something.
    pub(crate) fn open(arguments: &Report) -> Result<Self, Failure> {
        let mut taken = vec![identity(&arguments.trace)];
        let mut is_printed = false;
        let mut open = |flag: &str, path: &Option<PathBuf>| -> Result<Option<(PathBuf, Out)>, Failure> {
            let Some(path) = path else { return Ok(None) };
            let unusable =
                |error: &dyn std::fmt::Display| Failure::usage(format!("{flag} {}: {error}", path.display()));
            let to: Box<dyn Write> = if path == Path::new("-") {
                if std::mem::replace(&mut is_printed, true) {
                    return Err(unusable(&"standard output is taken by another format"));
                }
                Box::new(io::stdout())
            } else {
                if identity(path).is_some_and(|file| taken.contains(&Some(file))) {
                    return Err(unusable(&"this is the trace, or another output; choose another name"));
                }
                let file = File::create(path).map_err(|error| unusable(&error))?;
                taken.push(identity(path));
                Box::new(file)
            };
            Ok(Some((path.clone(), BufWriter::with_capacity(1 << 16, to))))
        };
        let (csv, json) = (open("--csv", &arguments.csv)?, open("--json", &arguments.json)?);
        let (perfetto, html) = (open("--perfetto", &arguments.perfetto)?, open("--html", &arguments.html)?);
        let csv = csv.map(|(path, to)| Csv::new(to).map(|csv| (path, csv))).transpose()?;
        let perfetto = perfetto.map(|(path, to)| Perfetto::new(to).map(|to| (path, to))).transpose()?;
        let html = html.map(|(path, to)| (path, to, Collector::new()));
        Ok(Self { csv, json, perfetto, html, failed: None, is_printed })
    }

    /// Whether stretches of jobs are wanted.
    pub(crate) fn want_segments(&self) -> bool {
        self.json.is_some() || self.perfetto.is_some() || self.html.is_some()
    }

    pub(crate) fn want_events(&self) -> bool {
        self.perfetto.is_some() || self.html.is_some()
    }

    /// How many of the longest jobs of each task are wanted.
    pub(crate) fn want_worst(&self) -> usize {
        if self.html.is_some() { html::KEEP } else { 0 }
    }

    /// Whether standard output is taken.
    pub(crate) fn is_printed(&self) -> bool {
        self.is_printed
    }

    /// Whether it is no use to go on.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    pub(crate) fn event(&mut self, event: &Event, names: &Names) {
        if let Some((path, perfetto)) = &mut self.perfetto {
            note(&mut self.failed, path, perfetto.event(event, names));
        }
        if let Some((_, _, collector)) = &mut self.html {
            collector.event(event);
        }
    }

    pub(crate) fn job(&mut self, job: &Job, names: &Names) {
        let Self { csv, json, perfetto, html, failed, .. } = self;
        if let Some((path, csv)) = csv {
            note(failed, path, csv.job(job, names));
        }
        if let Some((path, json)) = json {
            note(failed, path, writeln!(json, "{}", export::json(job, names)));
        }
        if let Some((path, perfetto)) = perfetto {
            note(failed, path, perfetto.job(job, names));
        }
        if let Some((_, _, collector)) = html {
            collector.job(job);
        }
    }

    /// Writes the page, if it is wanted, when all jobs have been handed over.
    pub(crate) fn page(&mut self, analyst: &Analyst, about: impl FnOnce() -> About) {
        let Some((path, to, collector)) = &mut self.html else { return };
        let about = about();
        let mut report = html::Report::new(&about, analyst.watch(), collector, analyst.names());
        report.tasks = analyst.tasks();
        note(&mut self.failed, path, html::write(&report, to).map(drop));
    }

    /// Ends the files; says which have been written.
    pub(crate) fn finish(self) -> Result<Vec<PathBuf>, Failure> {
        let Self { csv, json, perfetto, html, mut failed, .. } = self;
        let mut written = Vec::new();
        let mut end = |path: PathBuf, result: io::Result<()>| {
            note(&mut failed, &path, result);
            written.push(path);
        };
        if let Some((path, csv)) = csv {
            end(path, csv.finish().and_then(|mut to| to.flush()));
        }
        if let Some((path, mut json)) = json {
            end(path, json.flush());
        }
        if let Some((path, perfetto)) = perfetto {
            end(path, perfetto.finish().map(drop));
        }
        if let Some((path, mut to, _)) = html {
            end(path, to.flush());
        }
        written.retain(|path| path != Path::new("-"));
        match failed {
            // Whoever read it has read enough.
            Some((_, error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(written),
            Some((path, error)) => {
                Err(format!("{}: {error}; it is not complete, choose another place for it", path.display())
                    .into())
            }
            None => Ok(written),
        }
    }
}

/// Keeps the first error.
fn note(failed: &mut Option<(PathBuf, io::Error)>, path: &Path, result: io::Result<()>) {
    if let Err(error) = result {
        failed.get_or_insert_with(|| (path.to_owned(), error));
    }
}

/// What two names of one file have in common, if there is one.
fn identity(path: &Path) -> Option<(u64, u64)> {
    // Devices such as /dev/null may be written to by several.
    let metadata = fs::metadata(path).ok().filter(|metadata| metadata.is_file())?;
    Some((metadata.dev(), metadata.ino()))
}

//! An open trace: its metadata and its events.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::clock::counted;
use super::error::ReadError;
use super::format::{EventFormat, FormatError, PageLayout};
use super::merge::{Merge, Source as _};
use super::raw::{PROCESS, RESERVATION};
use super::stream::{CpuStream, Input, Scale};
use super::translate::{Calls, Interrupts, Threads, Translator, recipe};
use super::{Bytes, Order, Range, ctf, dat, marker, perf, raw};
use crate::event::{Event, Tid};
use crate::jobs::Reservation;
use crate::recorded::{Recorded, Source};

/// The limit in bytes for the pages of all CPUs together.
const PAGES_BUDGET: usize = 256 << 20;

/// An open trace.
///
/// ```no_run
/// use punctual_trace::read::Trace;
///
/// let trace = Trace::open("trace.dat".as_ref())?;
/// println!("{} CPUs, clock {}", trace.cpus(), trace.clock());
/// for event in trace.events()? {
///     println!("{:?}", event?);
/// }
/// # Ok::<(), punctual_trace::read::ReadError>(())
/// ```
pub struct Trace {
    pub(crate) file: Arc<str>,
    pub(crate) layout: PageLayout,
    pub(super) formats: Vec<EventFormat>,
    pub(super) unreadable: Vec<(String, FormatError)>,
    pub(super) buffers: Vec<Buffer>,
    pub(crate) threads: Vec<u8>,
    pub(crate) functions: dat::Functions,
    pub(super) clock: String,
    pub(super) system: String,
    pub(super) statistics: Vec<String>,
    pub(super) scale: Option<Scale>,
    /// What its recorder says about which events it has: see [`Recorded::declared`].
    pub(super) declared: Option<String>,
    pub(super) damage: Vec<String>,
    pub(super) recorder: Recorder,
    /// Number of perf samples of other events than tracepoints.
    pub(super) other_samples: u64,
}

/// Program that made a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorder {
    /// `punctual trace record`.
    Punctual,
    /// `trace-cmd record`.
    TraceCmd,
    /// `perf record`, or simpleperf.
    Perf,
    /// LTTng.
    Lttng,
}

impl Recorder {
    /// Returns advice for a recording that loses fewer events.
    #[must_use]
    pub fn more_room(self) -> &'static str {
        match self {
            Self::Punctual => "with a larger --buffer, fewer --events or --narrow",
            Self::TraceCmd => "with larger buffers, as `trace-cmd record -b 20000` has them, or fewer events",
            Self::Perf => "with larger buffers, as `perf record -m 16M` has them, or fewer events",
            Self::Lttng => {
                "with larger buffers, as `lttng enable-channel --kernel --subbuf-size 4M` has them, or fewer events"
            }
        }
    }
}

/// A ring buffer of the kernel, with data of each CPU.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// The name of its tracing instance; empty for the top-level one.
    pub name: String,
    /// Its trace clock.
    pub clock: String,
    pub(crate) page_size: Option<usize>,
    pub(crate) cpus: Vec<CpuData>,
}

impl Buffer {
    /// The CPUs with data.
    pub fn cpus(&self) -> impl Iterator<Item = u16> {
        self.cpus.iter().map(|data| data.cpu)
    }
}

/// The data of one CPU, not yet read.
#[derive(Clone)]
pub(crate) struct CpuData {
    pub(crate) cpu: u16,
    pub(crate) file: Arc<str>,
    pub(crate) bytes: Arc<dyn Bytes>,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) packed: Option<(dat::Algorithm, Order)>,
}

impl std::fmt::Debug for CpuData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CPU {}: {} bytes at {}", self.cpu, self.length, self.start)
    }
}

impl CpuData {
    pub(crate) fn input(&self, scale: Option<Scale>) -> Input {
        let range = Range::new(self.bytes.clone(), self.start, self.start.saturating_add(self.length));
        let (read, start, length): (Box<dyn io::Read + Send>, _, _) = match self.packed {
            None => (Box::new(range), Some(self.start), Some(self.length)),
            Some((algorithm, order)) => (Box::new(dat::Chunks::new(range, algorithm, order)), None, None),
        };
        Input { file: self.file.clone(), cpu: self.cpu, read, start, length, scale }
    }
}

impl Trace {
    /// Opens a trace.dat or perf.data file, a directory that was recorded, one of `perf record --threads`, or one of LTTng.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let open = |error| ReadError::Open { path: path.to_owned(), error };
        if std::fs::metadata(path).map_err(open)?.is_dir() {
            return match ctf::find(path) {
                Some(path) => ctf::open(&path),
                None if perf::is_directory(path) => perf::open_directory(path),
                None => raw::open(path),
            };
        }
        let file = std::fs::File::open(path).map_err(open)?;
        Self::from_bytes(&path.display().to_string(), Arc::new(file))
    }

    /// Opens a trace from any [`Bytes`]; errors call it `name`.
    pub fn from_bytes(name: &str, bytes: Arc<dyn Bytes>) -> Result<Self, ReadError> {
        let mut start = [0; 8];
        let read = bytes.read_at(0, &mut start);
        let length = read.map_err(|error| ReadError::Io { file: name.into(), offset: 0, error })?;
        match perf::is_perf(&start[..length]) {
            true => perf::open(name.into(), bytes),
            false => dat::open(name.into(), bytes),
        }
    }

    /// Opens a trace of LTTng that is in memory or elsewhere: its metadata file, and the files of its streams with what errors
    /// call them.
    pub fn from_ctf(
        name: &str,
        metadata: &[u8],
        streams: Vec<(Arc<str>, Arc<dyn Bytes>)>,
    ) -> Result<Self, ReadError> {
        ctf::read(name.into(), metadata, streams)
    }

    /// The events, ordered by time, then by CPU.
    ///
    /// An error ends the data of its CPU; the events of the other CPUs continue.
    ///
    /// # Errors
    /// [`ReadError::Clock`] if the times cannot be converted to ns.
    pub fn events(&self) -> Result<Events, ReadError> {
        self.events_of(|_| true)
    }

    /// The events of those of its buffers.
    pub fn events_of(&self, buffers: impl Fn(&Buffer) -> bool) -> Result<Events, ReadError> {
        let (translator, streams) = self.streams(buffers)?;
        Ok(Events { merge: Merge::new(translator, streams) })
    }

    /// The events of each CPU of those buffers, in the order of CPUs, and what translates them.
    fn streams(&self, buffers: impl Fn(&Buffer) -> bool) -> Result<(Translator, Vec<CpuStream>), ReadError> {
        let chosen = || self.buffers.iter().filter(|buffer| buffers(buffer));
        self.check_clocks(chosen())?;
        let streams = chosen().map(|buffer| buffer.cpus.len()).sum();
        let mut inputs = Vec::new();
        let mut pages = 0;
        for buffer in chosen() {
            let unsupported =
                |error: FormatError| ReadError::Format { file: self.file.clone(), offset: 0, error };
            let layout = match buffer.page_size {
                Some(size) => self.layout.with_size(size).map_err(unsupported)?,
                None => self.layout,
            };
            // The file may contain a scale although the trace has another clock.
            let scale = self.scale.filter(|_| counted(self.clock_of(buffer)).is_some());
            for data in &buffer.cpus {
                pages += layout.size;
                inputs.push((data.cpu, CpuStream::new(data.input(scale), layout, streams)));
            }
        }
        if pages > PAGES_BUDGET {
            let what = format!(
                "{streams} CPUs with pages of {} bytes each would need too much memory; choose a buffer",
                pages / streams
            );
            return Err(ReadError::Unsupported { file: self.file.clone(), offset: 0, what });
        }
        inputs.sort_by_key(|(cpu, _)| *cpu);
        let mut translator = Translator::new(self.layout.order, &self.formats, &self.functions.schedule);
        translator.set_budget_timer(self.functions.budget_timer);
        translator.threads_mut().insert_lines(&self.threads);
        Ok((translator, inputs.into_iter().map(|(_, stream)| stream).collect()))
    }

    /// Which events it has if they happened: what its recorder declared, as ours does. Of other recordings the formats say
    /// only what could have been recorded, and what of that was is known by its being there, so the events are read until
    /// all of it has been seen.
    ///
    /// # Errors
    /// If a page size is not supported. Unreadable data is ignored.
    pub fn recorded(&self) -> Result<Recorded, ReadError> {
        if let Some(text) = &self.declared {
            return Ok(Recorded::declared(text));
        }
        let names = self.formats.iter().map(|format| format!("{}:{}\n", format.system, format.name));
        let mut possible = Recorded::declared(&names.collect::<String>());
        if self.functions.schedule.is_empty() {
            // Every kernel lists the format of function calls.
            possible = possible.without(Source::Scheduler);
        }
        let mut seen = Recorded::none();
        let (mut translator, streams) = self.streams(|_| true)?;
        let mut events = Vec::new();
        for mut stream in streams {
            while !seen.covers(&possible) {
                events.clear();
                match stream.refill(&mut translator, &mut events) {
                    Ok(()) if !events.is_empty() => events.iter().for_each(|event| seen.see(event)),
                    _ => break,
                }
            }
        }
        // Only x86 has vectors beside its interrupts. LTTng does not say which processor it was.
        let x86 = ["x86", "i386", "i486", "i586", "i686", "amd64"];
        let is_known = !self.system.is_empty() && self.recorder != Recorder::Lttng;
        if is_known && !x86.iter().any(|name| self.system.contains(name)) {
            seen = seen.with(Source::Vectors);
        }
        Ok(seen)
    }

    /// The ring buffers.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The number of CPUs with data.
    pub fn cpus(&self) -> usize {
        let mut cpus: Vec<_> = self.buffers.iter().flat_map(Buffer::cpus).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus.len()
    }

    /// The trace clock, `mono` for CLOCK_MONOTONIC; empty if the trace names none.
    pub fn clock(&self) -> &str {
        &self.clock
    }

    /// The traced system, as from `uname`, or empty.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// The kernel's statistics of each CPU's buffer.
    pub fn statistics(&self) -> &[String] {
        &self.statistics
    }

    /// The process of each thread that the recorder saw.
    pub fn processes(&self) -> impl Iterator<Item = (Tid, Tid)> {
        let lines = self.declared.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| {
            let (thread, process) = line.strip_prefix(PROCESS)?.split_once(' ')?;
            Some((thread.parse().ok()?, process.parse().ok()?))
        })
    }

    /// The reservations of the SCHED_DEADLINE threads that the recorder saw.
    pub fn reservations(&self) -> impl Iterator<Item = (Tid, Reservation)> {
        let lines = self.declared.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| {
            let mut numbers = line.strip_prefix(RESERVATION)?.split(' ').map(str::parse::<u64>);
            let mut next = || numbers.next()?.ok();
            let thread = next()?.try_into().ok()?;
            Some((thread, Reservation { runtime: next()?, deadline: next()?, period: next()? }))
        })
    }

    /// What is missing from the file or had to be guessed.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// Returns the program that made the recording.
    pub fn recorder(&self) -> Recorder {
        self.recorder
    }

    /// Returns the number of records skipped in `events` because the analysis does not know their
    /// event, by its name.
    pub fn skipped(&self, events: &Events) -> Vec<(String, u64)> {
        let others = (self.other_samples > 0).then(|| ("no tracepoint".to_owned(), self.other_samples));
        events.skipped_names(&self.formats).into_iter().chain(others).collect()
    }

    /// The formats of the events.
    pub fn formats(&self) -> &[EventFormat] {
        &self.formats
    }

    /// The events whose formats could not be parsed; their records are skipped.
    pub fn unreadable(&self) -> &[(String, FormatError)] {
        &self.unreadable
    }

    /// Those of them that the analysis needs, as `group:event`.
    pub fn unusable(&self) -> impl Iterator<Item = (&str, &FormatError)> {
        let used =
            |event: &str| event.split_once(':').is_some_and(|(group, name)| recipe(group, name).is_some());
        self.unreadable
            .iter()
            .map(|(event, error)| (event.as_str(), error))
            .filter(move |(event, _)| used(event))
    }
}

/// Iterates over the events of a trace, in order.
pub struct Events {
    merge: Merge<CpuStream>,
}

impl Events {
    /// With what the analysis does not know, as [`Kind::Other`](crate::event::Kind::Other): for those who show it.
    #[must_use]
    pub fn with_others(mut self) -> Self {
        self.merge.context_mut().want_others();
        self
    }

    /// The names of threads, as far as the events up to here have them.
    pub fn threads(&self) -> &Threads {
        self.merge.context().threads()
    }

    /// The names of interrupts, as far as the events up to here have them.
    pub fn interrupts(&self) -> &Interrupts {
        self.merge.context().interrupts()
    }

    /// The names of system calls, as far as the events up to here have them.
    pub fn calls(&self) -> &Calls {
        self.merge.context().calls()
    }

    /// The names of tasks of Punctual apps, as far as the events up to here have them.
    pub fn tasks(&self) -> &marker::Tasks {
        self.merge.context().tasks()
    }

    /// How many records were left out up to here because the analysis knows nothing of their event, by its number.
    pub fn skipped(&self) -> impl Iterator<Item = (u16, u64)> {
        self.merge.context().skipped()
    }

    /// The same, by the names that the formats have.
    fn skipped_names(&self, formats: &[EventFormat]) -> Vec<(String, u64)> {
        let name = |id: u16| {
            let format = formats.iter().find(|format| format.id == id);
            format.map_or(format!("event {id}"), |format| format!("{}:{}", format.system, format.name))
        };
        self.skipped().map(|(id, count)| (name(id), count)).collect()
    }

    /// What is left out although the analysis has a use for it, because the kernel's event lacks a field.
    pub fn incomplete(&self) -> &[String] {
        self.merge.context().incomplete()
    }
}

impl Events {
    /// The next events, all of one CPU: as many as come before those of the others. An analysis that takes them as they come
    /// is faster so.
    #[inline]
    pub fn next_run(&mut self) -> Option<Result<&[Event], ReadError>> {
        self.merge.next_run()
    }
}

impl Iterator for Events {
    type Item = Result<Event, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.merge.next()
    }
}
